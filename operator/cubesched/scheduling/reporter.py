"""What waiting requests are told: first after a while, then on a new reason, else rarely.

A text is written only while the request has no other write under way, and only when it differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import nsmallest

from cubesched.api import REQUESTS
from cubesched.fleet.entries import Entry
from cubesched.scheduling import statuses
from cubesched.scheduling.attempts import Attempts, No, Undecided
from cubesched.scheduling.inflight import InFlight, Intent
from cubesched.scheduling.ports import Clock, Events
from cubesched.scheduling.queue import Item, Queue

FIRST_SECONDS, AGAIN_SECONDS = 2.0, 60.0
AHEAD_SECONDS = 2 * AGAIN_SECONDS
"""How far new reasons may run ahead of one word a minute: two are told at once, and a reason that
comes and goes costs no more than counts that do."""
MOST_AT_ONCE = 4
"""Reports under way at the same time: they must never crowd out reservations."""
LOOKS_AT_ONCE = 32
"""Requests decided on again in one go, most of which have nothing new to be told."""
TURN_SECONDS = 0.01
"""How long putting things in words may keep the event loop."""


@dataclass(slots=True)
class Told:
    """What a waiting request was last told, and what it should be told."""

    no: No
    due: float
    reason: str = ""
    paid_until: float = 0.0
    """Up to when the words so far would last at one in AGAIN_SECONDS."""

    @property
    def rank(self) -> tuple[bool, float]:
        """Smaller goes first: who waits for a new reason, then who has waited longest.

        Counts that change all the time would else keep the others from ever being told any.
        """
        return self.reason == self.no.reason, self.due


@dataclass(slots=True)
class Reporter:
    """Writes conditions and explanations of requests that wait, and posts their events."""

    queue: Queue
    attempts: Attempts
    inflight: InFlight
    events: Events
    clock: Clock
    told: dict[str, Told] = field(default_factory=dict)

    def note(self, item: Item, entry: Entry, no: No) -> None:
        """Remember why `item` waits; it will be told when the time has come."""
        now, shown = self.clock.monotonic(), _shown(entry)
        told = self.told.get(item.uid)
        if told is None:
            told = self.told[item.uid] = Told(no, item.since + FIRST_SECONDS, reason=shown)
        elif no.reason != shown:
            sooner = max(now, item.since + FIRST_SECONDS, told.paid_until - AHEAD_SECONDS)
            told.due = min(told.due, sooner)
        told.no = no

    def forget(self, uid: str) -> None:
        """Drop what is known of a request that no longer waits."""
        self.told.pop(uid, None)

    def tell_due(self) -> None:
        """Write to those whose time has come, a few at once."""
        now = self.clock.monotonic()
        free = MOST_AT_ONCE - sum(
            write.intent is Intent.REPORT for write in self.inflight.writes.values()
        )
        due = [(item, entry, told) for item, entry, told in self._waiting() if told.due <= now]
        for item, entry, told in nsmallest(LOOKS_AT_ONCE, due, key=lambda each: each[2].rank):
            if free <= 0 or self.clock.monotonic() - now > TURN_SECONDS:
                return
            free -= self._tell(item, entry, told, now)

    def _waiting(self) -> Iterator[tuple[Item, Entry, Told]]:
        """Iterate over those that can be told something: they wait, and no write is under way."""
        entries = self.attempts.fleet.ledger.entries
        for uid, told in self.told.items():
            item, entry = self.queue.items.get(uid), entries.get(uid)
            if item is None or entry is None or uid in self.inflight:
                continue
            if item.where in {"parked", "held"} and entry.phase == "Pending":
                yield item, entry, told

    def _tell(self, item: Item, entry: Entry, told: Told, now: float) -> int:
        """Say what is true now, which may be more than the last attempt knew."""
        answer = self.attempts.attempt(entry, item.attempts)
        if isinstance(answer, Undecided) and told.no.was_asked:
            answer = told.no  # what its plugins said last
        if not isinstance(answer, No):
            if item.where == "parked":  # a held one has its time
                self.queue.make_ready(item)
            return 0
        item.attempts += told.no.reason is not answer.reason  # a verdict like any other
        told.no = answer
        message, text = self.attempts.explain(answer)
        is_new = told.reason != told.no.reason
        told.due, told.reason = now + AGAIN_SECONDS, told.no.reason
        status = statuses.waiting(
            entry,
            reason=told.no.reason,
            message=message,
            explanation=text,
            attempts=item.attempts,
            next_attempt=self.clock.wall() + max(0.0, item.held_until - now),
            profile=told.no.profile,
            revision=told.no.revision,
            wall=self.clock.wall(),
        )
        if is_new:
            self._post(entry, message)
        if not _says_more(status, statuses.copied(entry)):
            return 0
        told.paid_until = max(now, told.paid_until) + AGAIN_SECONDS
        self.inflight.start(entry, Intent.REPORT, status)
        return 1

    def _post(self, entry: Entry, message: str) -> None:
        self.events.post(
            kind=REQUESTS.kind,
            namespace=entry.namespace,
            name=entry.name,
            uid=entry.uid,
            reason="FailedScheduling",
            note=message,
            action="Scheduling",
            type_="Warning",
        )


def _shown(entry: Entry) -> str:
    """Return the reason that people see on the request now."""
    return next((c.reason for c in entry.status.conditions if c.type == statuses.SCHEDULED), "")


def _says_more(new: statuses.Status, old: statuses.Status) -> bool:
    """Tell whether a reader would learn anything: counters alone are not worth a write."""
    ignored = {"attempts", "nextAttemptTime"}
    return {k: v for k, v in new.items() if k not in ignored} != {
        k: v for k, v in old.items() if k not in ignored
    }
