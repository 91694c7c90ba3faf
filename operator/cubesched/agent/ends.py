"""Which sandboxes have ended by themselves, and how; remembered until that is written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from cubesched.agent.runtime import Ended, Runtime, RuntimeUnavailable
from cubesched.fleet.sandboxes import uid_in

log = logging.getLogger(__name__)

ASK_AGAIN_SECONDS = 10.0


@dataclass(slots=True)
class Ends:
    """Waits for the end of every sandbox that runs on one machine."""

    node: str
    runtime: Runtime
    told: Callable[[str], None]
    """Called with the request's uid when one of its sandboxes has ended."""
    _known: dict[str, Ended] = field(default_factory=dict)
    _waiting: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return how many ends are remembered."""
        return len(self._known)

    def of(self, sandbox: str) -> Ended | None:
        """Return how it ended; None while it has not, as far as is known."""
        return self._known.get(sandbox)

    def of_request(self, uid: str) -> list[str]:
        """Return the sandboxes of one request whose end is remembered."""
        return [name for name in self._known if uid_in(name) == uid]

    def wait_for(self, sandbox: str) -> None:
        """Be told of its end; asking twice is fine."""
        if sandbox not in self._waiting:
            self._waiting[sandbox] = asyncio.create_task(self._wait(sandbox))

    def forget(self, sandbox: str) -> None:
        """Neither wait for its end any more nor remember it."""
        waiter = self._waiting.pop(sandbox, None)
        if waiter is not None:
            waiter.cancel()
        self._known.pop(sandbox, None)

    async def stop(self) -> None:
        """Wait for nothing any more."""
        tasks = list(self._waiting.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait(self, sandbox: str) -> None:
        while sandbox not in self._known:
            try:
                self._known[sandbox] = await self.runtime.wait(sandbox)
            except RuntimeUnavailable as error:
                log.warning("%s: waiting for %s: %s", self.node, sandbox, error)
                await asyncio.sleep(ASK_AGAIN_SECONDS)
        self.told(uid_in(sandbox))
