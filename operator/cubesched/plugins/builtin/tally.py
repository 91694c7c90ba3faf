"""Counting and ranking rejected nodes, for the texts that explain a rejection."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cubesched.core.amounts import told_apart
from cubesched.core.pipeline import Miss
from cubesched.core.snapshot import Bools, Floats, Ints


def tally(*parts: tuple[str, Bools]) -> Sequence[tuple[str, int]]:
    """Count each node under the first text whose mask holds it; texts with none are left out."""
    pairs = []
    open_rows = np.ones(parts[0][1].shape, dtype=np.bool_)
    for text, hit in parts:
        number = int(np.count_nonzero(hit & open_rows))
        open_rows &= ~hit
        if number:
            pairs.append((text, number))
    return pairs


def nearest_amount(
    rows: Ints, *, needed: int, free: Ints | Floats, show: Callable[[int], str], where: str = ""
) -> Miss | None:
    """Return the row with the most free among those with less than needed; None if there is none.

    `free` has one entry for each of `rows`; NaN counts as enough. `where` ends the text.
    """
    short = np.flatnonzero(free < needed)
    if not short.size:
        return None
    best = short[free[short].argmax()]
    have = max(int(free[best]), 0)
    needs, has = told_apart(needed, have, show)
    return Miss(int(rows[best]), f"needs {needs}, {has} free{where}")


def nearest_below(
    rows: Ints, *, value: Ints | Floats, bound: Ints | Floats | float, text: str
) -> Miss | None:
    """Return the row least above its bound among those not below it; None if there is none.

    `text` is filled with `value` and `bound`.
    """
    bounds = np.broadcast_to(np.asarray(bound, dtype=np.float64), rows.shape)
    over = np.flatnonzero(value >= bounds)
    if not over.size:
        return None
    excess = (value[over] - bounds[over]) / np.maximum(value[over], 1)
    best = over[excess.argmin()]
    shown = text.format(value=float(value[best]), bound=float(bounds[best]))
    return Miss(int(rows[best]), shown)


def nearest_of(*misses: Miss | None) -> Miss | None:
    """Return the first miss there is: parts of one guard are told in their order."""
    return next((miss for miss in misses if miss is not None), None)
