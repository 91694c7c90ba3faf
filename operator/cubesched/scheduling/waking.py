"""Waking: parked requests come back when a change has made a node feasible for their class.

A parked class had no feasible node. So it is enough to ask, after something that can only help,
whether it has one now: one member's attempt answers for all. What only time changes, the passing
of a refusal, is looked at for each request by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

from cubesched.fleet.entries import Entry
from cubesched.scheduling.attempts import Attempts, No, Undecided, Yes
from cubesched.scheduling.ports import Clock
from cubesched.scheduling.queue import Item, Queue

GATHER_SECONDS = 0.02
"""Changes that come together are looked at together."""
LATER_SECONDS = 0.5
"""When those that were not first for the freed room get their chance."""
TURN_SECONDS = 0.005
"""How long one look may take before the event loop gets its turn."""


@dataclass(slots=True)
class Waking:
    """Looks at parked classes, first those that go first, after something has helped."""

    queue: Queue
    attempts: Attempts
    clock: Clock
    not_before: Callable[[Item], float]
    note: Callable[[Item, Entry, No], None]
    """Told when a class now waits for another reason than it was told."""
    nos: dict[str, No] = field(default_factory=dict)
    """The last "no" of each request that has one."""
    passing: dict[str, float] = field(default_factory=dict)
    """When the next refusal of a request will have passed (monotonic), where it has any."""
    _helped: asyncio.Event = field(default_factory=asyncio.Event)
    _is_looking: bool = False
    _later_at: float = 0.0

    @property
    def is_under_way(self) -> bool:
        """Whether some that a change has helped are yet to be woken.

        Whatever the flush brings back meanwhile has not been forgotten: its turn would have come.
        """
        return self._helped.is_set() or self._is_looking or self.clock.monotonic() <= self._later_at

    def something_helped(self) -> None:
        """Note that room, a node, a template or a metric may have made something possible."""
        self._helped.set()

    def keep(self, uid: str, entry: Entry, no: No) -> None:
        """Remember why a request waits, and until when the next of its refusals stands."""
        self.nos[uid] = no
        seconds = self.attempts.refusal_passes_in(entry)
        if seconds is None:
            self.passing.pop(uid, None)
        else:
            self.passing[uid] = self.clock.monotonic() + seconds

    def forget(self, uid: str) -> None:
        """Drop what is known of a request that no longer waits here."""
        self.nos.pop(uid, None)
        self.passing.pop(uid, None)

    def look_at_passed(self) -> None:
        """Look at every parked request of whose refusals one has just passed."""
        now = self.clock.monotonic()
        for uid in [uid for uid, at in self.passing.items() if at <= now]:
            del self.passing[uid]
            item, entry = self.queue.items.get(uid), self.attempts.fleet.ledger.entries.get(uid)
            if item is not None and entry is not None and item.where == "parked":
                self._look_at_one(item, entry, now)

    def _look_at_one(self, item: Item, entry: Entry, now: float) -> None:
        """Wake it, or leave it with those that wait for the same as it does now."""
        answer = self.attempts.attempt(entry, item.attempts)
        if isinstance(answer, No):
            self._note_new_reason([item], answer)
            self.keep(item.uid, entry, answer)
            self.queue.park(item, answer.key, flush_at=item.held_until)
        else:
            self.queue.wake(item, not_before=self.not_before(item), now=now)

    async def step(self) -> None:
        """Wait for a change that can help, then look at every parked class once."""
        await self._helped.wait()
        await asyncio.sleep(GATHER_SECONDS)
        self._helped.clear()
        self._is_looking = True
        self.look_at_passed()  # else one of them would speak for a class it has left
        began = self.clock.monotonic()
        for key in self.queue.classes():
            if self.clock.monotonic() - began > TURN_SECONDS:
                await asyncio.sleep(0)
                began = self.clock.monotonic()
            self._look_at(key)
        self._is_looking = False

    def _look_at(self, key: Hashable) -> None:
        items = self.queue.members(key)
        entries = self.attempts.fleet.ledger.entries
        first = entries.get(items[0].uid) if items else None
        if first is None:
            return
        answer = self.attempts.attempt(first, items[0].attempts)
        if isinstance(answer, No):
            self._note_new_reason(items, answer)
            return
        room, now = self._room(items[0], answer), self.clock.monotonic()
        for item in items[:room]:
            self.queue.wake(item, not_before=self.not_before(item), now=now)
        if room < len(items) and not self._is_up_to_plugins(items[0]):
            self._later_at = now + LATER_SECONDS
            asyncio.get_running_loop().call_later(LATER_SECONDS, self._helped.set)

    def _room(self, first: Item, answer: Yes | Undecided) -> int:
        """Return how many of a class to wake: one where only asking its plugins can tell."""
        return 1 if self._is_up_to_plugins(first) else self.attempts.room_like(answer)

    def _is_up_to_plugins(self, item: Item) -> bool:
        known = self.nos.get(item.uid)
        return known is not None and known.was_asked

    def placed(self, key: Hashable) -> None:
        """Note that plugins that are waited for have let one of this class through."""
        for item in self.queue.members(key):
            self.nos[item.uid] = replace(self.nos[item.uid], was_asked=False)
        self.something_helped()

    def _note_new_reason(self, items: list[Item], answer: No) -> None:
        """Tell a whole class that it now waits for something else; its next try is unchanged."""
        for item in items:
            known, entry = self.nos.get(item.uid), self.attempts.fleet.ledger.entries.get(item.uid)
            if entry is not None and known is not None and known.reason != answer.reason:
                self.nos[item.uid] = answer
                item.attempts += 1
                self.note(item, entry, answer)
