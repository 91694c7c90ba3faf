"""Resumes what is paused: a placement on the node that holds it, and on no other.

A paused request counts less than it was admitted with, so its room has to be reserved and
confirmed anew before its agent may let it run. While there is none it says so; it costs nothing
until something changes on its node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cubesched.core.snapshot import Safety
from cubesched.fleet.entries import Entry
from cubesched.fleet.ledger import Change
from cubesched.fleet.standing import Standing, standing_of
from cubesched.scheduling import statuses
from cubesched.scheduling.means import Means
from cubesched.scheduling.resumability import Blocked, added_weight, blocked
from cubesched.scheduling.upkeep import Upkeep

LEAST_SECONDS = 1.0
"""Between two resumes of one request, however often its client changes its mind."""
TOLD_AGAIN_SECONDS = 60.0
"""Between two texts with the same reason."""
FLUSHES = 4
"""A node that took a reservation and gave it back is asked again at the latest after so many
flush intervals: each time costs four writes."""
NODES_PER_SWEEP = 500
LOOKS_AT_ONCE = 100
"""Requests looked at in one go, about 5 ms; the others' turn comes with the next sweeps."""
_UNDER_WAY = frozenset({"Reserved", "Bound", "Starting"})


@dataclass(slots=True)
class Ask:
    """One request that is paused, or was resumed lately."""

    node: str = ""
    """Where it waits to be resumed; empty while it does not."""
    rank: tuple[int, str, str] = (0, "", "")
    """Smaller goes first: by priority, then age."""
    failures: int = 0
    """Resumes in a row of which nothing came."""
    not_before: float = 0.0
    told_at: float = float("-inf")


