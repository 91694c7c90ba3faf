"""What a report may leave out, as its sender calls it, and which part of a guard that stops.

Unknown is never zero: that part is off, the rest of the guard goes on, the node's status tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Masks = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Part:
    """One column of a report."""

    column: str
    field: str
    """What whoever writes the report calls it."""
    off: str
    """What is not looked at without it, and by which guard."""


_OURS: Final = (
    Part("foreign_cpu_millis", "foreign_cpu_millis", "cpu of others (cpu)"),
    Part("foreign_memory_bytes", "foreign_memory_bytes", "memory of others (mem)"),
    Part("foreign_disk_bytes", "foreign_disk_bytes", "disk of others (disk)"),
    Part("cpu_util_percent", "cpu_util_percent", "utilisation (cpu)"),
    Part("cpu_load", "cpu_load", "load (node_safety)"),
    Part("memory_used_bytes", "memory_used_bytes", "memory really free (mem)"),
    Part("data_disk_percent", "data_disk_percent", "data disk (disk)"),
    Part("storage_disk_percent", "storage_disk_percent", "storage disk (disk)"),
    Part("system_disk_percent", "system_disk_percent", "system disk (disk)"),
    Part("sandboxes", "sandboxes", "sandboxes of others (node_safety)"),
    Part("creating", "creating", "creates of others (realtime_create_num)"),
)
_CUBEMASTER: Final = (
    Part("allocated_cpu_millis", "quota_cpu_usage", "cpu of others (cpu)"),
    Part("allocated_memory_bytes", "quota_mem_mb_usage", "memory of others (mem)"),
    Part("cpu_util_percent", "cpu_util", "utilisation (cpu)"),
    Part("cpu_load", "cpu_load_usage", "load (node_safety)"),
    Part("memory_used_bytes", "mem_load_mb_usage", "memory really free (mem)"),
    Part("data_disk_percent", "data_disk_usage_per", "data disk (disk)"),
    Part("storage_disk_percent", "storage_disk_usage_per", "storage disk (disk)"),
    Part("system_disk_percent", "sys_disk_usage_per", "system disk (disk)"),
    Part("sandboxes", "mvm_num", "sandboxes of others (node_safety)"),
    Part("creating", "realtime_create_num", "creates of others (realtime_create_num)"),
)
_PARTS: Final = (*_OURS, *_CUBEMASTER)
"""A part's place here is its bit."""


def missing_parts(table: NDArray[Any]) -> Masks:
    """Return for each report of `table` the bits of the parts that it leaves out."""
    ours = "foreign_cpu_millis" in (table.dtype.names or ())
    parts, first = (_OURS, 0) if ours else (_CUBEMASTER, len(_OURS))
    masks = np.zeros(len(table), np.uint32)
    for bit, part in enumerate(parts, first):
        # Written this way round, NaN and -1 are both unknown.
        masks |= np.where(table[part.column] >= 0, np.uint32(0), np.uint32(1 << bit))
    return masks


def parts_in(mask: int) -> Sequence[Part]:
    """Return the parts whose bits are set."""
    return [part for bit, part in enumerate(_PARTS) if mask >> bit & 1]
