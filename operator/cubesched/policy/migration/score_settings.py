"""CubeMaster's global score tree, as read: weights and the settings of each score."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from cubesched.plugins.registry import one_spelling
from cubesched.policy.migration.keys import key_of
from cubesched.policy.migration.notes import Fate
from cubesched.policy.migration.yamltree import Block

NO_FACTOR = "there is no such factor"


@dataclass(frozen=True, slots=True)
class Scorer:
    """One block of plugin_conf."""

    block: Block
    weight: float = 0.0
    factors: tuple[str, ...] = ()
    is_disabled: bool = False


@dataclass(frozen=True, slots=True)
class ScoreConf:
    """The whole of scheduler.score."""

    weights: Mapping[str, float] = field(default_factory=dict)
    """By factor; what is left out weighs 0."""
    scorers: Mapping[str, Scorer] = field(default_factory=dict)

    def weight(self, factors: Collection[str]) -> float:
        """Return the sum of the weights of some factors."""
        return sum(self.weights.get(factor, 0.0) for factor in factors)


def score_conf(scheduler: Block) -> ScoreConf:
    """Read scheduler.score; names are not checked yet."""
    score = scheduler.block("score")
    if score is None:
        return ScoreConf()
    weights, conf = score.block("resource_weights"), score.block("plugin_conf")
    return ScoreConf(
        weights=_weights(weights) if weights else {},
        scorers={
            name: _scorer(block)
            for name in (conf.values if conf else ())
            if conf and (block := conf.block(name)) is not None
        },
    )


def weight_of(block: Block, key: str) -> float:
    """Return a weight; 0 where it is left out or negative, with a note."""
    weight = block.number(key) or 0.0
    if weight < 0:
        block.note(key, Fate.LOST, "a weight must not be negative: counts as 0")
        return 0.0
    return weight


def _weights(block: Block) -> dict[str, float]:
    return {one_spelling(name): weight_of(block, name) for name in block.values}


def _scorer(block: Block) -> Scorer:
    if "score_interval" in block:
        path = "scheduler.score.plugin_conf.*.score_interval"
        block.note("score_interval", Fate.IGNORED, key_of(path).why)
    factors = dict.fromkeys(one_spelling(name) for name in block.names("enable_weight_factors"))
    return Scorer(block, weight_of(block, "weight"), tuple(factors), bool(block.flag("disable")))
