"""What one replica does beside placing: each part meets every event and looks round on time."""

from __future__ import annotations

from typing import Protocol

from cubesched.fleet.ledger import Change
from cubesched.scheduling.deadlines import StartDeadlines
from cubesched.scheduling.draining import Draining
from cubesched.scheduling.expiry import Expiry
from cubesched.scheduling.lostnodes import LostNodes
from cubesched.scheduling.means import Means
from cubesched.scheduling.quarantines import Quarantines
from cubesched.scheduling.resuming import Resuming
from cubesched.scheduling.shutdowns import Shutdowns
from cubesched.scheduling.upkeep import Upkeep


class Part(Protocol):
    """One concern of a replica, apart from the placing of what is pending."""

    def meet(self, change: Change) -> None:
        """Take one event of the stream, right after the ledger has applied it."""
        ...

    def sweep(self) -> None:
        """Do what only time triggers; called several times a second."""
        ...


def parts_of(means: Means) -> tuple[Part, ...]:
    """Return all parts, in the order in which they meet an event."""
    upkeep = Upkeep(means.fleet, means.inflight, means.clock, lambda: means.settings, means.owns)
    return (
        upkeep,
        StartDeadlines(upkeep),
        LostNodes(upkeep),
        Quarantines(means.fleet, means.clock),
        Shutdowns(upkeep),
        Expiry(means.fleet, means.clock, means.remover, means.owns),
        Draining(upkeep, means.reservations.members),
        Resuming(means, upkeep),
    )
