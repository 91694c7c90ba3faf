"""Nodes that refuse again and again are left out for a while, longer each time.

Each replica judges by what the stream shows it: every request carries its last refusals, so one
that has just started knows what the others know. It takes several refusals by several different
requests with nothing begun on the node meanwhile, since a request that everybody refuses says
nothing about nodes. And at most a share of the fleet is out at a time: when most nodes refuse,
the fault is not theirs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cubesched.api.timestamps import unix_seconds
from cubesched.fleet.entries import Entry
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.ledger import Change
from cubesched.fleet.objects import Refusal
from cubesched.fleet.quarantine import Quarantine
from cubesched.scheduling.ports import Clock

WINDOW_SECONDS: Final = 300.0
"""How old a refusal may be to count."""
LEAST_REFUSALS, LEAST_REQUESTS = 5, 3
"""How many it takes, and by how many different requests."""
FIRST_SECONDS, LONGEST_SECONDS = 30.0, 600.0
"""How long a node is out the first time, and at most; doubled with each time in between."""
MOST_SHARE: Final = 10
"""One node in so many may be out at a time, and at least one."""
MEMORY_SECONDS: Final = 3600.0
"""How long it is remembered that a node was out, when nothing begins there any more."""
MOST_KEPT: Final = 64
"""Refusals kept of one node."""
FORGET_SECONDS: Final = 10.0
"""How often what is old is looked for."""


class _Evidence(NamedTuple):
    at: float
    """Monotonic."""
    request: str
    reason: str


@dataclass(slots=True)
class _Record:
    """What one node, as one object, has done lately."""

    uid: str
    refusals: deque[_Evidence] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))
    succeeded_at: float = float("-inf")
    """When a request was last seen to run there."""
    times_out: int = 0
    """In a row, with no success after the node came back."""
    until: float = float("-inf")
    """End of its last quarantine."""

    def counting(self, now: float) -> list[_Evidence]:
        """Return the refusals that speak against the node now."""
        since = max(now - WINDOW_SECONDS, self.succeeded_at, self.until)
        return sorted(refusal for refusal in self.refusals if refusal.at > since)

    def is_spent(self, now: float) -> bool:
        """Tell whether nothing here can speak for or against the node any more."""
        memory = MEMORY_SECONDS if self.times_out else 0.0
        newest = max((refusal.at for refusal in self.refusals), default=self.succeeded_at)
        return now > max(
            newest + WINDOW_SECONDS, self.succeeded_at + WINDOW_SECONDS, self.until + memory
        )


@dataclass(slots=True)
class Quarantines:
    """Collects refusals and successes of every node, and decides who is out."""

    fleet: Fleet
    clock: Clock
    _records: dict[str, _Record] = field(default_factory=dict)
    _suspects: set[str] = field(default_factory=set)
    """Nodes to be judged: refused something since, or over the limit while others are out."""
    _out: dict[str, Quarantine] = field(default_factory=dict)
    _swept_at: float = float("-inf")

    # Evidence

    def meet(self, change: Change) -> None:
        """Take what a change says of nodes."""
        before, after = change.before, change.after
        if after is None:
            return
        # That a paused sandbox finds no room to be resumed says nothing of the machine.
        if after.status.refusals and after.phase != "Paused":
            known = before.status.refusals if before is not None else ()
            for refusal in after.status.refusals:
                if refusal not in known:
                    self._note_refusal(after, refusal, is_news=before is not None)
        if after.phase == "Running" and (before is None or before.phase != "Running"):
            self._note_success(after, is_news=before is not None)

    def _note_refusal(self, entry: Entry, refusal: Refusal, *, is_news: bool) -> None:
        at = self._seen_at(refusal.time, is_news=is_news)
        if at > self.clock.monotonic() - WINDOW_SECONDS:
            self._record(refusal.node).refusals.append(_Evidence(at, entry.uid, refusal.reason))
            self._suspects.add(refusal.node)

    def _note_success(self, entry: Entry, *, is_news: bool) -> None:
        ready = next((c for c in entry.status.conditions if c.type == "Ready"), None)
        at = self._seen_at(ready.last_transition_time if ready else "", is_news=is_news)
        if at <= self.clock.monotonic() - WINDOW_SECONDS:
            return
        if entry.node in self._records or not is_news:
            record = self._record(entry.node)
            record.succeeded_at = max(record.succeeded_at, at)
            record.times_out *= at <= record.until

    def _record(self, node: str) -> _Record:
        """Return what is known of a node; one created anew under its name starts with nothing."""
        known, record = self.fleet.records.get(node), self._records.get(node)
        uid = known.uid if known is not None else ""
        if record is None or (uid and record.uid and record.uid != uid):
            record = self._records[node] = _Record(uid)
        record.uid = record.uid or uid
        return record

    def _seen_at(self, stamp: str, *, is_news: bool) -> float:
        """Return when something happened (monotonic), by its stamp only when it is no news."""
        age = 0.0 if is_news else max(0.0, self.clock.wall() - unix_seconds(stamp))
        return self.clock.monotonic() - age

    # Verdicts

    def sweep(self) -> None:
        """Let out whose time is over, judge who is suspected, forget what is old."""
        now, before = self.clock.monotonic(), dict(self._out)
        for node in before:
            if node not in self.fleet.records or self._record(node).until <= now:
                del self._out[node]
        for node in self._to_judge():
            self._judge(node, now)
        if self._out != before:
            self.fleet.quarantine(self._out)
        if now - self._swept_at >= FORGET_SECONDS:
            self._swept_at = now
            self._records = {n: r for n, r in self._records.items() if not r.is_spent(now)}
            self._suspects &= self._records.keys()

    def _to_judge(self) -> Iterator[str]:
        """Iterate over suspects as long as one more node may be out."""
        most = max(1, len(self.fleet.records) // MOST_SHARE)
        for node in sorted(self._suspects):
            if len(self._out) >= most:
                return
            self._suspects.discard(node)
            yield node

    def _judge(self, node: str, now: float) -> None:
        if node in self._out or node not in self.fleet.records:
            return
        record = self._record(node)
        counting = record.counting(now)
        requests = {refusal.request for refusal in counting}
        if len(counting) < LEAST_REFUSALS or len(requests) < LEAST_REQUESTS:
            return
        seconds = min(LONGEST_SECONDS, FIRST_SECONDS * 2**record.times_out)
        record.times_out, record.until = record.times_out + 1, now + seconds
        wall = self.clock.wall()
        self._out[node] = Quarantine(
            since=wall,
            until=wall + seconds,
            refusals=len(counting),
            requests=len(requests),
            last_reason=counting[-1].reason,
        )
