"""The weighted averages as CubeMaster computes them.

Both are sum of f * w over sum of w, over the enabled factors. Beside ours:

* the terms req_cpu and req_mem of `real_time_weighted_average` are shares of 0..1 beside factors of
  0..100, added whether enabled or not; their weights are in the divisor only where they are;
* metric_update and metric_local_update_at compare two times and are 1 for every live node;
* create_concurrent_limit is the node's limit itself, here up to 100.

So an average may exceed 100. It is divided by the most it can be, and its weight multiplied by
the same: the blend of all scores is the old one times a constant. Unknown values count as the worst
there is, as everywhere here; CubeMaster takes them for 0, which is the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.plugins.builtin.factors import ALIASES, FACTORS, FreePercent, one_spelling
from cubesched.plugins.builtin.ratios import cpu_left, memory_left

REAL_TIME: Final = "real_time_weighted_average"
MULTI_FACTOR: Final = "multi_factor_weighted_average"

_REQUESTED: Final[Mapping[str, FreePercent]] = {"req_cpu": cpu_left, "req_mem": memory_left}
"""What would be left, in percent; CubeMaster's terms are a hundredth of it."""


def _one(_: Snapshot, __: Request, rows: Ints) -> Floats:
    return np.ones(rows.size)


def _create_limit(fleet: Snapshot, _: Request, rows: Ints) -> Floats:
    return np.minimum(fleet.create_limit.take(rows), 100.0)


_OWN: Final[Mapping[str, tuple[FreePercent, float]]] = {
    "metric_update": (_one, 1.0),
    "metric_local_update_at": (_one, 1.0),
    "create_concurrent_limit": (_create_limit, 100.0),
}
"""Factors that only CubeMaster has, and the most that each can be."""

KNOWN: Final = (*FACTORS, *ALIASES, *_OWN)
"""Every factor that either average may enable."""


@dataclass(frozen=True, slots=True)
class LegacyAverage:
    """Rates a node by sum of f * share; the shares are such that the most it can be is 100."""

    name: str
    terms: tuple[tuple[FreePercent, float], ...]

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        """Return one score for each row; see the module."""
        total = np.zeros(rows.size)
        for free, share in self.terms:
            total += free(fleet, request, rows) * share
        return np.minimum(total, 100.0, out=total)


def average(
    name: str, factors: Sequence[str], weights: Mapping[str, float]
) -> tuple[LegacyAverage, float] | None:
    """Return the score and what its weight is to be multiplied by; None where it never applies.

    `weights` are those of all factors; one that is not named weighs 0.
    """
    enabled = [one_spelling(factor) for factor in factors]
    divisor = sum(weights.get(factor, 0.0) for factor in enabled)
    if not divisor:
        return None
    terms = [_term(factor, weights.get(factor, 0.0)) for factor in enabled]
    if name == REAL_TIME:
        terms += [
            (free, weights.get(factor, 0.0) / 100.0, 100.0) for factor, free in _REQUESTED.items()
        ]
    most = sum(share * highest for _, share, highest in terms)
    if not most:
        return LegacyAverage(name, ()), 1.0
    shares = tuple((free, share * 100.0 / most) for free, share, _ in terms if share)
    return LegacyAverage(name, shares), most / divisor / 100.0


def _term(factor: str, weight: float) -> tuple[FreePercent, float, float]:
    """Return the factor, what it is multiplied by, and the most it can be."""
    if factor in _REQUESTED:  # enabled, it stands in the divisor; its term is added below
        return _one, 0.0, 1.0
    free, highest = _OWN.get(factor) or (FACTORS[factor], 100.0)
    return free, weight, highest
