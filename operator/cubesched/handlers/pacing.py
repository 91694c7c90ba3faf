"""When background work runs: soon after it is poked, seldom otherwise, slower while it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cubesched.adapters.cluster.backoff import Backoff

QUIET_SECONDS = 0.05
LONGEST_HOLD_SECONDS = 0.2
RESYNC_SECONDS = 60.0
LEAST_AFTER_FAILURE_SECONDS = 1.0


class Pace:
    """Turns a burst of pokes into one run, at most 0.2 s after the first of them."""

    def __init__(self, rng: Callable[[], float]) -> None:
        """Use `rng`, numbers in [0, 1), to spread the resyncs of several replicas."""
        self._rng = rng
        self._poked = asyncio.Event()
        self._backoff = Backoff(rng)

    def poke(self) -> None:
        """Ask for a run; returns at once."""
        self._poked.set()

    async def until_due(self) -> None:
        """Return when there is cause to run: a burst of pokes has settled, or time for a resync."""
        self._backoff.reset()
        if not await self._poked_within(RESYNC_SECONDS * (0.75 + 0.5 * self._rng())):
            return
        loop = asyncio.get_running_loop()
        latest = loop.time() + LONGEST_HOLD_SECONDS
        while await self._poked_within(min(QUIET_SECONDS, latest - loop.time())):
            continue

    async def after_failure(self) -> None:
        """Return when it is time to try again what has just failed.

        A poke, after a second, cuts that short: what can never be written must not hold up
        what can.
        """
        seconds = self._backoff.next_seconds()
        await asyncio.sleep(min(seconds, LEAST_AFTER_FAILURE_SECONDS))
        if seconds > LEAST_AFTER_FAILURE_SECONDS:
            await self._poked_within(seconds - LEAST_AFTER_FAILURE_SECONDS)

    async def _poked_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._poked.wait()
        except TimeoutError:
            return False
        self._poked.clear()
        return True
