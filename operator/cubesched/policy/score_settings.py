"""SchedulerConfig.spec.score: every wrong name with its path, then the tree that scores read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cubesched.api.v1alpha1 import SchedulerConfigSpec
from cubesched.plugins.registry import FACTORS_OF, SCORES, one_spelling
from cubesched.plugins.score_tree import ScoreTree
from cubesched.plugins.spelling import did_you_mean
from cubesched.policy.objects import ProblemList
from cubesched.policy.reading import block

PATH = "spec.score"


def check_score_tree(problems: ProblemList) -> None:
    """Note every name of a factor or score that does not exist, whatever else is wrong."""
    score = block(problems.subject.spec, "score")
    weights, every_factor = block(score, "resourceWeights"), set().union(*FACTORS_OF.values())
    for factor in weights:
        _check_factor(f"{PATH}.resourceWeights.{factor}", factor, every_factor, problems)
    _check_spelling(f"{PATH}.resourceWeights", list(weights), problems)
    for name, switches in block(score, "plugins").items():
        path = f"{PATH}.plugins.{name}"
        if name not in SCORES:
            problems.add(path, f'unknown built-in score "{name}"; {did_you_mean(name, SCORES)}')
        elif isinstance(switches, Mapping):
            _check_factors(f"{path}.factors", name, switches.get("factors"), problems)


def score_tree_of(spec: SchedulerConfigSpec) -> ScoreTree:
    """Return the tree of a spec that `check_score_tree` found nothing wrong with."""
    plugins = spec.score.plugins
    return ScoreTree(
        weights={one_spelling(name): w for name, w in spec.score.resource_weights.items()},
        factors={
            name: tuple(one_spelling(factor) for factor in switches.factors)
            for name, switches in plugins.items()
            if switches.factors is not None
        },
        disabled=frozenset(name for name, switches in plugins.items() if switches.disabled),
    )


def _check_factors(path: str, score: str, listed: Any, problems: ProblemList) -> None:
    if not isinstance(listed, list):
        return  # absent, or refused by the model
    if score not in FACTORS_OF:
        problems.add(path, f"{score} does not rate by factors")
        return
    names = [factor for factor in listed if isinstance(factor, str)]
    for index, factor in enumerate(listed):
        if isinstance(factor, str):
            _check_factor(f"{path}[{index}]", factor, FACTORS_OF[score], problems)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        problems.add(path, f"listed more than once: {', '.join(twice)}")
    _check_spelling(path, names, problems)


def _check_factor(path: str, name: str, known: Collection[str], problems: ProblemList) -> None:
    if name not in known:
        problems.add(path, f'unknown factor "{name}"; {did_you_mean(name, known)}')


def _check_spelling(path: str, names: Sequence[str], problems: ProblemList) -> None:
    for name in names:
        if one_spelling(name) != name and one_spelling(name) in names:
            problems.add(path, f'"{name}" and "{one_spelling(name)}" are the same factor')
