"""What the parts of a replica work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cubesched.core.scheduler_settings import Settings
from cubesched.fleet.fleet import Fleet
from cubesched.scheduling.inflight import InFlight
from cubesched.scheduling.ports import Clock, Meter, Policy, Remover
from cubesched.scheduling.reservations import Reservations


@dataclass(frozen=True, slots=True)
class Means:
    """What a part may use."""

    fleet: Fleet
    policy: Policy
    inflight: InFlight
    reservations: Reservations
    clock: Clock
    meter: Meter
    owns: Callable[[str], bool]
    """Whether a request, by uid, is this replica's share."""
    may_reserve: Callable[[], bool]
    """Whether this replica may begin another reservation now."""
    remover: Remover

    @property
    def settings(self) -> Settings:
        """The running policy's settings, or the defaults while there is none."""
        return running_settings(self.policy)


def running_settings(policy: Policy) -> Settings:
    """Return the running policy's settings, or the defaults while there is none."""
    running = policy.current
    return running.settings if running else Settings()
