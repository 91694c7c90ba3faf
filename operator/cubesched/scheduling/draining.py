"""Empties the nodes that are to be drained, a few requests at a time.

What no machine runs yet goes straight back; what may run goes through `Evicting`, in which it
counts as before until its agent has stopped it. Only the rendezvous owner of a request acts, by
writes conditional on what it read; what a drain that is taken back has begun goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cubesched.core.decision import Reason
from cubesched.fleet.drainage import UNSTARTED
from cubesched.fleet.entries import Entry
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.ledger import Change
from cubesched.scheduling import statuses
from cubesched.scheduling.inflight import InFlight, Intent
from cubesched.scheduling.ports import Clock

WRITES_AT_ONCE: Final = 16
"""Of one replica, so that a drain never crowds out reservations."""
EVICTIONS_PER_NODE, EVICTIONS_IN_ALL = 8, 64
"""Sandboxes being stopped at a time; the replicas divide them among themselves, at least 1 each."""
EVICTION_SECONDS: Final = 60.0
"""A sandbox that takes longer to stop no longer keeps others waiting."""
AGAIN_SECONDS: Final = 5.0
"""The least time between two tries to move the same request."""
LOOKS_PER_SWEEP: Final = 1000
EVICTABLE: Final = frozenset({"Running", "Paused"})


@dataclass(slots=True)
class _Budget:
    """What this replica may still begin now."""

    writes: int
    evictions: int
    on_node: Counter[str]
    """Own evictions under way on each node."""
    most_on_node: int

    def may_evict_on(self, node: str) -> bool:
        return self.writes > 0 and self.evictions > 0 and self.on_node[node] < self.most_on_node

    def take_eviction(self, node: str) -> None:
        self.writes -= 1
        self.evictions -= 1
        self.on_node[node] += 1


@dataclass(slots=True)
class Draining:
    """Moves this replica's share of what is on draining nodes."""

    fleet: Fleet
    inflight: InFlight
    clock: Clock
    owns: Callable[[str], bool]
    members: Callable[[], Sequence[str]]
    _evicting: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Every eviction under way, whoever began it: its node, and since when (monotonic)."""
    _not_before: dict[str, float] = field(default_factory=dict)
    _at: int = 0

    def meet(self, change: Change) -> None:
        """Note since when a request is being evicted, by this replica's clock."""
        entry = change.after
        if entry is None or entry.phase != "Evicting":
            self._evicting.pop(change.uid, None)
        elif change.uid not in self._evicting:
            self._evicting[change.uid] = entry.node, self.clock.monotonic()
        self._not_before.pop(change.uid, None)

    def sweep(self) -> None:
        """Begin what the budget allows, node by node in turn."""
        ledger = self.fleet.ledger
        if not self.fleet.draining or not (ledger.exact and self.fleet.nodes_listed):
            return
        budget, looks = self._budget(), 0
        for node in self._in_turn():
            looks += len(ledger.by_node.get(node, ()))
            self._drain(node, budget)
            if looks >= LOOKS_PER_SWEEP or budget.writes <= 0:
                return

    def _in_turn(self) -> Iterator[str]:
        """Iterate over the draining nodes once, beginning where the last sweep ended."""
        names = sorted(self.fleet.draining)
        for _ in names:
            self._at = (self._at + 1) % len(names)
            yield names[self._at]

    def _budget(self) -> _Budget:
        """Return what is left of this replica's share of everything that is bounded."""
        since = self.clock.monotonic() - EVICTION_SECONDS
        mine = Counter(
            node for uid, (node, at) in self._evicting.items() if at > since and self.owns(uid)
        )
        writing = [w for w in self.inflight.writes.values() if w.intent is Intent.EVICT]
        mine.update(w.entry.node for w in writing if w.entry.phase in EVICTABLE)
        replicas = max(1, len(self.members()))
        return _Budget(
            writes=WRITES_AT_ONCE - len(writing),
            evictions=max(1, EVICTIONS_IN_ALL // replicas) - mine.total(),
            on_node=mine,
            most_on_node=max(1, EVICTIONS_PER_NODE // replicas),
        )

    def _drain(self, node: str, budget: _Budget) -> None:
        evicts = self.fleet.records[node].drain == "All"
        for entry in self.fleet.ledger.on_node(node):
            if entry.phase in UNSTARTED:
                is_stuck = bool(entry.resume) and not evicts  # it can be resumed nowhere else
                if budget.writes > 0 and not is_stuck:
                    budget.writes -= self._begin(entry, statuses.given_back)
            elif not (evicts and entry.phase in EVICTABLE and budget.may_evict_on(node)):
                continue
            elif self._begin(entry, statuses.evicting):
                budget.take_eviction(node)

    def _begin(self, entry: Entry, status: Callable[..., dict[str, Any]]) -> bool:
        """Write, unless somebody else should, or it was tried just now."""
        now = self.clock.monotonic()
        if entry.uid in self.inflight or now < self._not_before.get(entry.uid, now):
            return False
        if entry.unreadable or not (self.fleet.is_node_of(entry) and self.owns(entry.uid)):
            return False
        self._not_before[entry.uid] = now + AGAIN_SECONDS
        message = f"SandboxNode {entry.node} is being drained"
        body = status(entry, reason=Reason.DRAINED, message=message, wall=self.clock.wall())
        self.inflight.start(entry, Intent.EVICT, body)
        return True
