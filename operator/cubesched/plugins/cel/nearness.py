"""The nearest miss of a filter that compares one number of the node with a bound."""

from __future__ import annotations

from typing import Final

import numpy as np

from cubesched.core.pipeline import Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Ints, Snapshot
from cubesched.plugins.cel.celtypes import DOUBLE, INT
from cubesched.plugins.cel.typed import Typed
from cubesched.plugins.cel.values import Env, is_column

_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
"""What an operator becomes when its sides change places; `!=` has no near miss."""


def nearest(root: Typed, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
    """Return the first of `rows` with the least distance to the bound: `node.f is 9, want < 8`."""
    found = _bounded(root)
    if found is None or not rows.size:
        return None
    side, sign, bound = found
    env = Env(fleet, request, rows)
    with np.errstate(all="ignore"):
        (values, unknown), (limit, failed) = side.run(env), bound.run(env)
        if not is_column(values) or is_column(limit) or (type(failed) is int and failed):
            return None
        distance = np.abs(values.astype(np.float64) - float(limit))
    distance[np.broadcast_to(np.asarray(unknown) != 0, rows.shape) | np.isnan(distance)] = np.inf
    best = int(distance.argmin())
    if distance[best] == np.inf or side.fact is None:
        return None
    text = f"node.{side.fact.name} is {values[best].item():g}, want {sign} {limit:g}"
    return Miss(int(rows[best]), text)


def _bounded(root: Typed) -> tuple[Typed, str, Typed] | None:
    """Return the fact, the operator and the bound, where the expression is such a comparison."""
    if root.compares is None:
        return None
    sign, left, right = root.compares
    if sign not in _MIRRORED or left.type not in (INT, DOUBLE):
        return None
    if left.fact is not None and not right.per_node:
        return left, sign, right
    if right.fact is not None and not left.per_node:
        return right, _MIRRORED[sign], left
    return None
