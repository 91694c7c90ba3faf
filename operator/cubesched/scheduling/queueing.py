"""Which requests wait in this replica's queue, as the stream and its share of them change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cubesched.core.decision import Reason
from cubesched.fleet.entries import Entry
from cubesched.fleet.ledger import Change, Ledger
from cubesched.scheduling.counting import Counting
from cubesched.scheduling.inflight import InFlight
from cubesched.scheduling.ports import Clock
from cubesched.scheduling.queue import Item, Queue
from cubesched.scheduling.reporter import Reporter
from cubesched.scheduling.waking import Waking


@dataclass(frozen=True, slots=True)
class Queueing:
    """Keeps the queue to what is pending and this replica's; nothing is tried here."""

    queue: Queue
    ledger: Ledger
    inflight: InFlight
    waking: Waking
    reporter: Reporter
    counting: Counting
    clock: Clock
    owns: Callable[[str], bool]

    def meet(self, change: Change) -> None:
        """Take one event: what is pending waits here, what is anything else does not."""
        entry, item = change.after, self.queue.items.get(change.uid)
        if entry is None or entry.phase not in {"Pending", "Reserved"}:
            self._forget(change.uid)
        elif entry.phase == "Reserved":
            if item is not None:
                self.queue.set_busy(item)
        elif item is None:
            if self.owns(entry.uid):
                self._take_up(entry)
        elif change.before is not None:
            self._back_to_pending(item, change.before, entry)

    def _take_up(self, entry: Entry) -> None:
        item = Item(
            uid=entry.uid,
            priority=entry.priority(),
            created=entry.created,
            since=self.counting.first_seen.setdefault(entry.uid, self.clock.monotonic()),
            attempts=entry.status.attempts,
        )
        self.queue.add(item)

    def _back_to_pending(self, item: Item, before: Entry, entry: Entry) -> None:
        """Put a request back that was reserved, or that its owner has changed."""
        item.attempts = max(item.attempts, entry.status.attempts)
        if before.phase != "Pending":
            reason = next((c.reason for c in entry.status.conditions if c.type == "Scheduled"), "")
            if reason == Reason.CONFLICT:
                self.queue.conflict_hold(item, self.clock.monotonic())
            else:
                self.queue.make_ready(item)
        elif (before.generation, before.labels) != (entry.generation, entry.labels):
            item.priority, item.rejections = entry.priority(), 0
            self.queue.make_ready(item)
        elif item.where == "busy" and entry.uid not in self.inflight:
            self.queue.make_ready(item)

    def _forget(self, uid: str) -> None:
        self.queue.forget(uid)
        self.reporter.forget(uid)
        self.waking.forget(uid)

    def share_changed(self) -> None:
        """Take up what became this replica's share, leave what became another's."""
        for entry in self.ledger.entries.values():
            if entry.phase != "Pending":
                continue
            mine, known = self.owns(entry.uid), entry.uid in self.queue.items
            if mine and not known:
                self._take_up(entry)
            elif known and not mine and entry.uid not in self.inflight:
                self._forget(entry.uid)

    def wake_all(self) -> None:
        """Have everything tried that waits for a change: anything may have."""
        for item in list(self.queue.items.values()):
            if item.where == "parked":
                self.queue.make_ready(item)
