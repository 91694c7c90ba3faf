"""From node names to rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cubesched.core.snapshot import Bools, Snapshot


def rows_named(fleet: Snapshot, names: Iterable[str]) -> Bools:
    """Return which rows the names stand for; names of nodes that do not exist are skipped."""
    mask = np.zeros(len(fleet), dtype=np.bool_)
    mask[[fleet.row_of[name] for name in names if name in fleet.row_of]] = True
    return mask
