"""The Redis clients of this project: every wait has a deadline, every error is one of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final, TypeVar

from redis import Connection, ConnectionPool
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeout

from cubesched.core.errors import StoreUnavailable, UsageError

T = TypeVar("T")

DEADLINE_SECONDS: Final = 2.0
CONNECT_SECONDS: Final = 2.0


def open_redis(url: str) -> Redis:
    """Return a client that has not connected yet; UsageError when the URL is none."""
    try:
        return Redis.from_url(
            url,
            socket_timeout=DEADLINE_SECONDS,
            socket_connect_timeout=CONNECT_SECONDS,
            socket_keepalive=True,
            # Whoever reads each second needs no second try inside the first.
            retry=None,
            protocol=2,
        )
    except ValueError as error:
        raise UsageError(f"Redis URL {url!r}: {error}") from error


async def within_deadline(call: Awaitable[T], seconds: float = DEADLINE_SECONDS) -> T:
    """Await one command; StoreUnavailable when it fails or takes longer than `seconds`.

    It runs as a task of its own: the client swallows a cancellation that meets an answer, which
    would leave whoever waits here running after it was told to end.
    """
    command = asyncio.ensure_future(call)
    try:
        await asyncio.wait((command,), timeout=seconds)
    finally:
        if not command.done():
            command.add_done_callback(_leave)
            command.cancel()
    if not command.done():
        raise no_answer(seconds)
    try:
        return command.result()
    except (RedisError, OSError) as error:
        raise StoreUnavailable(_one_line(error)) from error


async def drop_connections(redis: Redis) -> None:
    """Have the next command open a connection of its own; one that does not close is let go."""
    with suppress(StoreUnavailable):
        await within_deadline(redis.connection_pool.disconnect())


def _leave(command: asyncio.Future[T]) -> None:
    """Take note of how a command ended that nobody waits for any more."""
    if not command.cancelled():
        command.exception()


def no_answer(seconds: float) -> StoreUnavailable:
    """Return the error of a server that accepts and never answers."""
    return StoreUnavailable(f"Redis did not answer within {seconds:g} s")


def packed(*words: bytes) -> bytes:
    """Return one command as it goes over the wire."""
    return b"*%d\r\n" % len(words) + b"".join(packed_word(word) for word in words)


def packed_word(word: bytes) -> bytes:
    """Return one word of a command as it goes over the wire."""
    return b"$%d\r\n%s\r\n" % (len(word), word)


class BlockingClient:
    """One connection for a thread that may wait: thousands of commands at once, packed already.

    Packing them one by one and awaiting each reply costs more than all the rest of a read.
    """

    def __init__(self, url: str, *, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        """Connect nowhere yet; UsageError when the URL is none."""
        self._deadline = deadline_seconds
        try:
            self._pool = ConnectionPool.from_url(
                url,
                socket_timeout=deadline_seconds,
                socket_connect_timeout=min(CONNECT_SECONDS, deadline_seconds),
                socket_keepalive=True,
                protocol=2,
            )
        except ValueError as error:
            raise UsageError(f"Redis URL {url!r}: {error}") from error

    def exchange(self, commands: bytes, number: int) -> list[Any]:
        """Send `number` packed commands and return their replies; an error reply as a value.

        StoreUnavailable when the connection cannot be made, breaks, or says nothing in time.
        """
        connection: Connection | None = None
        try:
            connection = self._pool.get_connection()
            connection.send_packed_command([commands], check_health=False)  # type: ignore[no-untyped-call]
            return [_reply(connection) for _ in range(number)]
        except RedisTimeout as error:
            raise no_answer(self._deadline) from error
        except (RedisError, OSError) as error:
            raise StoreUnavailable(_one_line(error)) from error
        finally:
            if connection is not None:
                self._pool.release(connection)

    def close(self) -> None:
        """Break the connection, also under a thread that waits on it."""
        self._pool.disconnect()


def _reply(connection: Connection) -> Any:
    try:
        return connection.read_response()
    except ResponseError as error:
        return error


def _one_line(error: Exception) -> str:
    return f"Redis: {' '.join(str(error).split()) or type(error).__name__}"
