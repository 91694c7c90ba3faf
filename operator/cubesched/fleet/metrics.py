"""Reports into columns: the heartbeat, real usage and foreign usage of all nodes in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cubesched.core.derived import derive, derive_safety
from cubesched.core.snapshot import UNKNOWN, Bools, Ints, Safety
from cubesched.fleet.columns import Columns
from cubesched.fleet.metrics_layout import (
    FLOAT_FIELDS,
    STORAGE_TOLD,
    STORAGE_WRITABLE,
    Decoded,
    Table,
)
from cubesched.fleet.reported import Reported
from cubesched.fleet.unreported import missing_parts

SKEW_SECONDS = 30.0
"""A stamp further ahead of this replica's clock than this is not believed."""

_PLAIN = FLOAT_FIELDS
"""Columns that are written as they came; every layout has them."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When and under which rules reports are taken."""

    monotonic: float
    wall: float
    max_age_seconds: float
    listed: bool
    """This replica's first list of requests is complete, so a heartbeat seen to advance now was
    made after it."""
    ignores_foreign: bool = False


def take_reports(columns: Columns, readings: Sequence[Decoded], moment: Moment) -> Ints:
    """Write all reports into their rows; return up to which version each row's agent has acted.

    -1 where nothing was reported. Where a node reports in more than one layout the first reading
    holds, unless its stamp lies further behind the other's than a report may be old.
    """
    applied = np.full(len(columns.names), -1, np.int64)
    for rows, table in _chosen(columns, readings, moment.max_age_seconds):
        _heartbeat(columns, rows, table, moment)
        _usage(columns, rows, table, ignores_foreign=moment.ignores_foreign)
        applied[rows] = _column(table, "applied_version", 0)
    derive(columns.snapshot)
    columns.touch()
    return applied


def _chosen(
    columns: Columns, readings: Sequence[Decoded], max_age_seconds: float
) -> Iterator[tuple[Ints, Table]]:
    """Yield each reading's rows and reports, every node in one of them only."""
    known = [_known(columns, decoded) for decoded in readings]
    if len(known) == 1:
        yield known[0]
        return
    reader_of = np.full(len(columns.names), -1)
    newest = np.full(len(columns.names), -1, np.int64)
    for number, (rows, table) in enumerate(known):
        is_fresher = table["stamp_ms"] > newest[rows] + int(max_age_seconds * 1000)
        is_taken = is_fresher | (newest[rows] < 0)
        reader_of[rows[is_taken]] = number
        newest[rows[is_taken]] = table["stamp_ms"][is_taken]
    for number, (rows, table) in enumerate(known):
        is_mine = reader_of[rows] == number
        yield rows[is_mine], table[is_mine]


def _known(columns: Columns, decoded: Decoded) -> tuple[Ints, Table]:
    """Return the rows of the nodes that are known, and their reports."""
    rows = _rows(columns, decoded)
    is_known = rows >= 0
    if is_known.all():
        return rows, decoded.table  # a copy of all reports costs more than the look
    return rows[is_known], decoded.table[is_known]


def _rows(columns: Columns, decoded: Decoded) -> Ints:
    """Return each report's row; -1 where no node of that name, and uid if it has one, is known."""
    row_of = columns.row_of
    rows = np.fromiter((row_of.get(n, -1) for n in decoded.names), np.int64, len(decoded.names))
    if "node_uid" not in (decoded.table.dtype.names or ()) or not len(columns.names):
        return rows
    uids = np.ascontiguousarray(decoded.table["node_uid"]).view("<u8").reshape(-1, 2)
    reported = columns.reported
    same = (reported.uid_low[rows] == uids[:, 0]) & (reported.uid_high[rows] == uids[:, 1])
    return np.where(same, rows, -1)


def _column(table: Table, name: str, otherwise: int) -> Ints:
    """Return a column of the reports; a layout that does not have it reports `otherwise`."""
    if name in (table.dtype.names or ()):
        return np.asarray(table[name])
    return np.full(len(table), otherwise, np.int64)


def _heartbeat(columns: Columns, rows: Ints, table: Table, moment: Moment) -> None:
    """Note whose stamp advanced, counted on this replica's own clock.

    A stamp that went back (a clock set right) is taken as the new base and counts from its
    next advance on.
    """
    reported = columns.reported
    stamp, old = table["stamp_ms"], reported.stamp_ms[rows]
    first, advanced = old < 0, (stamp > old) & (old >= 0)
    age_at_first_sight = np.maximum(0.0, moment.wall - stamp / 1000.0)
    seen = reported.advanced_monotonic[rows]
    since = np.where(first, moment.monotonic - age_at_first_sight, seen)
    seen = np.where(advanced, moment.monotonic, since)
    reported.advanced_monotonic[rows] = seen
    reported.stamp_ms[rows] = stamp
    reported.skewed[rows] = stamp / 1000.0 > moment.wall + SKEW_SECONDS
    if moment.listed:
        reported.awaited[rows] &= ~advanced


