"""Shares of a limit: the arithmetic that the scores have in common.

Every column is gathered for the feasible rows only.
"""

from __future__ import annotations

import numpy as np

from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot


def used_share(used: Ints | Floats, limit: Ints | Floats) -> Floats:
    """Return used / limit within 0..1; 1, the worst, where unknown or where the limit is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.divide(used, limit, dtype=np.float64)
    np.fmin(share, 1.0, out=share)
    return np.maximum(share, 0.0, out=share)


def used_share_of_percent(percent: Floats) -> Floats:
    """Return percent / 100 within 0..1; 1, the worst, where unknown."""
    share = percent / 100.0
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
    free = limit - used
    free -= requested
    share = free / np.maximum(limit, 1)
    np.minimum(share, 1.0, out=share)
    return np.maximum(share, 0.0, out=share)


def within_bounds(scores: Floats) -> Floats:
    """Clamp to 0..100 in place: what rounding or a penalty pushed out."""
    np.minimum(scores, 100.0, out=scores)
    return np.maximum(scores, 0.0, out=scores)
