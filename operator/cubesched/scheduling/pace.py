"""How many reservations this replica may have unresolved: its share, less when the stream lags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cubesched.core.scheduler_settings import Settings
from cubesched.scheduling.inflight import InFlight
from cubesched.scheduling.reservations import Reservations

MOST_UNRESOLVED = 16
SLOW_STREAM_SECONDS, STUCK_STREAM_SECONDS = 0.25, 2.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Asked before every reservation, be it for a new sandbox or a paused one."""

    inflight: InFlight
    reservations: Reservations
    settings: Callable[[], Settings]

    def allows_another(self) -> bool:
        """Tell whether one more reservation may be made now."""
        lag = self.inflight.lag_seconds()
        if lag > STUCK_STREAM_SECONDS:
            return False
        replicas = max(1, len(self.reservations.members()))
        budget = min(MOST_UNRESOLVED, max(1, self.settings().max_in_flight // replicas))
        if lag > SLOW_STREAM_SECONDS:
            budget = max(1, budget // 2)
        return self.reservations.unresolved < budget
