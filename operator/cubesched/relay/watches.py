"""One open watch: what its agent has still to be told, in order, and never with a gap."""

from __future__ import annotations

import asyncio
from typing import Final

MOST_PENDING_BYTES: Final = 1 << 20
"""Beyond this an agent that does not read is cut off; it opens another watch where it stands."""


class Watch:
    """A bounded queue of lines; whoever fills it never waits for whoever empties it."""

    def __init__(self, node: str, *, wants_bookmarks: bool, backlog: list[bytes]) -> None:
        self.node = node
        self.wants_bookmarks = wants_bookmarks
        self.heard = 0
        """How much of what the relay has heard this watch was told; see `Fanout.remind`."""
        self.is_too_slow = False
        """Nothing more may be sent: something was dropped."""
        self._is_ended = False
        self._lines = backlog
        self._bytes = 0
        self._news = asyncio.Event()
        if backlog:
            self._news.set()

    @property
    def is_over(self) -> bool:
        """Tell whether everything that it will ever say was taken."""
        return self.is_too_slow or (self._is_ended and not self._lines)

    def tell(self, line: bytes) -> bool:
        """Add a line; False when the agent is too slow, and this watch is lost."""
        if self._bytes and self._bytes + len(line) > MOST_PENDING_BYTES:
            self.is_too_slow = True
            self._lines = []
        else:
            self._lines.append(line)
            self._bytes += len(line)
        self._news.set()
        return not self.is_too_slow

    def end(self, last_line: bytes = b"") -> None:
        """Say nothing more after `last_line`."""
        if last_line:
            self._lines.append(last_line)
        self._is_ended = True
        self._news.set()

    async def take(self, *, wait_seconds: float) -> bytes:
        """Return everything there is to say now, or nothing after `wait_seconds`."""
        try:
            async with asyncio.timeout(wait_seconds):
                await self._news.wait()
        except TimeoutError:
            return b""
        lines, self._lines, self._bytes = self._lines, [], 0
        if not self._is_ended and not self.is_too_slow:
            self._news.clear()
        return b"".join(lines)
