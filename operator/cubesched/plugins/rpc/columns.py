"""The columns of the protocol: how each is written, and where the operator reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cubesched.core.snapshot import Ints, Safety, Snapshot

ZONE: Final = "topology.kubernetes.io/zone"
"""The node label that says which zone it stands in."""
CODES: Final = np.dtype("<u4")
"""Rows, offsets, and indices into tables."""
FLAGS: Final = np.dtype("u1")
INTS: Final = np.dtype("<i8")
DOUBLES: Final = np.dtype("<f8")
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Column:
    """A field of Facts or State that has a value for each node."""

    name: str
    dtype: np.dtype[Any]
    read: Callable[[Snapshot], NDArray[Any]]

    def encoded(self, fleet: Snapshot) -> bytes:
        """Return the field."""
        return self.read(fleet).astype(self.dtype, copy=False).tobytes()


def _mebibytes(sizes: Ints) -> Ints:
    return sizes // _MIB


def _mebibytes_up(sizes: Ints) -> Ints:
    return -(-sizes // _MIB)


FACTS: Final = (
    Column("cpu_total", DOUBLES, lambda fleet: np.floor(fleet.cpus)),
    Column("quota_cpu", INTS, lambda fleet: fleet.cpu_limit_millis),
    Column("mem_total_mb", INTS, lambda fleet: _mebibytes(fleet.memory_capacity_bytes)),
    Column("quota_mem_mb", INTS, lambda fleet: _mebibytes(fleet.memory_limit_bytes)),
    Column("taint_set", CODES, lambda fleet: fleet.taint_set),
)
"""Numbers that change only with what nodes are."""
STRINGS: Final = ("ip", "zone", "instance_type")
"""Columns of Facts that are indices into its string table."""
STATE: Final = (
    Column("healthy", FLAGS, lambda fleet: fleet.safety == Safety.OK),
    Column(
        "snapshot_storage_writable", np.dtype("i1"), lambda fleet: fleet.snapshot_storage_writable
    ),
    Column("cpu_util", DOUBLES, lambda fleet: fleet.cpu_util_percent),
    Column("cpu_load", DOUBLES, lambda fleet: fleet.cpu_load),
    Column("data_disk_usage", DOUBLES, lambda fleet: fleet.data_disk_percent),
    Column("storage_disk_usage", DOUBLES, lambda fleet: fleet.storage_disk_percent),
    Column("system_disk_usage", DOUBLES, lambda fleet: fleet.system_disk_percent),
    Column("mem_usage_mb", DOUBLES, lambda fleet: np.ceil(fleet.memory_really_used_bytes / _MIB)),
    Column("allocated_cpu", INTS, lambda fleet: fleet.cpu_used_millis),
    Column("allocated_mem_mb", INTS, lambda fleet: _mebibytes_up(fleet.memory_used_bytes)),
    Column("creating", INTS, lambda fleet: fleet.creating),
    Column("local_creating", INTS, lambda fleet: fleet.creating_own),
    Column("mvm_num", INTS, lambda fleet: fleet.sandboxes),
)
"""What is counted and measured."""
