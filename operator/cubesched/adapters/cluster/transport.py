"""The wire to one API server, as small as list-watch and conditional writes need it.

The aiohttp transport talks to a real server; tests of the protocol put an in-memory server
with the same semantics behind the same four members.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Response:
    """One whole answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """Lower-case names; only `retry-after` is read."""


class Transport(Protocol):
    """One API server, one identity. Paths start with `/`; bodies are JSON bytes."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_seconds: float = 15.0,
    ) -> Response:
        """Send one request and return the answer, whatever its status.

        Raises ApiError when nothing was sent, OutcomeUnknown when no answer came to what
        may have been sent.
        """
        ...

    def stream(
        self, path: str, *, params: Mapping[str, str], idle_seconds: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a watch; iterate over its lines, without the line break.

        Raises Gone on 410, ApiError on any other status but 200, and ApiError when nothing
        arrives for `idle_seconds`. Ends without an error when the server closes the stream.
        """
        ...