@dataclass(slots=True)
class Resuming:
    """Every request that waits to be resumed; this replica acts for its share."""

    means: Means
    upkeep: Upkeep
    asks: dict[str, Ask] = field(default_factory=dict)
    _by_node: dict[str, set[str]] = field(default_factory=dict)
    _standings: dict[str, Standing | None] = field(default_factory=dict)
    """How each node that has any stood when it was last looked at."""
    _later: dict[str, float] = field(default_factory=dict)
    """Those to be looked at again, and when; who was put off last is last."""
    _members: tuple[str, ...] = ()
    _at: int = 0

    # What happens

    def meet(self, change: Change) -> None:
        """Follow one request, and look again at those on the nodes it concerns."""
        self._follow(change)
        for node in {e.node for e in (change.before, change.after) if e is not None}:
            if node in self._by_node:
                self._look_at_node(node)

    def _follow(self, change: Change) -> None:
        before, entry, uid = change.before, change.after, change.uid
        if entry is None or not entry.node:
            self._set_node(uid, "")
            self.asks.pop(uid, None)
            self._later.pop(uid, None)
            return
        is_paused = entry.phase == "Paused" and not entry.unreadable
        asks = is_paused and not entry.wishes.is_paused
        self._later.pop(uid, None)
        if asks or (is_paused and _blocked_condition(entry)):
            self._later[uid] = 0.0
            ask = self.asks.setdefault(uid, Ask())
            ask.rank = (-entry.priority(), entry.created, uid)
            if before is not None and before.phase in _UNDER_WAY:
                self._note_failure(ask, before)
        elif entry.phase == "Running" and uid in self.asks:
            self.asks[uid].failures = 0
        self._set_node(uid, entry.node if asks else "")
        if uid in self._later:
            self._look_at([uid])

    def _note_failure(self, ask: Ask, before: Entry) -> None:
        settings = self.means.settings
        delay = settings.initial_backoff_seconds * 2.0 ** min(ask.failures, 20)
        was_confirmed = before.phase != "Reserved"
        longest = FLUSHES * settings.flush_interval_seconds
        most = longest if was_confirmed else settings.max_backoff_seconds
        ask.failures += 1
        ask.not_before = self.means.clock.monotonic() + min(delay, most)

    def _set_node(self, uid: str, node: str) -> None:
        ask = self.asks.get(uid)
        if ask is None or ask.node == node:
            return
        if ask.node:
            self._by_node[ask.node].discard(uid)
            if not self._by_node[ask.node]:
                del self._by_node[ask.node]
                self._standings.pop(ask.node, None)
        if node:
            self._by_node.setdefault(node, set()).add(uid)
        ask.node = node

    # What time and the nodes do

    def sweep(self) -> None:
        """Look at those whose time has come, and at nodes that stand differently than before."""
        members, now = tuple(self.means.reservations.members()), self.means.clock.monotonic()
        if members != self._members:
            self._members = members
            self._later.update(dict.fromkeys(self.asks, 0.0))
        due = [uid for uid, at in self._later.items() if at <= now]
        self._look_at(due[:LOOKS_AT_ONCE])
        nodes = list(self._by_node)
        self._at = self._at + NODES_PER_SWEEP if self._at + NODES_PER_SWEEP < len(nodes) else 0
        for node in nodes[self._at : self._at + NODES_PER_SWEEP]:
            self._look_at_node(node)

    def _look_at_node(self, node: str) -> None:
        """Look at all on a node if it has got better in any way since the last look."""
        standing, before = self._standing(node), self._standings.get(node)
        self._standings[node] = standing
        if standing is not None and (before is None or standing.is_better_than(before)):
            self._look_at(tuple(self._by_node[node]))

    def _standing(self, node: str) -> Standing | None:
        return standing_of(
            self.means.fleet,
            node,
            monotonic=self.means.clock.monotonic(),
            max_age_seconds=self.means.settings.guards.metrics_max_age_seconds,
        )

    # What is done about it

    def _look_at(self, uids: Iterable[str]) -> None:
        entries = self.means.fleet.ledger.entries
        in_turn = sorted(uids, key=lambda uid: self.asks[uid].rank)
        for uid in in_turn[:LOOKS_AT_ONCE]:
            entry = entries.get(uid)
            if entry is None or not _still_asks(entry, self.asks[uid]):
                continue  # a list has changed it, and its own change is still to be followed
            if self.means.owns(uid):
                self._act(entry, self.asks[uid])
            else:
                self._later.pop(uid, None)
        for uid in in_turn[LOOKS_AT_ONCE:]:
            self._again(uid, 0.0)

    def _again(self, uid: str, at: float) -> None:
        self._later.pop(uid, None)
        self._later[uid] = at

    def _act(self, entry: Entry, ask: Ask) -> None:
        now = self.means.clock.monotonic()
        if entry.wishes.is_over(self.means.clock.wall()):
            self._later.pop(entry.uid, None)  # its agent is about to end it
            return
        if now < ask.not_before or entry.uid in self.means.inflight:
            self._again(entry.uid, max(now, ask.not_before))
            return
        self._later.pop(entry.uid, None)
        if not ask.node:
            self._tell(entry, ask, None)
            return
        standing = self._standing(ask.node)
        if standing is None or not self._knows_enough_of(entry, standing):
            self._again(entry.uid, now)
            return
        why = blocked(entry, standing)
        if why is not None:
            self._tell(entry, ask, why)
        elif self.means.may_reserve():
            ask.not_before = now + LEAST_SECONDS
            self.means.reservations.resume(entry, added_weight(entry))
        else:
            self._again(entry.uid, now)

    def _knows_enough_of(self, entry: Entry, standing: Standing) -> bool:
        """Tell whether what this replica knows of the node is more than that it has just begun."""
        fleet = self.means.fleet
        return (
            fleet.ledger.exact
            and fleet.nodes_listed
            and fleet.is_node_of(entry)
            and standing.safety is not Safety.AWAITING_REPORT
        )

    def _tell(self, entry: Entry, ask: Ask, why: Blocked | None) -> None:
        """Say why it is not resumed, or take that back; only what is new, and not too often."""
        now = self.means.clock.monotonic()
        told = _blocked_condition(entry)
        if told == (why and (why.reason, why.message)):
            return
        is_news = why is None or told is None or told[0] != why.reason
        due = ask.told_at + (LEAST_SECONDS if is_news else TOLD_AGAIN_SECONDS)
        if due > now or not self.upkeep.may_write(entry):
            self._again(entry.uid, due)
            return
        ask.told_at = now
        if why is None:
            status = statuses.unblocked(entry)
        else:
            status = statuses.resume_blocked(
                entry, reason=why.reason, message=why.message, wall=self.means.clock.wall()
            )
        self.upkeep.mark(entry, status)


def _still_asks(entry: Entry, ask: Ask) -> bool:
    """Tell whether a request is as it was followed: paused, and to be resumed if it asked so."""
    is_paused = entry.phase == "Paused" and not entry.unreadable
    return is_paused and not (ask.node and entry.wishes.is_paused)


def _blocked_condition(entry: Entry) -> tuple[str, str] | None:
    """Return reason and message of the condition that says it is blocked; None without one."""
    for known in entry.status.conditions:
        if known.type == statuses.RESUME_BLOCKED and known.status == "True":
            return known.reason, known.message
    return None
