"""Shares of a limit: the arithmetic that the scores have in common.

Every column is gathered for the feasible rows only. A limit of 0 divides to inf or NaN, which the
clamps turn into the worst; callers see no warning, since `core.answers` silences them.
"""

from __future__ import annotations

import numpy as np

from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot


def used_share(used: Ints, limit: Ints) -> Floats:
    """Return used / limit within 0..1; 1, the worst, where the limit is 0.

    For what the ledger counts, which is never negative nor unknown.
    """
    share = used / limit
    return np.fmin(share, 1.0, out=share)


def measured_share(used: Floats, limit: Ints | Floats | float) -> Floats:
    """Return used / limit within 0..1; 1, the worst, where either is unknown or the limit is 0."""
    share = used / limit
    np.fmin(share, 1.0, out=share)
    return np.maximum(share, 0.0, out=share)


def cpu_left(fleet: Snapshot, request: Request, rows: Ints) -> Floats:
    """Return the share of cpu quota x over-commit that remains after placing, within 0..1."""
    limit = fleet.cpu_limit_millis.take(rows)
    return _left(limit, fleet.cpu_used_millis.take(rows), request.cpu_millis)


def memory_left(fleet: Snapshot, request: Request, rows: Ints) -> Floats:
    """Return the share of memory quota x over-commit that remains after placing, within 0..1."""
    limit = fleet.memory_limit_bytes.take(rows)
    return _left(limit, fleet.memory_used_bytes.take(rows), request.memory_bytes)


def _left(limit: Ints, used: Ints, requested: int) -> Floats:
    free = np.subtract(limit, used, out=used)
    free -= requested
    share = free / limit
    # fmax turns the NaN of 0 / 0 into 0, the worst.
    return np.fmax(share, 0.0, out=share)
