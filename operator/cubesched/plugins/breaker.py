"""The circuit breaker of plugins that are waited for: one that keeps failing is left alone a while.

Closed: every call goes through. So many failures in a row open it: calls fail at once. After the
cooldown one call tries; if it succeeds the breaker closes, else it stays open for as long again.
Calls may run side by side: one that began before the breaker opened says nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cubesched.core.errors import PluginError


class Breaker:
    """Owned by the event loop; `clock` gives seconds that only grow."""

    def __init__(
        self, failures: int, cooldown_seconds: float, *, clock: Callable[[], float]
    ) -> None:
        self._most, self._cooldown_seconds, self._clock = failures, cooldown_seconds, clock
        self._failures, self._last = 0, ""
        self._opened_at = 0.0
        self._is_trying = False

    @property
    def is_open(self) -> bool:
        """Tell whether it is open; also while one call tries."""
        return self._failures >= self._most

    @property
    def why(self) -> str:
        """Say why it is open: `3 calls in a row failed, the last: no answer within 100 ms`."""
        calls = "1 call" if self._failures == 1 else f"{self._failures} calls in a row"
        return f"{calls} failed, the last: {self._last}" if self.is_open else ""

    @property
    def is_trying(self) -> bool:
        """Tell whether one call tries just now."""
        return self._is_trying

    @contextmanager
    def guarding(self, plugin: str) -> Iterator[None]:
        """Count the call inside; raises PluginError at once when it is not to be made now.

        A PluginError is a failure. Whatever else ends the call, such as giving it up, says nothing.
        """
        is_try = self._admit(plugin)
        try:
            yield
        except PluginError as error:
            if is_try or not self.is_open:
                self._fail(error.message)
            raise
        else:
            if is_try or not self.is_open:
                self._failures = 0
        finally:
            if is_try:
                self._is_trying = False

    def _admit(self, plugin: str) -> bool:
        """Return whether this is the one call that tries."""
        if not self.is_open:
            return False
        left = self._opened_at + self._cooldown_seconds - self._clock()
        if left > 0:
            raise PluginError(plugin, f"not asked for another {left:.1f} s: {self.why}")
        if self._is_trying:
            raise PluginError(plugin, f"not asked while one call tries: {self.why}")
        self._is_trying = True
        return True

    def _fail(self, message: str) -> None:
        self._failures += 1
        self._last = message
        if self.is_open:
            self._opened_at = self._clock()
