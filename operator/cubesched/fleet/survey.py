"""What of each node has changed since its status was last written, found without a loop.

Each row keeps two numbers that stand for what was last shown of it: one for verdicts, one for
what is allocated. They are made anew once in a while and compared; only rows that differ are
looked at one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cubesched.core.snapshot import Safety
from cubesched.fleet.metrics import silent
from cubesched.fleet.nodeview import drainage_of
from cubesched.fleet.overcommit import confirmed
from cubesched.fleet.shown import LOOK_AGAIN, Marks

if TYPE_CHECKING:
    from cubesched.fleet.fleet import Fleet

Codes = NDArray[np.uint8]

LEAST_SECONDS: Final = 5.0
"""Between two writes of one node's status."""
SETTLE_SECONDS: Final = 2.0
"""From a node's appearance to its first write: its agent registers, then says Ready, reports."""
REDATE_SECONDS: Final = 60.0
"""How old the shown time of the last report may become, where the budget allows."""
MOST_AT_ONCE: Final = 500
"""Of each list: more than can be written before the next survey."""
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Due:
    """One node whose status may have to be written, and the marks that stand for it now."""

    name: str
    verdicts: int
    allocated: int
    silence: Safety
    """Why its metrics say nothing about now; OK when they do."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The nodes of this replica that are due, the more important lists first.

    Whoever looks at one marks it, so that the others are in the next survey.
    """

    verdicts: list[Due]
    """New nodes, and those whose limits or verdicts have changed."""
    allocated: list[Due]
    redated: list[Due]
    """Nodes of which only the time of the last report is old; the oldest first."""


def survey(fleet: Fleet, *, monotonic: float) -> Survey:
    """Find what is due among the nodes that this replica writes."""
    columns = fleet.columns
    shown = columns.shown
    fresh = np.isnan(shown.written_monotonic)
    shown.written_monotonic[fresh] = monotonic - LEAST_SECONDS + SETTLE_SECONDS
    may = columns.snapshot.own & (monotonic - shown.written_monotonic >= LEAST_SECONDS)
    silence = silence_of(fleet, monotonic=monotonic)
    verdicts, allocated = _verdict_marks(fleet, silence), _allocated_marks(fleet)
    is_new = may & (verdicts != shown.verdicts)
    is_moved = may & ~is_new & (allocated != shown.allocated)
    is_old = may & ~is_new & ~is_moved & (silence == Safety.OK)
    is_old &= monotonic - shown.dated_monotonic >= REDATE_SECONDS
    names = columns.names

    def due(rows: NDArray[np.intp]) -> list[Due]:
        return [
            Due(names[r], verdicts.item(r), allocated.item(r), Safety(silence.item(r)))
            for r in rows[:MOST_AT_ONCE].tolist()
        ]

    old = np.flatnonzero(is_old)
    return Survey(
        due(np.flatnonzero(is_new)),
        due(np.flatnonzero(is_moved)),
        due(old[np.argsort(shown.dated_monotonic[old], kind="stable")]),
    )


def silence_of(fleet: Fleet, *, monotonic: float) -> Codes:
    """Return for each node why its metrics say nothing about now; OK where they do."""
    codes = np.zeros(len(fleet.columns.names), np.uint8)
    max_age = fleet.settings.guards.metrics_max_age_seconds
    for safety, holds in silent(fleet.columns, monotonic=monotonic, max_age_seconds=max_age):
        codes[holds & (codes == Safety.OK)] = safety
    return codes


def _verdict_marks(fleet: Fleet, silence: Codes) -> Marks:
    safety = fleet.snapshot.safety
    found = confirmed(fleet.columns, fleet.ledger)
    over = _marks(*found.amounts)
    return _marks(
        # That this replica has just started is its own affair.
        np.where(safety == Safety.AWAITING_REPORT, Safety.OK, safety),
        silence,
        fleet.columns.reported.missing,
        fleet.columns.reported.quarantined,
        np.full(len(silence), fleet.has_reports),
        np.where(found.is_over, over, np.uint64(0)),
        _drain_marks(fleet),
    )


def _drain_marks(fleet: Fleet) -> Marks:
    marks = np.zeros(len(fleet.columns.names), np.uint64)
    for name in fleet.draining:
        found = drainage_of(fleet, name)
        marks[fleet.columns.row_of[name]] = crc32(found.message.encode()) if found else 0
    return marks


def _allocated_marks(fleet: Fleet) -> Marks:
    view = fleet.snapshot
    return _marks(
        view.cpu_used_millis,
        view.memory_used_bytes,
        view.disk_used_bytes,
        view.sandboxes,
        view.creating,
    )


def _marks(*columns: NDArray[np.generic]) -> Marks:
    """Return one number a row that differs, but for a chance of 2^-64, where a column does."""
    marks = np.full(len(columns[0]), 1, np.uint64)
    for column in columns:
        marks = (marks ^ column.astype(np.uint64)) * _FACTOR
        marks ^= marks >> np.uint64(29)
    return np.maximum(marks, np.uint64(LOOK_AGAIN + 1))
