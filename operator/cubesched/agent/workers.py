"""At most one worker a request, woken by news of it, that tries again until nothing is left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from cubesched.core.errors import CubeschedError

log = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 0.2
LAST_RETRY_SECONDS = 10.0


@dataclass(slots=True)
class Workers:
    """Runs `settle(uid)` after each `wake(uid)`, and again after a while when it fails."""

    node: str
    settle: Callable[[str], Awaitable[None]]
    _news: dict[str, asyncio.Event] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def wake(self, uid: str) -> None:
        """Let the request be looked at, by its worker or a new one."""
        news = self._news.setdefault(uid, asyncio.Event())
        news.set()
        if uid not in self._tasks:
            self._tasks[uid] = asyncio.create_task(self._work(uid, news))

    async def stop(self) -> None:
        """End all workers, wherever they are."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, uid: str, news: asyncio.Event) -> None:
        """Settle the request until nothing is left to do before the next event."""
        delay_seconds = FIRST_RETRY_SECONDS
        try:
            while news.is_set():
                news.clear()
                if await self._settled(uid):
                    delay_seconds = FIRST_RETRY_SECONDS
                    continue
                with suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), delay_seconds)
                news.set()
                delay_seconds = min(2 * delay_seconds, LAST_RETRY_SECONDS)
        finally:
            del self._tasks[uid], self._news[uid]

    async def _settled(self, uid: str) -> bool:
        """Do what the newest state asks for; False when that has to be tried again."""
        try:
            await self.settle(uid)
        except CubeschedError as error:
            log.warning("%s: request %s: %s", self.node, uid, error)
            return False
        except Exception:
            log.exception("%s: request %s", self.node, uid)
            return False
        return True
