"""A replica's side: all reports, read whole each second.

While Redis is away the fleet keeps what it knows and lets it age; a read that fails says nothing
about any node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, cast

from cubesched.adapters.nodemetrics.client import DEADLINE_SECONDS, open_redis, within_deadline
from cubesched.adapters.nodemetrics.keys import key_of
from cubesched.adapters.telemetry.meter import Meter
from cubesched.core.errors import StoreUnavailable
from cubesched.fleet.metrics_layout import Decoded, decode_all

log = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS: Final = 5.0
UP: Final = "cubesched_redis_up"
UNUSABLE: Final = "cubesched_node_reports_unusable"


class MetricsReader:
    """Reads every shard once an interval and hands the decoded reports to `sink`."""

    def __init__(
        self,
        redis_url: str,
        sink: Callable[[Decoded], None],
        meter: Meter,
        *,
        interval_seconds: float = 1.0,
        shards: int = 1,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._redis = open_redis(redis_url)
        self._sink = sink
        self._meter = meter
        self._interval = interval_seconds
        self._shards = shards
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
            await self._redis.aclose()

    async def _read_once(self) -> bool:
        try:
            decoded = decode_all(await self._read_all())
        except StoreUnavailable as error:
            self._note_failure(str(error))
            return False
        self._note_success(decoded)
        self._sink(decoded)
        return True

    async def _read_all(self) -> dict[bytes, bytes]:
        """Read all shards; none or all, so that half an answer never looks like a whole one."""
        values: dict[bytes, bytes] = {}
        for shard in range(self._shards):
            values.update(await within_deadline(self._hgetall(shard), self._deadline))
        return values

    async def _hgetall(self, shard: int) -> Mapping[bytes, bytes]:
        # Without `decode_responses` every field and value is bytes.
        return cast("Mapping[bytes, bytes]", await self._redis.hgetall(key_of(shard)))

    def _note_failure(self, reason: str) -> None:
        if self._why_down != reason:
            log.warning("node metrics cannot be read, the last ones age: %s", reason)
        self._why_down = reason
        self._meter.set(UP, 0)

    def _note_success(self, decoded: Decoded) -> None:
        if self._why_down:
            log.info("node metrics are read: %d reports", len(decoded.names))
        self._why_down = ""
        self._meter.set(UP, 1)
        self._meter.forget(UNUSABLE)
        for problem, count in decoded.problems.items():
            self._meter.set(UNUSABLE, count, problem=problem)
