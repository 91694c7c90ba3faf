"""A replica's side: keeps its share of the routing records as the requests say they should be.

Redis may be away, slow or empty: what is to be written waits here, and when it answers again
everything is compared. No placement ever waits for any of this.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, cast

from redis.exceptions import NoPermissionError

from cubesched.adapters.cluster.backoff import Backoff
from cubesched.adapters.nodemetrics.client import drop_connections, open_redis, within_deadline
from cubesched.core.errors import StoreUnavailable

log = logging.getLogger(__name__)

KEY: Final = "cubesched:routes:1"
"""One hash; field = a sandbox's name, value = its record (`fleet.routes.Route`) as JSON. The
number is the layout's version."""
BATCH: Final = 250
"""Records made, sent, or compared without letting others have their turn."""
GATHER_SECONDS: Final = 0.02
LOOK_SECONDS: Final = 5.0
"""How often Redis is asked whether it is still the same one, and the least between comparisons."""
COMPARE_SECONDS: Final = 600.0
"""How often everything is compared without any cause that is known."""


class Source(Protocol):
    """Which records should stand, as far as this replica decides."""

    must_compare: bool
    changed: set[str]
    woken: asyncio.Event

    @property
    def is_known(self) -> bool:
        """Whether all requests and nodes are known: else nothing may be called stale."""
        ...

    def take_changed(self, most: int) -> list[str]:
        """Return up to `most` sandboxes to look at, which then count as looked at."""
        ...

    def decides(self, sandbox: str) -> bool:
        """Tell whether this replica says what stands for `sandbox`."""
        ...

    def record(self, sandbox: str) -> bytes | None:
        """Return what should stand for `sandbox` now; None for nothing."""
        ...

    def sandboxes(self, at_once: int) -> Iterator[list[str]]:
        """Yield all sandboxes that should have a record, after every `at_once` requests."""
        ...


class RoutePublisher:
    """Writes what has changed at once, and compares everything when there is cause to."""

    def __init__(self, redis_url: str, source: Source, *, rng: Callable[[], float]) -> None:
        """`rng` gives numbers in [0, 1), which spread what several replicas do."""
        self._redis = open_redis(redis_url)
        self._source = source
        self._rng = rng
        self._backoff = Backoff(rng)
        self._why_down = ""
        self._server = ""
        """Which Redis process answered last: another one may know less."""
        self._looked_at = self._compared_at = -COMPARE_SECONDS

    async def run(self) -> None:
        """Write and compare for ever; a failure is logged once, and tried again."""
        try:
            while True:
                try:
                    await self._catch_up()
                except StoreUnavailable as error:
                    self._note_failure(str(error))
                    await asyncio.sleep(self._backoff.next_seconds())
                else:
                    self._note_success()
                    await self._until_woken()
        finally:
            await self._redis.aclose()

    async def _until_woken(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._source.woken.wait()
        except TimeoutError:
            return
        await asyncio.sleep(GATHER_SECONDS)
        self._source.woken.clear()

    async def _catch_up(self) -> None:
        await self._look()
        now = asyncio.get_running_loop().time()
        if now - self._compared_at >= COMPARE_SECONDS * (0.75 + 0.5 * self._rng()):
            self._source.must_compare = True
        is_due = now - self._compared_at >= LOOK_SECONDS
        if self._source.must_compare and self._source.is_known and is_due:
            await self._compare()
            self._compared_at = now
        while batch := self._source.take_changed(BATCH):
            await self._write(batch)

    async def _look(self) -> None:
        """Find out whether Redis has been restarted or replaced, and may have lost records."""
        now = asyncio.get_running_loop().time()
        if now - self._looked_at < LOOK_SECONDS:
            return
        server = await self._run_id()
        if server != self._server:
            self._server, self._source.must_compare = server, True
        self._looked_at = now

    async def _run_id(self) -> str:
        """Return which Redis process answers; always the same text where it may not be asked."""
        try:
            info = await within_deadline(cast("Any", self._redis.info("server")))
        except StoreUnavailable as error:
            if isinstance(error.__cause__, NoPermissionError):
                return "unknown"
            raise
        return str(info.get("run_id", "unknown"))

    # Writing

    async def _write(self, sandboxes: Sequence[str]) -> None:
        """Make these records what they should be now; all are looked at again if that fails."""
        mine = [name for name in sandboxes if self._source.decides(name)]
        records = {name: self._source.record(name) for name in mine}
        written = {name: packed for name, packed in records.items() if packed}
        removed = [name for name, packed in records.items() if packed is None]
        pipeline: Any = self._redis.pipeline(transaction=False)
        if written:
            pipeline.hset(KEY, mapping=written)
        if removed:
            pipeline.hdel(KEY, *removed)
        if not records:
            return
        try:
            await within_deadline(pipeline.execute())
        except StoreUnavailable:
            self._source.changed.update(records)
            # After a failover the old connection may lead to a server that only reads.
            await drop_connections(self._redis)
            raise

    # Comparing

    async def _compare(self) -> None:
        """Write what is missing or wrong among all records, remove what is stale."""
        self._source.must_compare = False
        try:
            repaired = await self._repair()
        except StoreUnavailable:
            self._source.must_compare = True
            raise
        if repaired:
            log.info("routing records: %d written anew or removed", repaired)

    async def _repair(self) -> int:
        standing: set[str] = set()
        repaired = 0
        async for found in self._scan():
            standing |= found.keys()
            repaired += await self._write_all(
                [name for name, value in found.items() if not self._is_right(name, value)]
            )
        for sandboxes in self._source.sandboxes(2 * BATCH):
            repaired += await self._write_all([n for n in sandboxes if n not in standing])
            await asyncio.sleep(0)
        return repaired

    async def _write_all(self, sandboxes: Sequence[str]) -> int:
        for first in range(0, len(sandboxes), BATCH):
            await self._write(sandboxes[first : first + BATCH])
        return len(sandboxes)

    def _is_right(self, sandbox: str, value: bytes) -> bool:
        return not self._source.decides(sandbox) or self._source.record(sandbox) == value

    async def _scan(self) -> AsyncIterator[Mapping[str, bytes]]:
        """Yield all that stands, a part at a time; names that no replica writes are left out."""
        cursor = 0
        while True:
            scan = cast("Any", self._redis.hscan(KEY, cursor, count=BATCH))
            cursor, found = await within_deadline(scan)
            yield {name.decode(): value for name, value in found.items() if name.isascii()}
            if cursor == 0:
                return

    # Telling

    def _note_failure(self, reason: str) -> None:
        if self._why_down != reason:
            log.warning("routing records wait to be written: %s", reason)
        self._why_down = reason
        self._server = ""  # whoever answers next may have lost what was written

    def _note_success(self) -> None:
        if self._why_down:
            log.info("routing records are written again")
        self._why_down = ""
        self._backoff.reset()
