"""The filters and scores of a Profile: checked entry by entry, built through the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cubesched.api.v1alpha1 import SchedulerProfileSpec
from cubesched.core.errors import PluginArgsInvalid
from cubesched.core.pipeline import Filter, WeightedScore
from cubesched.plugins.registry import build_filter, build_score, is_guard
from cubesched.plugins.score_tree import ScoreTree
from cubesched.policy.objects import ProblemList
from cubesched.policy.reading import entries

BUILTIN = "builtin"
DEFAULT_SCORE_PLUGIN = "real_time_weighted_average"
"""What rates nodes when a Profile says nothing about scores."""

PluginT = TypeVar("PluginT")
Build = Callable[[str, Mapping[str, Any]], PluginT]


def check_plugins(problems: ProblemList) -> None:
    """Note every error of every entry, those of disabled ones too."""
    _check_list("filters", build_filter, problems)
    _check_list("scores", build_score, problems)


def build_filters(spec: SchedulerProfileSpec) -> tuple[Filter, ...]:
    """Return the enabled filters of a spec that `check_plugins` found nothing wrong with."""
    return tuple(build_filter(entry.name, entry.args) for entry in spec.filters if entry.enabled)


def build_scores(spec: SchedulerProfileSpec, tree: ScoreTree) -> tuple[WeightedScore, ...]:
    """Return the enabled scores; omitted means the default one, an empty list means none."""
    if spec.scores is None:
        plugin = build_score(DEFAULT_SCORE_PLUGIN, {}, tree)
        return (WeightedScore(plugin, weight=1.0, default_score=0.0),)
    return tuple(
        WeightedScore(
            build_score(entry.name, entry.args, tree),
            weight=entry.weight,
            default_score=entry.default_score,
        )
        for entry in spec.scores
        if entry.enabled
    )


def _check_list(field: str, build: Build[PluginT], problems: ProblemList) -> None:
    seen: set[str] = set()
    for path, entry in entries(problems.subject.spec, field):
        kind = entry.get("type", BUILTIN)
        if kind != BUILTIN:
            problems.add(
                f"{path}.type",
                f"type {kind!r} is not available in this version; allowed: {BUILTIN}",
            )
        name = entry.get("name")
        if isinstance(name, str) and name in seen:
            problems.add(f"{path}.name", f"{name!r} is listed twice")
        elif isinstance(name, str):
            seen.add(name)
            if kind == BUILTIN:
                _check_entry(path, name, entry, build=build, problems=problems)


def _check_entry(
    path: str, name: str, entry: Mapping[str, Any], *, build: Build[PluginT], problems: ProblemList
) -> None:
    if is_guard(name):
        problems.add(f"{path}.name", f"{name!r} is a guard: always on, it cannot be listed")
        return
    args = entry.get("args")
    try:
        build(name, args if isinstance(args, Mapping) else {})
    except PluginArgsInvalid as error:
        for below, message in error.problems:
            problems.add(f"{path}.{below}", message)
