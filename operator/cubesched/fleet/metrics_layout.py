"""What a node reports each second: one packed little-endian struct, decoded for all nodes at once.

A report that is garbage is left out and counted by reason, so its node counts as one that never
reported; a field its agent does not know says so (-1 or NaN) and switches off only itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from math import nan
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from cubesched.core.derived import UNKNOWN

LAYOUT_VERSION: Final = 1
STORAGE_TOLD: Final = 1
"""Bit of `flags`: the agent knows whether snapshots can be written."""
STORAGE_WRITABLE: Final = 2
"""Bit of `flags`: they can."""
LARGEST: Final = 1 << 56
"""The largest believable number: sums of thousands of them stay inside 64 bits."""

DTYPE: Final = np.dtype(
    [
        ("version", "u1"),
        ("flags", "u1"),
        ("reserved", "V6"),
        ("node_uid", "V16"),
        ("stamp_ms", "<i8"),
        ("applied_version", "<u8"),
        ("foreign_cpu_millis", "<i8"),
        ("foreign_memory_bytes", "<i8"),
        ("foreign_disk_bytes", "<i8"),
        ("foreign_sandboxes", "<i8"),
        ("cpu_util_percent", "<f8"),
        ("cpu_load", "<f8"),
        ("memory_used_bytes", "<i8"),
        ("data_disk_percent", "<f8"),
        ("storage_disk_percent", "<f8"),
        ("system_disk_percent", "<f8"),
        ("sandboxes", "<i8"),
        ("creating", "<i8"),
    ]
)
COUNT_FIELDS: Final = (
    "foreign_cpu_millis",
    "foreign_memory_bytes",
    "foreign_disk_bytes",
    "foreign_sandboxes",
    "memory_used_bytes",
    "sandboxes",
    "creating",
)
FLOAT_FIELDS: Final = (
    "cpu_util_percent",
    "cpu_load",
    "data_disk_percent",
    "storage_disk_percent",
    "system_disk_percent",
)
_STRUCT_OF_VERSION: Final = {LAYOUT_VERSION: DTYPE.itemsize}

Table = NDArray[Any]
"""A structured array of `DTYPE`, one row a node."""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One node's report, as its agent builds it; -1 and NaN stand for "not known here"."""

    node_uid: str
    """metadata.uid of the SandboxNode: a node recreated under the same name is another one."""
    stamp_ms: int
    """Wall clock of the node in milliseconds: the heartbeat."""
    applied_version: int = 0
    """The resourceVersion of the request stream up to which the agent has acted."""
    foreign_cpu_millis: int = UNKNOWN
    """What runs on the node beside the requests bound to it; the next three likewise."""
    foreign_memory_bytes: int = UNKNOWN
    foreign_disk_bytes: int = UNKNOWN
    foreign_sandboxes: int = UNKNOWN
    cpu_util_percent: float = nan
    cpu_load: float = nan
    memory_used_bytes: int = UNKNOWN
    """Memory the machine really uses."""
    data_disk_percent: float = nan
    storage_disk_percent: float = nan
    system_disk_percent: float = nan
    sandboxes: int = UNKNOWN
    """All sandboxes on the machine (mvm_num)."""
    creating: int = UNKNOWN
    """Creates in flight on the machine."""
    snapshot_storage_writable: bool | None = None
    """Whether snapshots can be written; None = not known here."""


class Decoded(NamedTuple):
    """All readable reports of one pass: row i of `table` is the report of `names[i]`."""

    names: list[str]
    table: Table
    problems: Mapping[str, int]
    """How many reports were left out, by reason: length, version, name, uid, stamp, range."""


def uid_bytes(uid: str) -> bytes:
    """Return the 16 bytes that stand for a SandboxNode's uid in a report."""
    try:
        return UUID(uid).bytes
    except ValueError:
        return blake2b(uid.encode(errors="surrogatepass"), digest_size=16).digest()


def encode(report: NodeReport) -> bytes:
    """Pack one report; numbers out of range raise OverflowError here, at the agent."""
    row = np.zeros(1, DTYPE)
    row["version"] = LAYOUT_VERSION
    if report.snapshot_storage_writable is not None:
        row["flags"] = STORAGE_TOLD | STORAGE_WRITABLE * report.snapshot_storage_writable
    row["node_uid"] = np.void(uid_bytes(report.node_uid))
    for name in ("stamp_ms", "applied_version", *COUNT_FIELDS, *FLOAT_FIELDS):
        row[name] = getattr(report, name)
    return row.tobytes()


def decode_all(values: Mapping[bytes, bytes]) -> Decoded:
    """Decode every report of a hash (node name to packed struct); never raises on its content."""
    problems: Counter[str] = Counter()
    names: list[str] = []
    packed: list[bytes] = []
    for field, value in values.items():
        reason = _unusable(field, value)
        if reason:
            problems[reason] += 1
        else:
            names.append(field.decode())
            packed.append(value)
    table = np.frombuffer(b"".join(packed), DTYPE)
    return _without_garbage(names, table, problems)


def _unusable(field: bytes, value: bytes) -> str:
    """Say why a value cannot be a row of the table; empty when it can."""
    if not value or value[0] not in _STRUCT_OF_VERSION:
        return "version" if value else "length"
    if len(value) != _STRUCT_OF_VERSION[value[0]]:
        return "length"
    if not field.isascii() or not 0 < len(field) <= 253:
        return "name"
    return ""


def _without_garbage(names: list[str], table: Table, problems: Counter[str]) -> Decoded:
    """Drop the rows that hold impossible values, each counted under its first reason."""
    bad = np.zeros(len(names), bool)
    for reason, mask in _garbage_masks(table):
        problems[reason] += int(np.count_nonzero(mask & ~bad))
        bad |= mask
    if bad.any():
        keep = ~bad
        names = [name for name, kept in zip(names, keep.tolist(), strict=True) if kept]
        table = table[keep]
    return Decoded(names, table, {reason: count for reason, count in problems.items() if count})


def _garbage_masks(table: Table) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return for each reason the rows that it condemns."""
    uids = np.ascontiguousarray(table["node_uid"]).view("<u8").reshape(-1, 2)
    stamp = table["stamp_ms"]
    out_of_range: NDArray[np.bool_] = np.asarray(
        table["applied_version"] > np.uint64((1 << 63) - 1), dtype=bool
    )
    for name in COUNT_FIELDS:
        out_of_range |= (table[name] < UNKNOWN) | (table[name] > LARGEST)
    for name in FLOAT_FIELDS:
        # NaN compares false on both sides: unknown is no garbage.
        out_of_range |= (table[name] < 0.0) | (table[name] > LARGEST)
    return [
        ("uid", np.asarray(~uids.any(axis=1), dtype=bool)),
        ("stamp", np.asarray((stamp <= 0) | (stamp > LARGEST), dtype=bool)),
        ("range", out_of_range),
    ]
