"""How many writes of one kind may be made: a rate, of which little can be saved up."""

from __future__ import annotations

from collections.abc import Callable


class Budget:
    """Fills with time, up to one second's worth and at least one."""

    def __init__(self, per_second: float, *, monotonic: Callable[[], float]) -> None:
        self._rate, self._monotonic = per_second, monotonic
        self._filled_at = monotonic()
        self._left = 0.0

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left for now."""
        return self._left < 1.0

    def fill(self, *, share: float) -> None:
        """Add what has accrued since the last time; `share` of it is this process's."""
        now = self._monotonic()
        rate = self._rate * share
        self._left = min(max(1.0, rate), self._left + (now - self._filled_at) * rate)
        self._filled_at = now

    def spend(self) -> None:
        """Take one."""
        self._left -= 1.0
