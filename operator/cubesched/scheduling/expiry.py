"""Finished requests are deleted when their ttlSecondsAfterFinished has passed.

Only the rendezvous owner deletes, one request after another, and only the very object in the very
version that it has seen finished.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from cubesched.api.timestamps import parsed
from cubesched.core.writing import Outcome, WriteResult
from cubesched.fleet.entries import Entry
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.ledger import Change
from cubesched.scheduling.ports import Clock, Remover
from cubesched.scheduling.statuses import copied

_LOG = logging.getLogger(__name__)
PAUSE_SECONDS: Final = 0.05
"""Between two deletions: at most 20 a second of one replica."""
AGAIN_SECONDS: Final = 5.0
"""The least time between two tries to delete the same request."""
SKEW_SECONDS: Final = 30.0
"""A finishedTime further ahead than this is none."""
_FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(slots=True)
class Expiry:
    """Knows when each finished request is to go, and lets its own go."""

    fleet: Fleet
    clock: Clock
    remover: Remover
    owns: Callable[[str], bool]
    _due: dict[str, float] = field(default_factory=dict)
    """When each is to be deleted (monotonic)."""
    _order: list[tuple[float, str]] = field(default_factory=list)
    """A heap of the same; what `_due` no longer says is skipped."""
    _ripe: dict[str, float] = field(default_factory=dict)
    """Those whose time has come, whoever owns them, and before when not to try again."""
    _asked: set[str] = field(default_factory=set)
    """Deleted as far as the server goes; somebody's finalizer may still hold them."""
    _task: asyncio.Task[None] | None = None
    _complaint: str = ""

    def meet(self, change: Change) -> None:
        """Note when a request that has finished is to go."""
        uid, entry = change.uid, change.after
        ttl = entry.wishes.ttl_seconds if entry and entry.phase in _FINISHED else None
        if entry is None or ttl is None:
            self._forget(uid)
        elif uid not in self._asked:
            self._ripe.pop(uid, None)
            due = self._due_at(entry, ttl)
            if self._due.get(uid) != due:
                self._due[uid] = due
            heappush(self._order, (due, uid))

    def _forget(self, uid: str) -> None:
        self._due.pop(uid, None)
        self._ripe.pop(uid, None)
        self._asked.discard(uid)

    def _due_at(self, entry: Entry, ttl: int) -> float:
        """Return when it goes: counted from finishedTime, or from now when that says nothing."""
        now, wall = self.clock.monotonic(), self.clock.wall()
        stamp = copied(entry).get("finishedTime")
        finished = parsed(stamp) if isinstance(stamp, str) else None
        if finished is None or finished > wall + SKEW_SECONDS:
            return self._due.get(entry.uid, now + ttl)
        return now + max(0.0, finished + ttl - wall)

    def sweep(self) -> None:
        """Begin to delete what is due, unless that is under way."""
        now = self.clock.monotonic()
        while self._order and self._order[0][0] <= now:
            due, uid = heappop(self._order)
            if self._due.get(uid) == due:
                self._ripe.setdefault(uid, 0.0)
        if self._ripe and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._delete_ripe())

    async def _delete_ripe(self) -> None:
        for uid, not_before in list(self._ripe.items()):
            entry = self.fleet.ledger.entries.get(uid)
            if entry is None or uid not in self._ripe or self.clock.monotonic() < not_before:
                continue
            if self.owns(uid):
                await self._delete(entry)
                await asyncio.sleep(PAUSE_SECONDS)

    async def _delete(self, entry: Entry) -> None:
        self._ripe[entry.uid] = self.clock.monotonic() + AGAIN_SECONDS
        result = await self.remover.delete(
            namespace=entry.namespace,
            name=entry.name,
            uid=entry.uid,
            resource_version=str(entry.version),
        )
        if result.outcome is Outcome.LANDED and entry.uid in self._ripe:
            del self._ripe[entry.uid]
            self._asked.add(entry.uid)
        self._complain(entry, result)

    def _complain(self, entry: Entry, result: WriteResult) -> None:
        """Say once why deletions fail; what was changed or deleted meanwhile is no failure."""
        is_failure = result.outcome in {Outcome.REJECTED, Outcome.UNKNOWN}
        message = result.message if is_failure else ""
        if is_failure and message != self._complaint:
            _LOG.warning("%s is past its ttl and cannot be deleted: %s", entry.key, message)
        self._complaint = message
