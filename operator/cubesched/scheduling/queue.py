"""Which request is tried next: by priority, then age; and when those that wait are tried again.

Ready ones are in a heap. Those held for a time (backoff) come back by the clock. Those that no
node can take are parked by class (requests that any change helps alike) and come back when a
change makes a node feasible for the class, or, as a safety net, by the flush.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Literal

Where = Literal["ready", "held", "parked", "busy"]
CONFLICT_FIRST_SECONDS, CONFLICT_LAST_SECONDS = 0.05, 2.0


@dataclass(slots=True)
class Item:
    """One pending request of this replica's share."""

    uid: str
    priority: int
    created: str
    since: float
    """When this replica first saw it pending (monotonic)."""
    where: Where = "ready"
    attempts: int = 0
    """Scheduling verdicts so far; infrastructure errors do not count."""
    rejections: int = 0
    """Verdicts "no" in a row: the exponent of the backoff."""
    conflicts: int = 0
    tried_at: float = -1.0
    held_until: float = 0.0
    flushed: bool = False
    """Came back by the flush, not because something changed."""
    key: Hashable = None

    @property
    def rank(self) -> tuple[int, str, str]:
        """Smaller goes first."""
        return (-self.priority, self.created, self.uid)


@dataclass(slots=True)
class Queue:
    """All pending requests of this replica, each in one place."""

    random: Callable[[], float]
    items: dict[str, Item] = field(default_factory=dict)
    parked: dict[Hashable, set[str]] = field(default_factory=dict)
    _ready: list[tuple[tuple[int, str, str], str]] = field(default_factory=list)
    _timed: list[tuple[float, str, Where]] = field(default_factory=list)

    def add(self, item: Item) -> None:
        """Take a request that is pending and not held by anything."""
        self.items[item.uid] = item
        self.make_ready(item)

    def forget(self, uid: str) -> None:
        """Drop a request that is no longer pending or no longer this replica's."""
        item = self.items.pop(uid, None)
        if item is not None:
            self._leave(item)

    def make_ready(self, item: Item) -> None:
        """Let it be tried as soon as its turn comes."""
        self._leave(item)
        item.where = "ready"
        heappush(self._ready, (item.rank, item.uid))

    def take(self) -> Item | None:
        """Return the next one to try, now busy; None when none is ready."""
        while self._ready:
            rank, uid = heappop(self._ready)
            item = self.items.get(uid)
            if item is not None and item.where == "ready" and item.rank == rank:
                item.where = "busy"
                return item
        return None

    def set_busy(self, item: Item) -> None:
        """Keep it from being tried while a write of it is under way."""
        self._leave(item)
        item.where = "busy"

    def hold(self, item: Item, until: float) -> None:
        """Try it again at `until` (monotonic), whatever happens before."""
        self._leave(item)
        item.where, item.held_until = "held", until
        heappush(self._timed, (until, item.uid, "held"))

    def park(self, item: Item, key: Hashable, *, flush_at: float) -> None:
        """Keep it until something makes its class feasible, at the latest until `flush_at`."""
        self._leave(item)
        item.where, item.key, item.held_until = "parked", key, flush_at
        self.parked.setdefault(key, set()).add(item.uid)
        heappush(self._timed, (flush_at, item.uid, "parked"))

    def conflict_hold(self, item: Item, now: float) -> None:
        """Hold it for 50 ms times 2^k, give or take half, up to 2 s."""
        delay = min(CONFLICT_LAST_SECONDS, CONFLICT_FIRST_SECONDS * 2 ** min(item.conflicts, 10))
        item.conflicts += 1
        self.hold(item, now + delay * (0.5 + self.random()))

    def backoff_seconds(self, item: Item, *, initial: float, longest: float) -> float:
        """Return the least time between two attempts after a "no", with jitter up to half."""
        delay = min(longest, initial * 2.0 ** max(0, min(item.rejections - 1, 20)))
        return delay * (0.75 + 0.5 * self.random())

    def wake(self, item: Item, *, not_before: float, now: float) -> None:
        """Let a parked one be tried again, but not before its backoff has passed."""
        if not_before <= now:
            self.make_ready(item)
        else:
            self.hold(item, not_before)

    def release_due(self, now: float) -> None:
        """Make ready what was held or parked until `now`."""
        while self._timed and self._timed[0][0] <= now:
            due, uid, where = heappop(self._timed)
            item = self.items.get(uid)
            if item is not None and item.where == where and item.held_until == due:
                item.flushed = where == "parked"
                self.make_ready(item)

    def next_due(self) -> float | None:
        """Return when `release_due` has something to do next; may be early, never late."""
        return self._timed[0][0] if self._timed else None

    def classes(self) -> Iterator[tuple[Hashable, list[Item]]]:
        """Iterate over parked classes, first those whose first member goes first."""
        ordered = [
            (key, sorted((self.items[uid] for uid in uids), key=lambda item: item.rank))
            for key, uids in self.parked.items()
        ]
        return iter(sorted(ordered, key=lambda pair: pair[1][0].rank))

    def count(self, where: Where) -> int:
        """Return how many requests are in one place."""
        return sum(item.where == where for item in self.items.values())

    def _leave(self, item: Item) -> None:
        if item.where == "parked":
            uids = self.parked.get(item.key)
            if uids is not None:
                uids.discard(item.uid)
                if not uids:
                    del self.parked[item.key]
        item.flushed = False
