"""The filters and scores of a Profile: checked entry by entry, built by their kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cubesched.api.duration import parse_seconds
from cubesched.api.v1alpha1 import FilterPlugin, SchedulerProfileSpec, ScorePlugin
from cubesched.core.errors import PluginArgsInvalid
from cubesched.core.pipeline import WeightedScore
from cubesched.plugins import listing
from cubesched.plugins.kinds import FILTER_KINDS, AnyFilter, build_filter, build_score
from cubesched.plugins.listing import Listing, Surroundings
from cubesched.plugins.registry import is_guard
from cubesched.policy.objects import ProblemList
from cubesched.policy.reading import entries

BUILTIN = "builtin"
DEFAULT_SCORE_PLUGIN = "real_time_weighted_average"
"""What rates nodes when a Profile says nothing about scores."""

_TEXTS = ("expr", "socketPath")
"""What building looks at and what therefore must be text; else the model tells."""
PluginT = TypeVar("PluginT")
Build = Callable[[Listing, Surroundings], PluginT]


def check_plugins(problems: ProblemList, around: Surroundings) -> None:
    """Note every error of every entry, those of disabled ones too."""
    _check_list("filters", build_filter, problems, around)
    _check_list("scores", build_score, problems, around)


def build_filters(spec: SchedulerProfileSpec, around: Surroundings) -> tuple[AnyFilter, ...]:
    """Return the enabled filters of a spec that `check_plugins` found nothing wrong with."""
    return tuple(build_filter(_listed(each), around) for each in spec.filters if each.enabled)


def build_scores(spec: SchedulerProfileSpec, around: Surroundings) -> tuple[WeightedScore, ...]:
    """Return the enabled scores; omitted means the default one, an empty list means none."""
    if spec.scores is None:
        plugin = build_score(Listing(DEFAULT_SCORE_PLUGIN), around)
        return (WeightedScore(plugin, weight=1.0, default_score=0.0),)
    return tuple(
        WeightedScore(
            build_score(_listed(entry), around),
            weight=entry.weight,
            default_score=entry.default_score,
        )
        for entry in spec.scores
        if entry.enabled
    )


def places_of(spec: SchedulerProfileSpec) -> dict[tuple[str, str], str]:
    """Return the path of every entry, by list and name."""
    lists = (("filters", spec.filters), ("scores", spec.scores or ()))
    return {
        (field, entry.name): f"spec.{field}[{index}]"
        for field, listed in lists
        for index, entry in enumerate(listed)
    }


def _listed(entry: FilterPlugin | ScorePlugin) -> Listing:
    return _listing(entry.name, entry.model_dump(by_alias=True))


def _check_list(
    field: str, build: Build[PluginT], problems: ProblemList, around: Surroundings
) -> None:
    seen: set[str] = set()
    for path, entry in entries(problems.subject.spec, field):
        name, kind = entry.get("name"), entry.get("type", BUILTIN)
        is_known = isinstance(kind, str) and kind in FILTER_KINDS
        if not is_known:
            allowed = ", ".join(FILTER_KINDS)
            problems.add(f"{path}.type", f"unknown type {kind!r}; allowed: {allowed}")
        if isinstance(name, str) and name in seen:
            problems.add(f"{path}.name", f"{name!r} is listed twice")
        elif isinstance(name, str):
            seen.add(name)
            if is_guard(name):
                problems.add(f"{path}.name", f"{name!r} is a guard: always on, it cannot be listed")
            elif is_known and all(isinstance(entry.get(text, ""), str) for text in _TEXTS):
                _check_entry(path, _listing(name, entry), build, problems, around)


def _check_entry(
    path: str,
    listed: Listing,
    build: Build[PluginT],
    problems: ProblemList,
    around: Surroundings,
) -> None:
    try:
        build(listed, around)
    except PluginArgsInvalid as error:
        for below, message in error.problems:
            problems.add(f"{path}.{below}", message)


def _listing(name: str, entry: Mapping[str, Any]) -> Listing:
    """Read an entry as far as it can be read; what is malformed, the model tells."""
    args, failures = entry.get("args"), entry.get("circuitBreakerFailures")
    return Listing(
        name=name,
        type=entry.get("type", BUILTIN),
        args=args if isinstance(args, Mapping) else {},
        expr=_text(entry, "expr"),
        socket_path=_text(entry, "socketPath"),
        timeout_seconds=_seconds(entry, "timeout", listing.DEFAULT_TIMEOUT_SECONDS),
        circuit_breaker_failures=failures if type(failures) is int else listing.DEFAULT_FAILURES,
        circuit_breaker_cooldown_seconds=_seconds(
            entry, "circuitBreakerCooldown", listing.DEFAULT_COOLDOWN_SECONDS
        ),
    )


def _text(entry: Mapping[str, Any], field: str) -> str:
    value = entry.get(field)
    return value if isinstance(value, str) else ""


def _seconds(entry: Mapping[str, Any], field: str, default: float) -> float:
    value = entry.get(field)
    try:
        return parse_seconds(value) if isinstance(value, str) else default
    except ValueError:
        return default
