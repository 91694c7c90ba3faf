"""What one replica does beside placing: each part meets every event and looks round on time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cubesched.core.scheduler_settings import Settings
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.ledger import Change
from cubesched.scheduling.deadlines import StartDeadlines
from cubesched.scheduling.draining import Draining
from cubesched.scheduling.inflight import InFlight
from cubesched.scheduling.lostnodes import LostNodes
from cubesched.scheduling.ports import Clock, Meter, Policy
from cubesched.scheduling.reservations import Reservations
from cubesched.scheduling.upkeep import Upkeep


class Part(Protocol):
    """One concern of a replica, apart from the placing of what is pending."""

    def meet(self, change: Change) -> None:
        """Take one event of the stream, right after the ledger has applied it."""
        ...

    def sweep(self) -> None:
        """Do what only time triggers; called several times a second."""
        ...


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

    @property
    def settings(self) -> Settings:
        """The running policy's settings, or the defaults while there is none."""
        policy = self.policy.current
        return policy.settings if policy else Settings()


def parts_of(means: Means) -> tuple[Part, ...]:
    """Return all parts, in the order in which they meet an event."""
    upkeep = Upkeep(means.fleet, means.inflight, means.clock, lambda: means.settings, means.owns)
    return (
        upkeep,
        StartDeadlines(upkeep),
        LostNodes(upkeep),
        Draining(
            fleet=means.fleet,
            inflight=means.inflight,
            clock=means.clock,
            owns=means.owns,
            members=means.reservations.members,
        ),
    )
