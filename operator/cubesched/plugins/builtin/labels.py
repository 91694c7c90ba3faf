"""Label columns: interned values, 0 where a node lacks the label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from cubesched.core.pipeline import Miss
from cubesched.core.snapshot import Bools, Ints, Snapshot

_NO_SUCH_VALUE = -1


def carrying_all(fleet: Snapshot, pairs: Iterable[tuple[str, str]]) -> Bools:
    """Return which nodes carry every one of the (key, value) labels."""
    mask = np.ones(len(fleet), dtype=np.bool_)
    for key, value in pairs:
        column = fleet.labels.get(key)
        if column is None:
            return np.zeros(len(fleet), dtype=np.bool_)
        mask &= column == fleet.label_values.get(value, _NO_SUCH_VALUE)
    return mask


def carrying_truthy(fleet: Snapshot, key: str) -> Bools | None:
    """Return which nodes carry the label with a value other than "false" and "0".

    None when no node carries it at all.
    """
    column = fleet.labels.get(key)
    if column is None:
        return None
    mask: Bools = column != 0
    for value in ("false", "0"):
        mask &= column != fleet.label_values.get(value, _NO_SUCH_VALUE)
    return mask


def nearest_by_labels(fleet: Snapshot, pairs: Sequence[tuple[str, str]], rows: Ints) -> Miss | None:
    """Return the first of `rows` that lacks the fewest of the labels, and which it lacks."""
    if not rows.size or not pairs:
        return None
    matched = np.zeros(rows.size, dtype=np.int64)
    for pair in pairs:
        matched += carrying_all(fleet, (pair,))[rows]
    row = int(rows[matched.argmax()])
    lacking = [pair for pair in pairs if not carrying_all(fleet, (pair,))[row]]
    return Miss(row, "; ".join(f"{_label(fleet, key, row)}, not {key}={v}" for key, v in lacking))


def _label(fleet: Snapshot, key: str, row: int) -> str:
    column = fleet.labels.get(key)
    if column is None or not column[row]:
        return f"no label {key}"
    value = next(value for value, code in fleet.label_values.items() if code == column[row])
    return f"label {key}={value}"
