"""Bindings that come to nothing: never started in time, or bound to a node that is gone.

Only the rendezvous owner of a request acts, and only by writes conditional on what it read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cubesched.core.decision import Reason
from cubesched.core.scheduler_settings import Confirmation
from cubesched.fleet.entries import Entry
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.ledger import Change
from cubesched.scheduling import statuses
from cubesched.scheduling.inflight import InFlight, Intent
from cubesched.scheduling.ports import Clock, Policy

AGAIN_SECONDS = 5.0
"""The least time between two tries to end the same binding."""
NODES_PER_SWEEP = 500
_UNSTARTED = frozenset({"Reserved", "Bound"})
_TAKEN = frozenset({"Starting", "Running", "Paused", "Evicting"})


@dataclass(slots=True)
class Lifecycle:
    """Looks for bindings that have come to nothing, a part of the nodes each time."""

    fleet: Fleet
    policy: Policy
    inflight: InFlight
    clock: Clock
    owns: Callable[[str], bool]
    _bound_since: dict[str, tuple[str, float]] = field(default_factory=dict)
    _not_before: dict[str, float] = field(default_factory=dict)
    _at: int = -NODES_PER_SWEEP

    def meet(self, change: Change) -> None:
        """Note since when a request waits for its agent, by this replica's clock."""
        entry = change.after
        if entry is None or not _awaits_its_agent(entry):
            self._bound_since.pop(change.uid, None)
        elif self._bound_since.get(change.uid, ("", 0.0))[0] != entry.reservation_id:
            self._bound_since[change.uid] = (entry.reservation_id, self.clock.monotonic())
        self._not_before.pop(change.uid, None)

    def sweep(self) -> None:
        """Take back what was never started in time, end what its machine took with it."""
        if not (self.fleet.ledger.exact and self.fleet.nodes_listed):
            return
        for uid, (_, since) in list(self._bound_since.items()):
            self._check_deadline(self.fleet.ledger.entries[uid], since)
        for node in self._nodes_to_look_at():
            for entry in self.fleet.ledger.on_node(node):
                self._check_node(node, entry)

    def _nodes_to_look_at(self) -> list[str]:
        """Return every node that is missing, and a slice of the rest: one may be another by uid."""
        by_node, records = self.fleet.ledger.by_node, self.fleet.records
        missing = [node for node, entries in by_node.items() if entries and node not in records]
        names = self.fleet.columns.names
        self._at = self._at + NODES_PER_SWEEP if self._at < len(names) else 0
        return missing + names[self._at : self._at + NODES_PER_SWEEP]

    def _check_node(self, node: str, entry: Entry) -> None:
        if self.fleet.is_node_of(entry) or entry.unreadable:
            return
        if self._is_absent(entry) and self.owns(entry.uid):
            self._lose(node, entry)

    def _is_absent(self, entry: Entry) -> bool:
        """Tell whether the node is gone for certain, not only unknown here as yet.

        The two streams are not in step: a node younger than what this replica knows of nodes
        may well exist.
        """
        fleet = self.fleet
        return entry.node_uid in fleet.deleted_uids or fleet.nodes_version >= entry.version

    def _lose(self, node: str, entry: Entry) -> None:
        text = f"SandboxNode {node} was deleted"
        wall = self.clock.wall()
        if entry.phase in _UNSTARTED:
            status = statuses.given_back(entry, reason=Reason.NODE_LOST, message=text, wall=wall)
        elif entry.phase in _TAKEN:
            status = statuses.failed(
                entry, condition="Ready", reason=Reason.NODE_LOST, message=text, wall=wall
            )
        else:  # a phase of a newer version: not ours to end
            return
        self._write(entry, status)

    def _check_deadline(self, entry: Entry, since: float) -> None:
        policy = self.policy.current
        deadline = policy.settings.start_deadline_seconds if policy else 300.0
        if self.clock.monotonic() - since >= deadline and self.owns(entry.uid):
            begin = "resume" if entry.resume else "start"
            text = f"{entry.node} did not {begin} it within {deadline:g} s"
            status = statuses.given_back(
                entry, reason=Reason.START_DEADLINE, message=text, wall=self.clock.wall()
            )
            self._write(entry, status)

    def _write(self, entry: Entry, status: dict[str, Any]) -> None:
        now = self.clock.monotonic()
        if entry.uid not in self.inflight and now >= self._not_before.get(entry.uid, now):
            self._not_before[entry.uid] = now + AGAIN_SECONDS
            self.inflight.start(entry, Intent.END, status)


def _awaits_its_agent(entry: Entry) -> bool:
    """Tell whether the node's agent is next to act: it is bound, or the agent's to confirm."""
    is_agents = entry.phase == "Reserved" and entry.confirmation == Confirmation.AGENT
    return entry.phase == "Bound" or is_agents
