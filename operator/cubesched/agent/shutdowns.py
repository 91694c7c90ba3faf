"""When sandboxes are to be stopped because their client's shutdownTime has come.

The time is compared with the machine's clock, which may be set right at any moment, so nobody is
woken later than a minute from now on its account alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from cubesched.agent.runtime import Ended
from cubesched.fleet.entries import Entry

LOOK_AGAIN_SECONDS: Final = 60.0
"""How wrong a clock that is set right meanwhile can make an alarm."""


def end_at_shutdown(entry: Entry) -> Ended:
    """Return how a request that its agent has claimed ends when its time has come."""
    if entry.phase == "Starting" and not entry.resume:
        return Ended(succeeded=False, message="shutdownTime reached before it ran")
    return Ended(succeeded=True, message="shutdownTime reached")


@dataclass(slots=True)
class Shutdowns:
    """One alarm for each request on the node that has a shutdownTime to come."""

    epoch_seconds: Callable[[], float]
    wake: Callable[[str], None]
    """Called with the request's uid when it should be looked at."""
    _alarms: dict[str, asyncio.TimerHandle] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return how many alarms are set."""
        return len(self._alarms)

    def has_come(self, entry: Entry) -> bool:
        """Tell whether the request's time has come; else have it looked at when it does."""
        self.forget(entry.uid)
        at = entry.wishes.shutdown_seconds
        if at is None:
            return False
        left = at - self.epoch_seconds()
        if left <= 0.0:
            return True
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(min(left, LOOK_AGAIN_SECONDS), self._ring, entry.uid)
        self._alarms[entry.uid] = alarm
        return False

    def forget(self, uid: str) -> None:
        """Wake nobody for this request any more."""
        alarm = self._alarms.pop(uid, None)
        if alarm is not None:
            alarm.cancel()

    def stop(self) -> None:
        """Wake nobody any more."""
        for uid in list(self._alarms):
            self.forget(uid)

    def _ring(self, uid: str) -> None:
        del self._alarms[uid]
        self.wake(uid)
