"""What would remain on a node after placing: the arithmetic that the scores have in common.

Every column is gathered for the feasible rows only. Of a limit of 0 each unit takes infinitely
much, and none of them is NaN; fmax turns both into 0, the worst.
"""

from __future__ import annotations

import numpy as np

from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot


def cpu_left(fleet: Snapshot, request: Request, rows: Ints) -> Floats:
    """Return how much of cpu quota x over-commit remains after placing, in percent."""
    columns = fleet.derived
    each = columns.percent_per_milli.take(rows)
    return _left(columns.cpu_free_percent.take(rows), each, request.cpu_millis)


def memory_left(fleet: Snapshot, request: Request, rows: Ints) -> Floats:
    """Return how much of memory quota x over-commit remains after placing, in percent."""
    columns = fleet.derived
    each = columns.percent_per_byte.take(rows)
    return _left(columns.memory_free_percent.take(rows), each, request.memory_bytes)


def creates_left(fleet: Snapshot, creating: Ints, rows: Ints) -> Floats:
    """Return how much of the create limit `creating`, a column, leaves, in percent."""
    used = fleet.derived.percent_per_create.take(rows)
    used *= creating.take(rows)
    left = np.subtract(100.0, used, out=used)
    return np.fmax(left, 0.0, out=left)


def _left(free: Floats, each: Floats, requested: int) -> Floats:
    each *= requested
    free -= each
    return np.fmax(free, 0.0, out=free)
