"""An agent's side: its node's report, written whole, the last one wins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Iterable, Mapping

from cubesched.adapters.nodemetrics.client import drop_connections, open_redis, within_deadline
from cubesched.adapters.nodemetrics.keys import key_of, shard_of
from cubesched.core.errors import StoreUnavailable

Field = bytes | bytearray | memoryview | str | int | float
"""What the client takes as a field or value of a hash."""


class MetricsWriter:
    """Publishes packed reports (`fleet.metrics_layout.encode`) under their nodes' names."""

    def __init__(self, redis_url: str, *, shards: int = 1) -> None:
        self._redis = open_redis(redis_url)
        self._shards = shards

    async def publish(self, reports: Mapping[str, bytes]) -> None:
        """Write these nodes' reports; StoreUnavailable when Redis does not take them in time."""
        by_shard: dict[int, dict[Field, Field]] = defaultdict(dict)
        for node, packed in reports.items():
            by_shard[shard_of(node, self._shards)][node] = packed
        for shard, mapping in by_shard.items():
            await self._send(self._redis.hset(key_of(shard), mapping=mapping))

    async def remove(self, names: Iterable[str]) -> None:
        """Take these nodes' reports away: they count as nodes that never reported."""
        by_shard: dict[int, list[str]] = defaultdict(list)
        for node in names:
            by_shard[shard_of(node, self._shards)].append(node)
        for shard, nodes in by_shard.items():
            await self._send(self._redis.hdel(key_of(shard), *nodes))

    async def _send(self, command: Awaitable[int]) -> None:
        try:
            await within_deadline(command)
        except StoreUnavailable:
            # After a failover the old connection may lead to a server that only reads.
            await drop_connections(self._redis)
            raise

    async def close(self) -> None:
        """Close the connection."""
        await self._redis.aclose()
