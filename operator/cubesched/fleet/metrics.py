"""Reports into columns: the heartbeat, real usage and foreign usage of all nodes in one pass."""

from __future__ import annotations

import numpy as np

from cubesched.core.derived import derive, derive_safety
from cubesched.core.snapshot import Bools, Ints, Safety
from cubesched.fleet.columns import Columns
from cubesched.fleet.metrics_layout import Decoded, Table

SKEW_SECONDS = 30.0
"""A stamp further ahead of this replica's clock than this is not believed."""

_PLAIN = {
    "cpu_util_percent": "cpu_util_percent",
    "cpu_load": "cpu_load",
    "data_disk_percent": "data_disk_percent",
    "storage_disk_percent": "storage_disk_percent",
    "system_disk_percent": "system_disk_percent",
}


def take_reports(
    columns: Columns, decoded: Decoded, *, monotonic: float, wall: float, listed: bool
) -> list[tuple[str, int]]:
    """Write all reports into their rows; return (node, applied version) of those believed.

    `listed`: this replica's first list of requests is complete, so a heartbeat seen to advance
    now was made after it.
    """
    rows = _rows(columns, decoded)
    known = rows >= 0
    rows, table = rows[known], decoded.table[known]
    _heartbeat(columns, rows, table, monotonic=monotonic, wall=wall, listed=listed)
    _usage(columns, rows, table)
    derive(columns.snapshot)
    columns.touch()
    names = columns.names
    applied = table["applied_version"].tolist()
    return [(names[row], version) for row, version in zip(rows.tolist(), applied, strict=True)]


def _rows(columns: Columns, decoded: Decoded) -> Ints:
    """Return each report's row; -1 where no node of that name and uid is known."""
    row_of = columns.row_of
    rows = np.fromiter((row_of.get(n, -1) for n in decoded.names), np.int64, len(decoded.names))
    uids = np.ascontiguousarray(decoded.table["node_uid"]).view("<u8").reshape(-1, 2)
    reported = columns.reported
    if not len(columns.names):
        return rows
    same = (reported.uid_low[rows] == uids[:, 0]) & (reported.uid_high[rows] == uids[:, 1])
    return np.where(same, rows, -1)


def _heartbeat(
    columns: Columns, rows: Ints, table: Table, *, monotonic: float, wall: float, listed: bool
) -> None:
    """Note whose stamp advanced, counted on this replica's own clock.

    A stamp that went back (a clock set right) is taken as the new base and counts from its
    next advance on.
    """
    reported = columns.reported
    stamp, old = table["stamp_ms"], reported.stamp_ms[rows]
    first, advanced = old < 0, (stamp > old) & (old >= 0)
    age_at_first_sight = np.maximum(0.0, wall - stamp / 1000.0)
    seen = reported.advanced_monotonic[rows]
    seen = np.where(advanced, monotonic, np.where(first, monotonic - age_at_first_sight, seen))
    reported.advanced_monotonic[rows] = seen
    reported.stamp_ms[rows] = stamp
    reported.skewed[rows] = stamp / 1000.0 > wall + SKEW_SECONDS
    if listed:
        reported.awaited[rows] &= ~advanced


def _usage(columns: Columns, rows: Ints, table: Table) -> None:
    view, reported = columns.snapshot, columns.reported
    for source, target in _PLAIN.items():
        getattr(view, target)[rows] = table[source]
    memory = table["memory_used_bytes"]
    view.memory_really_used_bytes[rows] = np.where(memory < 0, np.nan, memory)
    for source, total in (
        ("foreign_cpu_millis", view.cpu_used_millis),
        ("foreign_memory_bytes", view.memory_used_bytes),
        ("foreign_disk_bytes", view.disk_used_bytes),
    ):
        column = getattr(reported, source)
        foreign = np.maximum(table[source], 0)
        total[rows] += foreign - column[rows]
        column[rows] = foreign
    reported.sandboxes[rows] = table["sandboxes"]
    reported.creating[rows] = table["creating"]
    view.sandboxes[rows] = np.maximum(reported.counted[rows], table["sandboxes"])
    view.creating[rows] = np.maximum(view.creating_ledger[rows], table["creating"])


def sweep_safety(columns: Columns, *, monotonic: float, max_age_seconds: float) -> bool:
    """Recompute every node's safety code; True when some node became usable.

    Staleness is a transition found here once a second, never an input that changes unseen.
    """
    view, reported = columns.snapshot, columns.reported
    code = reported.base_safety.copy()
    undecided = code == Safety.OK
    for safety, holds in (
        (Safety.NEVER_REPORTED, reported.stamp_ms < 0),
        (Safety.CLOCK_SKEW, reported.skewed),
        (Safety.STALE, monotonic - reported.advanced_monotonic >= max_age_seconds),
        (Safety.UNREADABLE_REQUEST, reported.unreadable),
        (Safety.AWAITING_REPORT, reported.awaited),
    ):
        code[undecided & holds] = safety
        undecided &= ~holds
    changed = code != view.safety
    if not changed.any():
        return False
    better: Bools = changed & (code == Safety.OK)
    view.safety[:] = code
    derive_safety(view)
    columns.touch()
    return bool(better.any())
