"""Our own layout: one hash a shard, read whole, a packed struct for each node."""

from __future__ import annotations

from collections.abc import Sequence

from redis.exceptions import ResponseError
from typing_extensions import override

from cubesched.adapters.nodemetrics.client import BlockingClient, packed
from cubesched.adapters.nodemetrics.keys import key_of
from cubesched.adapters.nodemetrics.reader import Source
from cubesched.core.errors import StoreUnavailable
from cubesched.fleet.metrics_layout import Decoded, decode_all


class PackedReports(Source):
    """Reads every shard; none or all, so that half an answer never looks like a whole one."""

    def __init__(self, client: BlockingClient, *, shards: int = 1) -> None:
        self._client = client
        self._keys = [key_of(shard).encode() for shard in range(shards)]

    @override
    def read(self, names: Sequence[str]) -> Decoded:
        """Read all reports there are, whoever sent them."""
        commands = b"".join(packed(b"HGETALL", key) for key in self._keys)
        values: dict[bytes, bytes] = {}
        for reply in self._client.exchange(commands, len(self._keys)):
            if isinstance(reply, ResponseError):
                raise StoreUnavailable(f"Redis: {reply}")
            fields = iter(reply)
            values.update(zip(fields, fields, strict=True))
        return decode_all(values)

    @override
    def close(self) -> None:
        """Give a read under way up."""
        self._client.close()
