"""A replica's side: all reports, read whole each second.

A thread reads and decodes them, so that the loop only takes over what came of it. While Redis is
away the fleet keeps what it knows and lets it age; a read that fails says nothing about any node.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from cubesched.adapters.nodemetrics.client import DEADLINE_SECONDS, no_answer
from cubesched.adapters.telemetry.meter import Meter
from cubesched.core.errors import StoreUnavailable
from cubesched.fleet.metrics_layout import Decoded

log = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS: Final = 5.0
UP: Final = "cubesched_redis_up"
UNUSABLE: Final = "cubesched_node_reports_unusable"


class Source(ABC):
    """Reads the reports of one layout."""

    @abstractmethod
    def read(self, names: Sequence[str]) -> Decoded:
        """Return the reports, at least of the nodes `names`; StoreUnavailable when it cannot.

        Waits for the network: called in a thread of its own.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection; a read under way ends with an error."""


class Sink(Protocol):
    """Takes what one pass has read: a reading a layout, the one that wins first."""

    def __call__(self, *readings: Decoded) -> None:
        """Take them over; called on the event loop."""
        ...


class MetricsReader:
    """Reads all `sources` once an interval and hands the decoded reports to `sink`."""

    def __init__(
        self,
        sources: Sequence[Source],
        sink: Sink,
        meter: Meter,
        *,
        names: Callable[[], Sequence[str]],
        interval_seconds: float = 1.0,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        """`names` returns the nodes known now; a pass must be over within the deadline."""
        self._sources, self._sink, self._meter = sources, sink, meter
        self._names = names
        self._interval = interval_seconds
        self._deadline = deadline_seconds
        self._why_down = "not read yet"
        meter.set(UP, 0)

    @property
    def why_down(self) -> str | None:
        """Why the last read failed; None when it succeeded."""
        return self._why_down or None

    async def run(self) -> None:
        """Read for ever; a failure is counted, logged once, and tried again ever more slowly."""
        pause = self._interval
        try:
            while True:
                if await self._read_once():
                    pause = self._interval
                else:
                    pause = min(LONGEST_PAUSE_SECONDS, pause * 2)
                await asyncio.sleep(pause)
        finally:
            self._close()

    async def _read_once(self) -> bool:
        try:
            readings = await self._read_all()
        except StoreUnavailable as error:
            self._note_failure(str(error))
            return False
        self._note_success(readings)
        self._sink(*readings)
        return True

    async def _read_all(self) -> list[Decoded]:
        """Read every source; none or all, so that half an answer never looks like a whole one."""
        names = list(self._names())
        try:
            async with asyncio.timeout(self._deadline):
                return await asyncio.to_thread(lambda: [s.read(names) for s in self._sources])
        except TimeoutError as error:
            self._close()
            raise no_answer(self._deadline) from error

    def _close(self) -> None:
        for source in self._sources:
            source.close()

    def _note_failure(self, reason: str) -> None:
        if self._why_down != reason:
            log.warning("node metrics cannot be read, the last ones age: %s", reason)
        self._why_down = reason
        self._meter.set(UP, 0)

    def _note_success(self, readings: Sequence[Decoded]) -> None:
        if self._why_down:
            log.info("node metrics are read: %d reports", sum(len(r.names) for r in readings))
        self._why_down = ""
        self._meter.set(UP, 1)
        self._meter.forget(UNUSABLE)
        problems: Counter[str] = Counter()
        for reading in readings:
            problems.update(reading.problems)
        for problem, count in problems.items():
            self._meter.set(UNUSABLE, count, problem=problem)
