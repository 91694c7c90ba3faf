"""The Redis client of this project: every wait has a deadline, every error is one of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from redis.asyncio import Redis
from redis.exceptions import RedisError

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
        raise UsageError(f"--redis-url {url!r}: {error}") from error


async def within_deadline(call: Awaitable[T], seconds: float = DEADLINE_SECONDS) -> T:
    """Await one command; StoreUnavailable when it fails or takes longer than `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError as error:
        raise StoreUnavailable(f"Redis did not answer within {seconds:g} s") from error
    except (RedisError, OSError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise StoreUnavailable(f"Redis: {text}") from error
