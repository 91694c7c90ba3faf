"""Knows when a process that was just started serves; asks often, since a start takes seconds."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable

from cubesched.core.errors import CubeschedError

_ASK_EVERY_SECONDS = 0.05


class NotReady(CubeschedError):
    """A process runs but does not serve within its time."""


def free_port() -> int:
    """Return a loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(
    is_ready: Callable[[], bool], *, what: str, check: Callable[[], None], timeout_seconds: float
) -> None:
    """Return when `is_ready`; raise what `check` raises, or NotReady after the timeout."""
    deadline = time.monotonic() + timeout_seconds
    while not is_ready():
        check()
        if time.monotonic() > deadline:
            raise NotReady(f"{what} does not answer after {timeout_seconds:g} s")
        time.sleep(_ASK_EVERY_SECONDS)


def redis_answers(port: int) -> bool:
    """Whether a Redis on this loopback port answers PING."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def apiserver_answers(port: int, context: ssl.SSLContext, path: str) -> bool:
    """Whether the API server on this port, certified by our authority, answers 200 to `path`."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=2.0)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
