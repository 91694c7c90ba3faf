"""The two clocks of this machine: one for people and heartbeats, one for measuring waits."""

from __future__ import annotations

import time


class SystemClock:
    """Real time; tests put a virtual clock with the same two members in its place."""

    def wall(self) -> float:
        """Return seconds since 1970; may jump."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that only rise, from an unknown start; the event loop's clock too."""
        return time.monotonic()
