"""Warnings: what is allowed and probably not meant. None of them keeps a set from running."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from cubesched.api.v1alpha1 import SchedulerProfileSpec
from cubesched.core.pipeline import WeightedScore
from cubesched.plugins.builtin.switched_off import SwitchedOff
from cubesched.plugins.cel.plugins import ExprFilter, ExprScore
from cubesched.policy.objects import PROFILE_KIND, PolicyObject, Problem
from cubesched.policy.patterns import compile_pattern

T = TypeVar("T")

LINTS: Final = (
    "UnreachableRoute",
    "FilterPassesNoNode",
    "ConstantScore",
    "DominatingWeight",
    "OvercommitTwice",
    "SingleCandidate",
    "NoScores",
    "GuardsAlwaysOn",
)
"""Every warning there is, by name."""
LIVE_LINTS: Final = frozenset({"FilterPassesNoNode", "ConstantScore", "OvercommitTwice"})
"""Those that a look at the fleet can give."""
DOMINATING_SHARE: Final = 0.95
"""A score with more than this share of all weight leaves the others to break ties at most."""


@dataclass(frozen=True, slots=True)
class Built:
    """A Profile and the plugins that are made of it."""

    subject: PolicyObject
    spec: SchedulerProfileSpec
    filters: Sequence[object]
    scores: Sequence[WeightedScore]


def lint(built: Sequence[Built]) -> Iterator[Problem]:
    """Yield what can be told without a fleet; `built` in the order in which routes are tried."""
    for index, one in enumerate(built):
        warnings = (
            *_route(one, built[:index]),
            *_filters(one),
            *_scores(one),
            *_selection(one),
        )
        for path, name, message in warnings:
            yield Problem(PROFILE_KIND, one.subject.name, path, message, name)


Warned = Iterable[tuple[str, str, str]]
"""(path, lint, message)"""


def _route(one: Built, before: Sequence[Built]) -> Warned:
    for other in before:
        if not one.spec.default and _covers(other.spec, one.spec):
            name = other.subject.name
            yield "spec.route", "UnreachableRoute", f"{name} is tried first and takes all of it"
            return


def _covers(first: SchedulerProfileSpec, later: SchedulerProfileSpec) -> bool:
    """Tell whether every request of the later route surely takes the first one."""
    if first.route is None or later.route is None:
        return False
    if not first.route.labels.items() <= later.route.labels.items():
        return False
    wide, narrow = first.route.instance_types, later.route.instance_types
    if not wide:
        return True
    patterns = [compile_pattern(text) for text in wide]
    return bool(narrow) and all(
        text in wide or (_is_literal(text) and any(p.fullmatch(text) for p in patterns))
        for text in narrow
    )


def _is_literal(text: str) -> bool:
    return all(letter.isalnum() or letter in "-_/" for letter in text)


def _filters(one: Built) -> Warned:
    for index, plugin in _numbered(one.spec.filters, one.filters):
        if isinstance(plugin, ExprFilter) and plugin.program.root.literal is False:
            yield f"spec.filters[{index}].expr", "FilterPassesNoNode", "is false for every node"


def _scores(one: Built) -> Warned:
    scores = one.scores
    if all(isinstance(score.plugin, SwitchedOff) for score in scores):
        why = "every score is disabled or without factors" if scores else "nothing is rated"
        yield "spec.scores", "NoScores", f"{why}, so only the tie rule decides"
        return
    listed = one.spec.scores or ()
    for index, score in _numbered(listed, scores):
        if isinstance(score.plugin, ExprScore) and not score.plugin.program.root.per_node:
            path = f"spec.scores[{index}].expr"
            yield path, "ConstantScore", "rates all nodes alike: it asks nothing about the node"
    whole = sum(score.weight for score in scores)
    for index, score in _numbered(listed, scores):
        if len(scores) > 1 and score.weight > DOMINATING_SHARE * whole:
            share = f"{score.weight / whole:.1%} of all weight"
            message = f"{share}: the other scores can hardly change an order"
            yield f"spec.scores[{index}].weight", "DominatingWeight", message


def _selection(one: Built) -> Warned:
    # `random` among 1 is what the API server stores where a Profile says nothing about it.
    selection = one.spec.selection
    if selection.top_n == 1 and selection.method == "spread":
        message = "spread among 1 node is the same as highest; topN is 1"
        yield "spec.selection", "SingleCandidate", message


def _numbered(listed: Sequence[object], built: Sequence[T]) -> Iterator[tuple[int, T]]:
    """Yield what was built with the place of its entry: disabled entries were not built."""
    places = [index for index, entry in enumerate(listed) if getattr(entry, "enabled", True)]
    yield from zip(places, built, strict=False)