def _usage(columns: Columns, rows: Ints, table: Table, *, ignores_foreign: bool) -> None:
    view, reported = columns.snapshot, columns.reported
    for column in _PLAIN:
        getattr(view, column)[rows] = table[column]
    memory = table["memory_used_bytes"]
    view.memory_really_used_bytes[rows] = np.where(memory < 0, np.nan, memory)
    _beside_the_ledger(columns, rows, table, ignores_foreign=ignores_foreign)
    flags = _column(table, "flags", 0)
    writable = (flags & STORAGE_WRITABLE) > 0
    view.snapshot_storage_writable[rows] = np.where(flags & STORAGE_TOLD, writable, UNKNOWN)
    reported.sandboxes[rows] = table["sandboxes"]
    view.creating_reported[rows] = table["creating"]
    view.sandboxes[rows] = np.maximum(reported.counted[rows], table["sandboxes"])
    view.creating[rows] = np.maximum(view.creating_ledger[rows], table["creating"])
    reported.missing[rows] = missing_parts(table)


def _beside_the_ledger(
    columns: Columns, rows: Ints, table: Table, *, ignores_foreign: bool
) -> None:
    """Count what runs on the nodes and no request accounts for.

    One layout says that itself. The other says what all sandboxes take: what exceeds the ledger
    then is foreign, and `fleet.cells` looks again whenever the ledger changes.
    """
    view, reported = columns.snapshot, columns.reported
    kept = 0 if ignores_foreign else 1
    disk = kept * np.maximum(_column(table, "foreign_disk_bytes", 0), 0)
    view.disk_used_bytes[rows] += disk - reported.foreign_disk_bytes[rows]
    reported.foreign_disk_bytes[rows] = disk
    for total, ledger, foreign, allocated, name in (
        (
            view.cpu_used_millis,
            reported.ledger_cpu_millis,
            reported.foreign_cpu_millis,
            reported.allocated_cpu_millis,
            "cpu_millis",
        ),
        (
            view.memory_used_bytes,
            reported.ledger_memory_bytes,
            reported.foreign_memory_bytes,
            reported.allocated_memory_bytes,
            "memory_bytes",
        ),
    ):
        before = np.maximum(ledger[rows], allocated[rows]) + foreign[rows]
        foreign[rows] = kept * np.maximum(_column(table, f"foreign_{name}", 0), 0)
        allocated[rows] = kept * _column(table, f"allocated_{name}", -1)
        total[rows] += np.maximum(ledger[rows], allocated[rows]) + foreign[rows] - before


def sweep_safety(columns: Columns, *, monotonic: float, max_age_seconds: float) -> bool:
    """Recompute every node's safety code; True when some node became usable.

    Staleness is a transition found here once a second, never an input that changes unseen.
    """
    view, reported = columns.snapshot, columns.reported
    code = reported.base_safety.copy()
    undecided = code == Safety.OK
    for safety, holds in (
        (Safety.QUARANTINED, reported.quarantined),
        *silent(columns, monotonic=monotonic, max_age_seconds=max_age_seconds),
        *_unsure(reported),
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


def safety_for_held(
    columns: Columns, row: int, *, monotonic: float, max_age_seconds: float
) -> Safety:
    """Return a node's safety for what it holds already: that it is cordoned does not matter."""
    code = Safety(int(columns.reported.base_safety[row]))
    if code not in {Safety.OK, Safety.UNSCHEDULABLE}:
        return code
    doubts = (
        *silent(columns, monotonic=monotonic, max_age_seconds=max_age_seconds),
        *_unsure(columns.reported),
    )
    return next((safety for safety, holds in doubts if holds[row]), Safety.OK)


def _unsure(reported: Reported) -> tuple[tuple[Safety, Bools], ...]:
    """Return what nodes hold that this replica cannot tell for certain."""
    return (
        (Safety.UNREADABLE_REQUEST, reported.unreadable),
        (Safety.AWAITING_REPORT, reported.awaited),
    )


def silent(
    columns: Columns, *, monotonic: float, max_age_seconds: float
) -> tuple[tuple[Safety, Bools], ...]:
    """Return which nodes' metrics say nothing about now, and why; the first that holds counts."""
    reported = columns.reported
    return (
        (Safety.NEVER_REPORTED, reported.stamp_ms < 0),
        (Safety.CLOCK_SKEW, reported.skewed),
        (Safety.STALE, monotonic - reported.advanced_monotonic >= max_age_seconds),
    )
