"""Writes under way: one a request, settled by the stream and by nothing else.

A write is conditional on the version it was made from. Once the stream shows a newer version
(or the deletion) it has landed or never will. A lost reply is met by sending the same write
again: it either lands, or is refused because the object has moved on, which the stream shows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from cubesched.core.writing import Outcome
from cubesched.fleet.entries import Entry
from cubesched.scheduling.ports import Clock, Writer

_LOG = logging.getLogger(__name__)
UNSETTLED_SECONDS = 30.0
"""A write that was answered but that the stream does not settle in this time is given up."""
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.5, 8.0
LAG_MEMORY_SECONDS = 1.0


class Intent(StrEnum):
    """What a write is for."""

    RESERVE = "reserve"
    MOVE = "move"
    CONFIRM = "confirm"
    BIND = "bind"
    UNDO = "undo"
    REPORT = "report"
    END = "end"
    MARK = "mark"


_PRIORITY = {
    Intent.CONFIRM: 0,
    Intent.MOVE: 0,
    Intent.UNDO: 0,
    Intent.RESERVE: 1,
    Intent.BIND: 1,
    Intent.END: 1,
    Intent.REPORT: 2,
    Intent.MARK: 2,
}


@dataclass(slots=True)
class Write:
    """One write from its start until the stream settles it."""

    entry: Entry
    intent: Intent
    status: dict[str, Any]
    started: float
    may_repeat: Callable[[], bool]
    """Whether it may be sent again when its outcome is unknown."""
    settled: bool = False
    answered: float | None = None
    landed_reply: bool = False


Settled = Callable[[Write, Entry | None, str], None]
"""Called with the write, the request as it now is, and why it was rejected (else empty)."""


@dataclass(slots=True)
class InFlight:
    """All writes of this replica that the stream has not settled yet."""

    writer: Writer
    clock: Clock
    on_settled: Settled
    writes: dict[str, Write] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _one_settled: asyncio.Event = field(default_factory=asyncio.Event)
    _lag: float = 0.0
    _lag_at: float = -1.0

    def __contains__(self, uid: str) -> bool:
        """Tell whether a write for this request is under way."""
        return uid in self.writes

    def start(
        self,
        entry: Entry,
        intent: Intent,
        status: dict[str, Any],
        *,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> None:
        """Write `status`, conditional on the version of `entry`."""
        write = Write(entry, intent, status, self.clock.monotonic(), may_repeat)
        self.writes[entry.uid] = write
        task = asyncio.get_running_loop().create_task(self._send(write))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def meet(self, uid: str, after: Entry | None) -> None:
        """Settle the write for `uid` when the stream has passed the version it was made from."""
        write = self.writes.get(uid)
        if write is not None and (after is None or after.version > write.entry.version):
            if write.landed_reply and write.answered is not None:
                self._lag_at = self.clock.monotonic()
                self._lag = self._lag_at - write.answered
            self._settle(write, after, "")

    def lag_seconds(self) -> float:
        """Return how far the stream is behind acknowledged writes, as seen in the last second."""
        now = self.clock.monotonic()
        unmet = max(
            (
                now - write.answered
                for write in self.writes.values()
                if write.landed_reply and write.answered is not None
            ),
            default=0.0,
        )
        return max(unmet, self._lag if now - self._lag_at < LAG_MEMORY_SECONDS else 0.0)

    def give_up_old(self) -> None:
        """Let go of writes that were answered long ago and that the stream never showed."""
        now = self.clock.monotonic()
        for write in list(self.writes.values()):
            if write.answered is not None and now - write.answered > UNSETTLED_SECONDS:
                _LOG.warning("the stream does not show the outcome of a write to %s",
                             write.entry.key)  # fmt: skip
                self._settle(write, write.entry, "outcome not seen in time")

    async def drain(self, seconds: float) -> None:
        """Wait until the stream has settled everything, at most `seconds`; send nothing after.

        What a settled reservation leads to is waited for too: its confirmation starts before
        the reservation's write counts as settled by whoever watches `writes`.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.writes:
                    self._one_settled.clear()
                    await self._one_settled.wait()
        for task in self._tasks:
            task.cancel()

    async def _send(self, write: Write) -> None:
        try:
            await self._send_until_answered(write)
        except Exception:
            _LOG.exception("a %s of %s failed", write.intent, write.entry.key)
            self._let_go(write, "the write failed")

    def _let_go(self, write: Write, why: str) -> None:
        """Settle a write that will not be sent again, unless the stream was faster."""
        if not write.settled:
            self._settle(write, write.entry, why)

    async def _send_until_answered(self, write: Write) -> None:
        delay = FIRST_RETRY_SECONDS
        while not write.settled:
            outcome, version, message = await self._once(write)
            if write.settled:
                return
            if outcome is Outcome.UNKNOWN:
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_RETRY_SECONDS)
                if not write.may_repeat():
                    self._let_go(write, "it is not to be sent again")
                continue
            write.answered = self.clock.monotonic()
            write.landed_reply = outcome is Outcome.LANDED
            if outcome is Outcome.REJECTED:
                self._settle(write, write.entry, message or "rejected")
            elif version == str(write.entry.version):  # changed nothing: no event will come
                self._settle(write, write.entry, "")
            return

    async def _once(self, write: Write) -> tuple[Outcome, str, str]:
        entry = write.entry
        result = await self.writer.put_status(
            namespace=entry.namespace,
            name=entry.name,
            uid=entry.uid,
            resource_version=str(entry.version),
            status=write.status,
            priority=_PRIORITY[write.intent],
        )
        if result.outcome is Outcome.REJECTED:
            _LOG.warning(
                "the server rejects a %s of %s: %s", write.intent, entry.key, result.message
            )
        return result.outcome, result.resource_version, result.message

    def _settle(self, write: Write, after: Entry | None, rejected: str) -> None:
        write.settled = True
        if self.writes.get(write.entry.uid) is write:
            del self.writes[write.entry.uid]
        self._one_settled.set()
        self.on_settled(write, after, rejected)
