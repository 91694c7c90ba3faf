"""Label columns: interned values, 0 where a node lacks the label."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cubesched.core.snapshot import Bools, Snapshot

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
