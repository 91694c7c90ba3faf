"""Decisions that wait for plugins: a few at a time for each Profile, beside all others.

While one waits the loop goes on with requests of other Profiles. When the answer comes the chosen
node is asked once more about everything that can be asked at once, since the fleet has moved on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush

from cubesched.fleet.entries import Entry
from cubesched.fleet.ledger import Change
from cubesched.scheduling.attempts import Attempts, No, Undecided, Yes
from cubesched.scheduling.ports import Clock
from cubesched.scheduling.queue import Item, Queue, Rank

_LOG = logging.getLogger(__name__)
MOST_AT_ONCE = 8
"""Decisions of one Profile that wait at the same time; its other requests wait for one to end."""
MOST_TRIES = 3
"""Decisions in a row of one request that were overtaken by what happened meanwhile."""
LOOK_AGAIN_SECONDS = 0.25

Concluded = Callable[[Item, Entry, Yes | No, float], None]
"""Called with the request as it now is, the answer, and the seconds the decision took."""


@dataclass(slots=True)
class Asking:
    """Every decision of this replica that waits, and those that wait for their turn to."""

    queue: Queue
    attempts: Attempts
    clock: Clock
    may_reserve: Callable[[], bool]
    concluded: Concluded
    moved: Callable[[], None]
    """Called when one that waited for its turn may be tried."""
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """By request uid."""
    _at_once: Counter[str] = field(default_factory=Counter)
    """How many decisions of each Profile wait."""
    _rooms: dict[str, list[Rank]] = field(default_factory=dict)
    """For each Profile with all places taken: who is next, by priority, then age."""
    _freed: asyncio.Event = field(default_factory=asyncio.Event)

    def __contains__(self, uid: str) -> bool:
        """Tell whether a decision for this request waits."""
        return uid in self.tasks

    def begin(self, item: Item, entry: Entry, asked: Undecided) -> None:
        """Ask the plugins for one request; its item stays busy until they have answered."""
        profile = asked.pipeline.profile
        if self._at_once[profile] >= MOST_AT_ONCE:
            heappush(self._rooms.setdefault(profile, []), item.rank)
            return
        self._at_once[profile] += 1
        task = asyncio.get_running_loop().create_task(self._run(item, entry, asked))
        self.tasks[item.uid] = task
        task.add_done_callback(lambda _: self._ended(item.uid, profile))

    def meet(self, change: Change) -> None:
        """Give up a decision for a request that no longer waits for one."""
        entry, task = change.after, self.tasks.get(change.uid)
        if task is not None and (entry is None or entry.phase != "Pending"):
            task.cancel()

    def call_next(self) -> None:
        """Have the first that waits for its turn tried, one of each Profile with a place left.

        A place may stay empty: who was called last was placed or refused without any question, or
        is gone.
        """
        for profile in [each for each in self._rooms if self._at_once[each] < MOST_AT_ONCE]:
            self._call(profile)

    def policy_changed(self) -> None:
        """Have everybody tried who waits for a turn: it may need none any more."""
        for uid in (rank[-1] for room in self._rooms.values() for rank in room):
            item = self.queue.items.get(uid)
            if item is not None and item.where == "busy" and uid not in self.tasks:
                self.queue.make_ready(item)
        self._rooms.clear()

    def room_freed(self) -> None:
        """Note that another reservation may be possible now."""
        self._freed.set()

    def stop(self) -> None:
        """Give up every decision."""
        self._rooms.clear()
        for task in self.tasks.values():
            task.cancel()

    async def _run(self, item: Item, entry: Entry, asked: Undecided) -> None:
        try:
            await self._decide(item, entry, asked)
        except Exception:
            _LOG.exception("the decision for %s failed", entry.key)
            self.queue.failure_hold(item, self.clock.monotonic())

    async def _decide(self, item: Item, entry: Entry, asked: Undecided) -> None:
        began = self.clock.monotonic()
        answer: Yes | No | Undecided = asked
        for _ in range(MOST_TRIES):
            if isinstance(answer, Undecided):
                answer = await self.attempts.ask(answer)
            if isinstance(answer, Yes):
                await self._until_it_may_reserve()
            if isinstance(answer, No) or self.attempts.stands(answer):
                self._conclude(item, entry, answer, self.clock.monotonic() - began)
                return
            answer = self.attempts.attempt(entry, item.attempts)
        self.queue.conflict_hold(item, self.clock.monotonic())

    def _conclude(self, item: Item, entry: Entry, answer: Yes | No, seconds: float) -> None:
        """Hand the answer on, unless the question was another by now."""
        now = self.attempts.fleet.ledger.entries.get(item.uid)
        if now is None or self.queue.items.get(item.uid) is not item:
            return
        if (now.generation, now.labels, now.phase) != (entry.generation, entry.labels, "Pending"):
            self.queue.make_ready(item)
        else:
            self.concluded(item, now, answer, seconds)

    async def _until_it_may_reserve(self) -> None:
        while not self.may_reserve():
            self._freed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                    await self._freed.wait()

    def _ended(self, uid: str, profile: str) -> None:
        del self.tasks[uid]
        self._at_once[profile] -= 1
        if not self._at_once[profile]:
            del self._at_once[profile]
        if profile in self._rooms:
            self._call(profile)

    def _call(self, profile: str) -> None:
        room = self._rooms[profile]
        while room:
            uid = heappop(room)[-1]
            item = self.queue.items.get(uid)
            if item is not None and item.where == "busy" and uid not in self.tasks:
                self.queue.make_ready(item)
                self.moved()
                break
        if not room:
            del self._rooms[profile]
