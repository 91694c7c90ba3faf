"""Empties the nodes that are to be drained, a few requests at a time.

What no machine runs yet goes straight back; what may run goes through `Evicting`, in which it
counts as before until its agent has stopped it. Only the rendezvous owner of a request acts, by
writes conditional on what it read; what a drain that is taken back has begun goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from cubesched.core.decision import Reason
from cubesched.fleet.drainage import UNSTARTED
from cubesched.fleet.entries import Entry
from cubesched.fleet.ledger import Change
from cubesched.scheduling import statuses
from cubesched.scheduling.upkeep import Upkeep

EVICTIONS_PER_NODE, EVICTIONS_IN_ALL = 8, 64
"""Sandboxes being stopped at a time; the replicas divide them among themselves, at least 1 each."""
EVICTION_SECONDS: Final = 60.0
"""A sandbox that takes longer to stop no longer keeps others waiting."""
LOOKS_PER_SWEEP: Final = 1000
EVICTABLE: Final = frozenset({"Running", "Paused"})


@dataclass(slots=True)
class _Budget:
    """How many evictions this replica may still begin now."""

    in_all: int
    per_node: int
    on_node: Counter[str]
    """Its own under way on each node."""

    def allows(self, node: str) -> bool:
        return self.in_all > 0 and self.on_node[node] < self.per_node

    def take(self, node: str) -> None:
        self.in_all -= 1
        self.on_node[node] += 1


@dataclass(slots=True)
class Draining:
    """Moves this replica's share of what is on draining nodes."""

    upkeep: Upkeep
    members: Callable[[], Sequence[str]]
    _evicting: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Every eviction under way, whoever began it: its node, and since when (monotonic)."""
    _at: int = 0

    def meet(self, change: Change) -> None:
        """Note since when a request is being evicted, by this replica's clock."""
        entry = change.after
        if entry is None or entry.phase != "Evicting":
            self._evicting.pop(change.uid, None)
        elif change.uid not in self._evicting:
            self._evicting[change.uid] = entry.node, self.upkeep.clock.monotonic()

    def sweep(self) -> None:
        """Begin what the budget allows, node by node in turn."""
        fleet = self.upkeep.fleet
        if not (fleet.draining and self.upkeep.knows_enough):
            return
        budget, looks = self._budget(), 0
        for node in self._in_turn():
            looks += len(fleet.ledger.by_node.get(node, ()))
            self._drain(node, budget)
            if looks >= LOOKS_PER_SWEEP:
                return

    def _in_turn(self) -> Iterator[str]:
        """Iterate over the draining nodes once, beginning where the last sweep ended."""
        names = sorted(self.upkeep.fleet.draining)
        for _ in names:
            self._at = (self._at + 1) % len(names)
            yield names[self._at]

    def _budget(self) -> _Budget:
        """Return what is left of this replica's share of the evictions that are allowed."""
        since, owns = self.upkeep.clock.monotonic() - EVICTION_SECONDS, self.upkeep.owns
        mine = Counter(
            node for uid, (node, at) in self._evicting.items() if at > since and owns(uid)
        )
        writes = self.upkeep.inflight.writes.values()
        mine.update(write.entry.node for write in writes if write.status["phase"] == "Evicting")
        replicas = max(1, len(self.members()))
        return _Budget(
            in_all=max(1, EVICTIONS_IN_ALL // replicas) - mine.total(),
            per_node=max(1, EVICTIONS_PER_NODE // replicas),
            on_node=mine,
        )

    def _drain(self, node: str, budget: _Budget) -> None:
        fleet = self.upkeep.fleet
        evicts = fleet.records[node].drain == "All"
        for entry in fleet.ledger.on_node(node):
            if entry.phase in UNSTARTED:
                if evicts or not entry.resume:  # what is paused can be resumed nowhere else
                    self._move(entry, statuses.given_back)
            elif not (evicts and entry.phase in EVICTABLE and budget.allows(node)):
                continue
            elif self._move(entry, statuses.evicting):
                budget.take(node)

    def _move(self, entry: Entry, status: Callable[..., statuses.Status]) -> bool:
        """Write, unless somebody else should, or too much is under way."""
        if entry.unreadable or not self.upkeep.fleet.is_node_of(entry):
            return False
        if not self.upkeep.may_write(entry):
            return False
        message = f"SandboxNode {entry.node} is being drained"
        wall = self.upkeep.clock.wall()
        body = status(entry, reason=Reason.DRAINED, message=message, wall=wall)
        self.upkeep.end(entry, body)
        return True
