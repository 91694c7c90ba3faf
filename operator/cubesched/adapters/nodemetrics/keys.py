"""Where a node's report lives in Redis: one hash a shard, one field a node.

CubeMaster's agents write a hash a node instead, older ones under the bare node id.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

PREFIX: Final = "cubesched:metrics:"
CUBEMASTER_PREFIX: Final = "cube:v1:master:node:metric:"


def key_of(shard: int) -> str:
    """Return the key of one shard's hash."""
    return f"{PREFIX}{shard}"


def shard_of(node: str, shards: int) -> int:
    """Return the shard that a node's report belongs to, the same for writers and readers."""
    return crc32(node.encode()) % shards
