"""Requests whose node is gone, or has fallen silent: given back, marked, in the end ended.

A node is absent when its object was deleted, or replaced by another of the same name. It is silent
when its heartbeat has stopped while others were heard (`fleet.listening`). What no machine has
begun goes elsewhere in both cases. What has begun is never given to another node, since the old
machine may still run it: on an absent node it has failed at once, on a silent one it is marked,
and fails after `nodeLostGrace` of further silence.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cubesched.api.timestamps import timestamp
from cubesched.core.decision import Reason
from cubesched.fleet.entries import Entry
from cubesched.fleet.ledger import Change
from cubesched.fleet.listening import Silence
from cubesched.scheduling import statuses
from cubesched.scheduling.upkeep import Upkeep

NODES_PER_SWEEP = 500
_UNSTARTED = frozenset({"Reserved", "Bound"})
_TAKEN = frozenset({"Starting", "Running", "Paused", "Evicting"})


@dataclass(slots=True)
class LostNodes:
    """Looks for requests whose node is lost, at a part of the nodes each time."""

    upkeep: Upkeep
    _marked: set[str] = field(default_factory=set)
    """Requests that say their node is silent."""
    _at: int = -NODES_PER_SWEEP

    def meet(self, change: Change) -> None:
        """Note which requests say that their node is lost."""
        entry = change.after
        if entry is not None and entry.phase in _TAKEN and _says_lost(entry):
            self._marked.add(change.uid)
        else:
            self._marked.discard(change.uid)

    def sweep(self) -> None:
        """Act on what nodes have taken with them, and on what has come back."""
        if not self.upkeep.knows_enough:
            return
        fleet = self.upkeep.fleet
        silent = fleet.silent_nodes()
        for node in self._nodes_to_look_at():
            for entry in fleet.ledger.on_node(node):
                self._look_at(entry, silent.get(node))
        for uid in self._marked:
            entry = fleet.ledger.entries[uid]
            if entry.node not in silent and fleet.is_node_of(entry):
                self._restore(entry)

    def _nodes_to_look_at(self) -> list[str]:
        """Return every node that is missing, and a slice of the rest: one may be another by uid."""
        by_node, records = self.upkeep.fleet.ledger.by_node, self.upkeep.fleet.records
        missing = [node for node, entries in by_node.items() if entries and node not in records]
        names = self.upkeep.fleet.columns.names
        self._at = self._at + NODES_PER_SWEEP if self._at < len(names) else 0
        return missing + names[self._at : self._at + NODES_PER_SWEEP]

    def _look_at(self, entry: Entry, silence: Silence | None) -> None:
        if entry.unreadable:
            return
        if not self.upkeep.fleet.is_node_of(entry):
            if self._is_absent(entry):
                self._lose(entry, f"SandboxNode {entry.node} was deleted")
        elif silence is not None:
            self._miss(entry, silence)

    def _is_absent(self, entry: Entry) -> bool:
        """Tell whether the node is gone for certain, not only unknown here as yet.

        The two streams are not in step: a node younger than what this replica knows of nodes
        may well exist.
        """
        fleet = self.upkeep.fleet
        return entry.node_uid in fleet.deleted_uids or fleet.nodes_version >= entry.version

    def _miss(self, entry: Entry, silence: Silence) -> None:
        """Act on one request of a silent node."""
        settings = self.upkeep.settings()
        limit = settings.guards.metrics_max_age_seconds + settings.node_lost_grace_seconds
        if entry.phase in _UNSTARTED or silence.seconds >= limit:
            self._lose(entry, self._text(entry, silence))
        elif entry.phase in _TAKEN and entry.uid not in self._marked:
            self._mark(entry, silence, limit - silence.seconds)

    def _mark(self, entry: Entry, silence: Silence, seconds_left: float) -> None:
        if self.upkeep.may_write(entry):
            wall = self.upkeep.clock.wall()
            ends = timestamp(wall + seconds_left)
            text = f"{self._text(entry, silence)}; failed at {ends} unless it reports before"
            self.upkeep.mark(entry, statuses.node_silent(entry, message=text, wall=wall))

    def _text(self, entry: Entry, silence: Silence) -> str:
        return f"node {entry.node} has not reported since {self._heard(silence)}"

    def _heard(self, silence: Silence) -> str:
        """Say when the node was last heard, as people's clocks show it."""
        clock = self.upkeep.clock
        if silence.last_heard < 0:
            return f"this replica began to listen, {silence.seconds:.0f} s ago"
        return timestamp(clock.wall() - (clock.monotonic() - silence.last_heard))

    def _lose(self, entry: Entry, text: str) -> None:
        if not self.upkeep.may_write(entry):
            return
        wall = self.upkeep.clock.wall()
        if entry.phase in _UNSTARTED:
            status = statuses.given_back(entry, reason=Reason.NODE_LOST, message=text, wall=wall)
        elif entry.phase in _TAKEN:
            status = statuses.failed(
                entry, condition=statuses.READY, reason=Reason.NODE_LOST, message=text, wall=wall
            )
        else:  # a phase of a newer version: not ours to end
            return
        self.upkeep.end(entry, status)

    def _restore(self, entry: Entry) -> None:
        if self.upkeep.may_write(entry):
            wall = self.upkeep.clock.wall()
            self.upkeep.mark(entry, statuses.node_heard(entry, wall=wall))


def _says_lost(entry: Entry) -> bool:
    return any(
        known.type == statuses.READY and known.reason == Reason.NODE_LOST
        for known in entry.status.conditions
    )
