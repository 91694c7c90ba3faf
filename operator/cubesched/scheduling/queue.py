"""Which request is tried next: by priority, then age; and when those that wait are tried again.

Ready ones are in a heap. Those held for a time (backoff) come back by the clock. Those that no
node can take are parked by class (requests that any change helps alike) and come back when a
change makes a node feasible for the class, or, as a safety net, by the flush.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Literal

Where = Literal["ready", "held", "parked", "busy"]
Rank = tuple[int, str, str]
CONFLICT_FIRST_SECONDS, CONFLICT_LAST_SECONDS = 0.05, 2.0
FAILURE_FIRST_SECONDS, FAILURE_LAST_SECONDS = 1.0, 8.0


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
    failures: int = 0
    """Writes in a row that the server would not take; nothing to do with the request's fit."""
    tried_at: float = -1.0
    held_until: float = 0.0
    flushed: bool = False
    """Came back by the flush, not because something changed."""
    key: Hashable = None
    placed_as: Rank = (0, "", "")
    """The rank under which it is ready or parked: its priority may change meanwhile."""

    @property
    def rank(self) -> Rank:
        """Smaller goes first."""
        return (-self.priority, self.created, self.uid)


@dataclass(slots=True)
class Queue:
    """All pending requests of this replica, each in one place."""

    random: Callable[[], float]
    items: dict[str, Item] = field(default_factory=dict)
    _parked: dict[Hashable, list[Rank]] = field(default_factory=dict)
    """For each class the ranks of its members, in order; a rank ends in the uid."""
    _ready: list[Rank] = field(default_factory=list)
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
        item.where, item.placed_as = "ready", item.rank
        heappush(self._ready, item.placed_as)

    def take(self) -> Item | None:
        """Return the next one to try, now busy; None when none is ready."""
        while self._ready:
            rank = heappop(self._ready)
            item = self.items.get(rank[-1])
            if item is not None and item.where == "ready" and item.placed_as == rank:
                item.where = "busy"
                return item
        return None

    def next_ready(self) -> str:
        """Return the uid of the one that would be taken next; empty when none is ready."""
        return self._ready[0][-1] if self._ready else ""

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
        item.placed_as = item.rank
        insort(self._parked.setdefault(key, []), item.placed_as)
        heappush(self._timed, (flush_at, item.uid, "parked"))

    def conflict_hold(self, item: Item, now: float) -> None:
        """Hold it for 50 ms times 2^k, give or take half, up to 2 s."""
        delay = min(CONFLICT_LAST_SECONDS, CONFLICT_FIRST_SECONDS * 2 ** min(item.conflicts, 10))
        item.conflicts += 1
        self.hold(item, now + delay * (0.5 + self.random()))

    def failure_hold(self, item: Item, now: float) -> None:
        """Hold it after a write that the server would not take: 1 s times 2^k, up to 8 s."""
        delay = min(FAILURE_LAST_SECONDS, FAILURE_FIRST_SECONDS * 2 ** min(item.failures, 10))
        item.failures += 1
        self.hold(item, now + delay * (0.5 + 0.5 * self.random()))

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
                self.make_ready(item)
                item.flushed = where == "parked"

    def next_due(self) -> float | None:
        """Return when `release_due` has something to do next; may be early, never late."""
        return self._timed[0][0] if self._timed else None

    def classes(self) -> list[Hashable]:
        """Return the classes that have parked members, first those whose first goes first."""
        return sorted(self._parked, key=lambda key: self._parked[key][0])

    def members(self, key: Hashable) -> list[Item]:
        """Return the parked members of a class in their order; none when it has none left."""
        return [self.items[rank[-1]] for rank in self._parked.get(key, ())]

    def count(self, where: Where) -> int:
        """Return how many requests are in one place."""
        return sum(item.where == where for item in self.items.values())

    def _leave(self, item: Item) -> None:
        if item.where == "parked":
            ranks = self._parked[item.key]
            del ranks[bisect_left(ranks, item.placed_as)]
            if not ranks:
                del self._parked[item.key]
        item.flushed = False
