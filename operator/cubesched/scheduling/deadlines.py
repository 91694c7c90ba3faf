"""Requests that no agent has claimed in time: they are taken back and placed anew."""

from __future__ import annotations

from dataclasses import dataclass, field

from cubesched.core.decision import Reason
from cubesched.core.scheduler_settings import Confirmation
from cubesched.fleet.entries import Entry
from cubesched.fleet.ledger import Change
from cubesched.scheduling import statuses
from cubesched.scheduling.upkeep import Upkeep


@dataclass(slots=True)
class StartDeadlines:
    """Counts how long each request has waited for its agent, by this replica's own clock."""

    upkeep: Upkeep
    _waits_since: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Reservation id and since when it waits, by uid."""

    def meet(self, change: Change) -> None:
        """Note since when a request waits for its agent."""
        entry = change.after
        if entry is None or not _awaits_its_agent(entry):
            self._waits_since.pop(change.uid, None)
        elif self._waits_since.get(change.uid, ("", 0.0))[0] != entry.reservation_id:
            self._waits_since[change.uid] = (entry.reservation_id, self.upkeep.clock.monotonic())

    def sweep(self) -> None:
        """Take back what was not started in time."""
        if not self.upkeep.knows_enough:
            return
        deadline = self.upkeep.settings().start_deadline_seconds
        latest, wall = self.upkeep.clock.monotonic() - deadline, self.upkeep.clock.wall()
        for uid, (_, since) in self._waits_since.items():
            entry = self.upkeep.fleet.ledger.entries[uid]
            if since <= latest:
                self._take_back(entry, f"within {deadline:g} s")
            elif entry.phase == "Reserved" and entry.wishes.is_over(wall):
                # Its agent claims nothing any more; only what is Bound would be the agent's to end.
                self._take_back(entry, "before its shutdownTime")

    def _take_back(self, entry: Entry, when: str) -> None:
        if self.upkeep.may_write(entry):
            begin = "resume" if entry.resume else "start"
            status = statuses.given_back(
                entry,
                reason=Reason.START_DEADLINE,
                message=f"{entry.node} did not {begin} it {when}",
                wall=self.upkeep.clock.wall(),
            )
            self.upkeep.end(entry, status)


def _awaits_its_agent(entry: Entry) -> bool:
    """Tell whether the node's agent is next to act: it is bound, or the agent's to confirm."""
    is_agents = entry.phase == "Reserved" and entry.confirmation == Confirmation.AGENT
    return entry.phase == "Bound" or is_agents
