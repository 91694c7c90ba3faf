"""Guard `disk`: every reported disk is below `guards.diskUsageMaxPercent`, and its quota fits.

Looks at the data, storage and system disk; one that a node does not report is not looked at.
System-disk quota - used >= requested, in bytes, where a quota or capacity is set.
Source: CubeMaster's guard of that name, which knows no disk quota.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cubesched.core.amounts import binary_bytes
from cubesched.core.pipeline import Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Floats, Ints, Snapshot
from cubesched.plugins.builtin.tally import nearest_amount, nearest_below, nearest_of, tally


@dataclass(frozen=True, slots=True)
class Disk:
    """Keeps nodes whose disks are not full."""

    name: str = "disk"

    def keep(self, fleet: Snapshot, request: Request) -> Bools:
        """Return which nodes stay; see the module."""
        return fleet.derived.disk_room_bytes >= request.disk_bytes

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        """Count what lacks quota first, then what has a disk too full."""
        return tally(
            ("insufficient disk", _free(fleet, rows) < request.disk_bytes),
            ("disk too full", _fullest(fleet, rows) >= fleet.disk_usage_max_percent),
        )

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Return the node with the most quota free, else the one least full."""
        free = _free(fleet, rows)
        return nearest_of(
            nearest_amount(rows, needed=request.disk_bytes, free=free, show=binary_bytes),
            nearest_below(
                rows,
                value=_fullest(fleet, rows),
                bound=fleet.disk_usage_max_percent,
                text="fullest disk {value:.1f} %, must be below {bound:.1f} %",
            ),
        )


def _free(fleet: Snapshot, rows: Ints) -> Ints:
    return fleet.disk_limit_bytes[rows] - fleet.disk_used_bytes[rows]


def _fullest(fleet: Snapshot, rows: Ints) -> Floats:
    fullest = np.fmax(fleet.data_disk_percent[rows], fleet.storage_disk_percent[rows])
    return np.fmax(fullest, fleet.system_disk_percent[rows])
