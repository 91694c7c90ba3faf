"""Score `multi_factor_weighted_average`: a second weighted mean, with a factor list of its own.

The factors, the formula and the defaults are those of `real_time_weighted_average`. Listed beside
it, it rates by other factors under a weight of its own: how busy the machine is against what is
allocated there, say.
Arguments: `factors`, a list of names (weight 1 each) or a map from name to weight. Without it the
factors and weights of the SchedulerConfig's `score` hold.
Source: CubeMaster's score of that name; there a background loop works it out once a second, here
every decision does.
"""

from __future__ import annotations

from typing import ClassVar, Final

from typing_extensions import override

from cubesched.core.pipeline import Score
from cubesched.plugins.args import FactorArgs
from cubesched.plugins.builtin.factors import (
    ALIASES,
    DEFAULT_FACTORS,
    FACTORS,
    AveragedFactors,
    weighted_average,
)

NAME: Final = "multi_factor_weighted_average"


class MultiFactorWeightedAverageArgs(FactorArgs):
    """Arguments of `multi_factor_weighted_average`."""

    known: ClassVar = (*FACTORS, *ALIASES)
    factors: AveragedFactors = dict.fromkeys(DEFAULT_FACTORS, 1.0)
    """What is averaged: a list of names, or a map from name to weight."""

    @override
    def build(self) -> Score:
        """Return the score."""
        return weighted_average(NAME, self.factors)
