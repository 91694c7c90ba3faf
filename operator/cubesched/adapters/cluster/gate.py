"""How many writes may be under way at once, and who goes first when all places are taken.

A handful keeps a small API server busy; more only makes each of them slower.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from heapq import heappop, heappush
from itertools import count
from typing import Final

DEFAULT_LIMIT: Final = 8


class WriteGate:
    """A semaphore with priorities: the lowest number first, then first come first served."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._free = limit
        self._order = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @property
    def waiting(self) -> int:
        """How many writes wait for a place."""
        return sum(not place.done() for _, _, place in self._waiting)

    @asynccontextmanager
    async def slot(self, priority: int) -> AsyncIterator[None]:
        """Hold one place for the time of the block."""
        await self._enter(priority)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, priority: int) -> None:
        if self._free:
            self._free -= 1
            return
        place = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (priority, next(self._order), place))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        while self._waiting:
            place = heappop(self._waiting)[2]
            if not place.done():
                place.set_result(None)
                return
        self._free += 1
