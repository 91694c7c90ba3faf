"""The global score tree: factors and weights for scores that a Profile says nothing of.

Source: CubeMaster's `scheduler.score`. There a factor without a weight weighs 0; here it weighs 1,
so that a tree need only name what differs, as everywhere else in the configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class ScoreTree:
    """SchedulerConfig.spec.score with every factor under one spelling."""

    weights: Mapping[str, float] = field(default_factory=dict)
    """Weight of each factor named, whatever score it stands in; of all others it is 1."""
    factors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Factors of each score named, which may be none; of all others they are its defaults."""
    disabled: frozenset[str] = frozenset()
    """Scores that never apply."""

    def weights_of(self, score: str, default: Iterable[str]) -> dict[str, float]:
        """Return the factors of `score` with their weights; `default` where it is not named."""
        return {
            factor: self.weights.get(factor, 1.0) for factor in self.factors.get(score, default)
        }

    def over(self, factors: Mapping[str, tuple[str, ...]]) -> ScoreTree:
        """Return this tree laid over these factors of scores."""
        return ScoreTree(self.weights, {**factors, **self.factors}, self.disabled)


NO_TREE: Final = ScoreTree()
"""Every score keeps its default factors, weight 1 each."""
