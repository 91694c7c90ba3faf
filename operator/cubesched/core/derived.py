"""What follows from a node's facts alone, kept beside them so that no decision works it out again.

Whoever changes a fact calls `derive` for the rows in question. This module is the one definition
of these columns; `fleet.cells` writes the same numbers one row at a time, and is tested against it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cubesched.core.snapshot import Snapshot

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Rows = slice | Ints

NO_LIMIT = 1 << 61
"""Stands for "no limit set"; half of the int64 range, so that sums cannot overflow."""
UNKNOWN = -1
"""Stands for a whole number that a node does not report; NaN does so in a float."""
NO_ROOM = -1
"""Less than any request asks for."""
NONE = -NO_LIMIT
"""Stands for a limit that leaves no room, whatever is used."""
EVERY_ROW = slice(None)


@dataclass(slots=True)
class Derived:
    """Columns that follow from the others of the snapshot.

    A room is the largest request that the guard of that name keeps. Percents are 0..100, and 0,
    the worst, where a value is unknown or its limit is 0.
    """

    # From limits
    percent_per_milli: Floats
    """100 / limit: what each unit takes; inf where the limit is 0."""
    percent_per_byte: Floats
    percent_per_sandbox: Floats
    percent_per_create: Floats

    # From metrics
    sandboxes_open: Ints
    """The limit; 0 where the safety code is not OK or the load exceeds the cpus."""
    cpu_open_millis: Ints
    """The limit; NONE where the utilisation is out of bounds."""
    disk_open_bytes: Ints
    """The limit; NONE where a disk is too full."""
    memory_really_free_bytes: Ints
    """What the machine has free beside its reserve; NO_LIMIT where that is unknown."""
    cpu_idle_percent: Floats
    load_free_percent: Floats
    memory_really_free_percent: Floats
    data_disk_free_percent: Floats
    storage_disk_free_percent: Floats
    system_disk_free_percent: Floats
    creates_free_by_report_percent: Floats

    # From what is counted on the node
    is_usable: Bools
    """Fewer sandboxes than are open: what the node_safety guard keeps."""
    can_create: Bools
    """What the realtime_create_num guard keeps."""
    cpu_room_millis: Ints
    memory_room_bytes: Ints
    disk_room_bytes: Ints
    cpu_free_percent: Floats
    memory_free_percent: Floats
    sandboxes_free_percent: Floats
    creates_free_by_ledger_percent: Floats
    creates_free_by_both_percent: Floats
    """Ledger and report added up; 0 where the node reports no creates."""

    @classmethod
    def empty(cls, rows: int) -> Derived:
        """Return the columns of nodes that nothing is known of: they take nothing."""
        return cls(**{field.name: np.zeros(rows, _dtype(field.name)) for field in fields(cls)})

    def with_own_rooms(self) -> Derived:
        """Return the same columns, of which those that `derive_rooms` writes can be changed."""
        return replace(self, **{name: getattr(self, name).copy() for name in _ROOMS})


_ROOMS = (
    "sandboxes_open",
    "is_usable",
    "can_create",
    "cpu_open_millis",
    "cpu_room_millis",
    "memory_really_free_bytes",
    "memory_room_bytes",
    "disk_open_bytes",
    "disk_room_bytes",
)
"""What guards read, and what that follows from."""


def _dtype(column: str) -> type[np.generic]:
    if column.startswith(("is_", "can_")):
        return np.bool_
    return np.float64 if "percent" in column else np.int64


def derive(fleet: Snapshot, rows: Rows = EVERY_ROW) -> None:
    """Bring all derived columns of `rows` up to date."""
    # Division by a limit of 0 and sums with what is unknown end as 0 percent below.
    with np.errstate(all="ignore"):
        _from_limits(fleet, rows)
        _from_metrics(fleet, rows)
        derive_rooms(fleet, rows)
        _percents(fleet, rows)


def derive_rooms(fleet: Snapshot, rows: Rows = EVERY_ROW) -> None:
    """Bring up to date what guards read, and nothing that only scores read."""
    derived = fleet.derived
    is_busy = fleet.cpu_util_percent[rows] >= fleet.max_cpu_util_percent
    derived.cpu_open_millis[rows] = np.where(is_busy, NONE, fleet.cpu_limit_millis[rows])
    is_full = _is_full(fleet, rows)
    derived.disk_open_bytes[rows] = np.where(is_full, NONE, fleet.disk_limit_bytes[rows])
    unreserved = fleet.memory_capacity_bytes[rows] - fleet.memory_reserved_bytes[rows]
    really_free = np.floor(unreserved - fleet.memory_really_used_bytes[rows])
    bounded = np.clip(np.nan_to_num(really_free, nan=NO_LIMIT), NO_ROOM, NO_LIMIT)
    derived.memory_really_free_bytes[rows] = bounded.astype(np.int64)
    derive_safety(fleet, rows)
    _rooms(fleet, rows)


def derive_safety(fleet: Snapshot, rows: Rows = EVERY_ROW) -> None:
    """Bring up to date what follows from the safety codes."""
    derived = fleet.derived
    # Unknown load or cpus is NaN and compares False: the node is not overloaded.
    is_shut = (fleet.safety[rows] != 0) | (fleet.cpu_load[rows] > fleet.cpus[rows])
    derived.sandboxes_open[rows] = np.where(is_shut, 0, fleet.sandbox_limit[rows])
    derived.is_usable[rows] = fleet.sandboxes[rows] < derived.sandboxes_open[rows]


def _from_limits(fleet: Snapshot, rows: Rows) -> None:
    derived = fleet.derived
    derived.percent_per_milli[rows] = 100.0 / fleet.cpu_limit_millis[rows]
    derived.percent_per_byte[rows] = 100.0 / fleet.memory_limit_bytes[rows]
    derived.percent_per_sandbox[rows] = 100.0 / fleet.sandbox_limit[rows]
    derived.percent_per_create[rows] = 100.0 / fleet.create_limit[rows]


def _from_metrics(fleet: Snapshot, rows: Rows) -> None:
    derived = fleet.derived
    derived.cpu_idle_percent[rows] = _left(fleet.cpu_util_percent[rows], 100.0)
    derived.load_free_percent[rows] = _left(fleet.cpu_load[rows], fleet.cpus[rows])
    derived.memory_really_free_percent[rows] = _left(
        fleet.memory_really_used_bytes[rows], fleet.memory_capacity_bytes[rows]
    )
    derived.data_disk_free_percent[rows] = _left(fleet.data_disk_percent[rows], 100.0)
    derived.storage_disk_free_percent[rows] = _left(fleet.storage_disk_percent[rows], 100.0)
    derived.system_disk_free_percent[rows] = _left(fleet.system_disk_percent[rows], 100.0)
    derived.creates_free_by_report_percent[rows] = _left(
        _creating_reported(fleet, rows), fleet.create_limit[rows]
    )


def _is_full(fleet: Snapshot, rows: Rows) -> Bools:
    bound = fleet.disk_usage_max_percent
    is_full: Bools = fleet.data_disk_percent[rows] >= bound
    is_full |= fleet.storage_disk_percent[rows] >= bound
    is_full |= fleet.system_disk_percent[rows] >= bound
    return is_full


def _creating_reported(fleet: Snapshot, rows: Rows) -> Floats:
    """Return the creates that nodes report; NaN where they do not."""
    reported = fleet.creating_reported[rows]
    return np.where(reported == UNKNOWN, np.nan, reported)


def _left(used: Floats, limit: Floats | Ints | float) -> Floats:
    """Return what a measurement leaves, in percent."""
    free = np.clip(np.nan_to_num(100.0 - used * (100.0 / limit), nan=0.0), 0.0, 100.0)
    return np.where(np.asarray(limit) > 0, free, 0.0)


def _rooms(fleet: Snapshot, rows: Rows) -> None:
    derived = fleet.derived
    derived.can_create[rows] = fleet.creating[rows] < fleet.create_limit[rows]
    derived.cpu_room_millis[rows] = derived.cpu_open_millis[rows] - fleet.cpu_used_millis[rows]
    derived.disk_room_bytes[rows] = derived.disk_open_bytes[rows] - fleet.disk_used_bytes[rows]
    by_quota = fleet.memory_limit_bytes[rows] - fleet.memory_used_bytes[rows]
    derived.memory_room_bytes[rows] = np.minimum(by_quota, derived.memory_really_free_bytes[rows])


def _percents(fleet: Snapshot, rows: Rows) -> None:
    derived = fleet.derived
    both = _creating_reported(fleet, rows) + fleet.creating_ledger[rows]
    for free, used, each in (
        (derived.cpu_free_percent, fleet.cpu_used_millis[rows], derived.percent_per_milli),
        (derived.memory_free_percent, fleet.memory_used_bytes[rows], derived.percent_per_byte),
        (derived.sandboxes_free_percent, fleet.sandboxes[rows], derived.percent_per_sandbox),
        (
            derived.creates_free_by_ledger_percent,
            fleet.creating_ledger[rows],
            derived.percent_per_create,
        ),
        (derived.creates_free_by_both_percent, both, derived.percent_per_create),
    ):
        # fmax takes 0 over the NaN of 0 * inf and of what is unknown.
        free[rows] = np.fmax(100.0 - used * each[rows], 0.0)
