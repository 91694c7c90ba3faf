"""Requests whose shutdownTime passes while they wait for a node: they have failed.

One that is on a node is its agent's to stop. Nobody reserves a node for one whose time has passed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cubesched.api.timestamps import timestamp
from cubesched.fleet.entries import Entry
from cubesched.fleet.ledger import Change
from cubesched.scheduling import statuses
from cubesched.scheduling.upkeep import Upkeep


@dataclass(slots=True)
class Shutdowns:
    """Ends what waits for longer than its client wanted."""

    upkeep: Upkeep
    _ends: dict[str, float] = field(default_factory=dict)
    """Unix time at which the wait of each request ends, for those that have one."""

    def meet(self, change: Change) -> None:
        """Note until when a request may wait."""
        entry = change.after
        is_waiting = entry is not None and entry.phase == "Pending"
        at = entry.wishes.shutdown_seconds if entry is not None and is_waiting else None
        if at is None:
            self._ends.pop(change.uid, None)
        else:
            self._ends[change.uid] = at

    def sweep(self) -> None:
        """End the wait of those whose time has come."""
        wall = self.upkeep.clock.wall()
        for uid, at in self._ends.items():
            if at <= wall:
                self._end(self.upkeep.fleet.ledger.entries[uid], at, wall)

    def _end(self, entry: Entry, at: float, wall: float) -> None:
        if self.upkeep.may_write(entry):
            status = statuses.failed(
                entry,
                condition=statuses.READY,
                reason="Finished",
                message=f"shutdownTime {timestamp(at)} passed before it was placed",
                wall=wall,
            )
            self.upkeep.end(entry, status)
