"""How long to wait before the next try: doubling, bounded, spread at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

FIRST_SECONDS: Final = 0.2
LONGEST_SECONDS: Final = 10.0


class Backoff:
    """Delays of 0.2 s doubling up to 10 s, each drawn from its upper half."""

    def __init__(
        self,
        rng: Callable[[], float],
        *,
        first_seconds: float = FIRST_SECONDS,
        longest_seconds: float = LONGEST_SECONDS,
    ) -> None:
        self._rng = rng
        self._first = first_seconds
        self._longest = longest_seconds
        self._next = first_seconds

    def next_seconds(self) -> float:
        """Return the next delay."""
        bound = self._next
        self._next = min(self._longest, bound * 2)
        return bound * (0.5 + 0.5 * self._rng())

    def reset(self) -> None:
        """Start again from the shortest delay, after a success."""
        self._next = self._first
