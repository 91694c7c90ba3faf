"""The table of built-in plugins: guards and constraints in their order, filters and scores by name.

A new filter or score is one file and one row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from pydantic import ValidationError

from cubesched.core.errors import PluginArgsInvalid
from cubesched.core.pipeline import Filter, Score
from cubesched.plugins.args import Args, FactorArgs, FilterArgs, ScoreArgs, problem
from cubesched.plugins.builtin.constraints.instance_type import InstanceType
from cubesched.plugins.builtin.constraints.node_selector import NodeSelector
from cubesched.plugins.builtin.constraints.refused import Refused
from cubesched.plugins.builtin.constraints.taints import Taints
from cubesched.plugins.builtin.factors import one_spelling
from cubesched.plugins.builtin.filters.node_labels import NodeLabelsArgs
from cubesched.plugins.builtin.filters.scarce_resource import ScarceResourceArgs
from cubesched.plugins.builtin.guards.cpu import Cpu
from cubesched.plugins.builtin.guards.disk import Disk
from cubesched.plugins.builtin.guards.mem import Mem
from cubesched.plugins.builtin.guards.node_safety import NodeSafety
from cubesched.plugins.builtin.guards.realtime_create_num import RealtimeCreateNum
from cubesched.plugins.builtin.guards.template_locality import TemplateLocality
from cubesched.plugins.builtin.scores.balanced_allocation import BalancedAllocationArgs
from cubesched.plugins.builtin.scores.create_concurrency_score import CreateConcurrencyScoreArgs
from cubesched.plugins.builtin.scores.image_score import ImageScoreArgs
from cubesched.plugins.builtin.scores.least_allocated import LeastAllocatedArgs
from cubesched.plugins.builtin.scores.most_allocated import MostAllocatedArgs
from cubesched.plugins.builtin.scores.multi_factor_weighted_average import (
    MultiFactorWeightedAverageArgs,
)
from cubesched.plugins.builtin.scores.real_time_weighted_average import (
    RealTimeWeightedAverageArgs,
)
from cubesched.plugins.builtin.scores.resource_fit_score import ResourceFitScoreArgs
from cubesched.plugins.builtin.scores.template_local_pressure import TemplateLocalPressureArgs
from cubesched.plugins.builtin.switched_off import SwitchedOff
from cubesched.plugins.score_tree import NO_TREE, ScoreTree
from cubesched.plugins.spelling import did_you_mean

__all__ = [
    "CONSTRAINTS",
    "FACTORS_OF",
    "FILTERS",
    "GUARDS",
    "SCORES",
    "build_filter",
    "build_score",
    "is_guard",
    "one_spelling",
]

A = TypeVar("A", bound=Args)


GUARDS: Final[tuple[Filter, ...]] = (
    NodeSafety(),
    Cpu(),
    Mem(),
    Disk(),
    TemplateLocality(),
    RealtimeCreateNum(),
)
"""In every pipeline, in this order; no Profile can list, disable or reorder them."""

CONSTRAINTS: Final[tuple[Filter, ...]] = (Refused(), InstanceType(), NodeSelector(), Taints())
"""What the request itself demands; in every pipeline after the guards."""

FILTERS: Final[Mapping[str, type[FilterArgs]]] = {
    "node_labels": NodeLabelsArgs,
    "scarce_resource": ScarceResourceArgs,
}
"""Each by its name: the model that checks its arguments and builds it."""

SCORES: Final[Mapping[str, type[ScoreArgs]]] = {
    "real_time_weighted_average": RealTimeWeightedAverageArgs,
    "multi_factor_weighted_average": MultiFactorWeightedAverageArgs,
    "resource_fit_score": ResourceFitScoreArgs,
    "create_concurrency_score": CreateConcurrencyScoreArgs,
    "image_score": ImageScoreArgs,
    "template_local_pressure": TemplateLocalPressureArgs,
    "least_allocated": LeastAllocatedArgs,
    "most_allocated": MostAllocatedArgs,
    "balanced_allocation": BalancedAllocationArgs,
}

FACTORS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    name: model.known for name, model in SCORES.items() if issubclass(model, FactorArgs)
}
"""The factors of each score that rates by factors."""


def build_filter(name: str, args: Mapping[str, object]) -> Filter:
    """Return the built-in filter; raise PluginArgsInvalid with every problem."""
    return _checked(name, args, table=FILTERS, kind="filter").build()


def build_score(name: str, args: Mapping[str, object], tree: ScoreTree = NO_TREE) -> Score:
    """Return the built-in score; raise PluginArgsInvalid with every problem.

    Factors that `args` name are all it rates by; only without them the tree is asked.
    """
    found = _checked(name, args, table=SCORES, kind="score")
    if "factors" in found.model_fields_set:
        return found.build()
    if name in tree.disabled:
        return SwitchedOff(name)
    if isinstance(found, FactorArgs):
        return found.model_copy(update={"factors": tree.weights_of(name, found.factors)}).build()
    return found.build()


def is_guard(name: str) -> bool:
    """Tell whether the name belongs to a guard, which no Profile can list."""
    return any(guard.name == name for guard in GUARDS)


def _checked(
    name: str, args: Mapping[str, object], *, table: Mapping[str, type[A]], kind: str
) -> A:
    if name not in table:
        message = f'unknown built-in {kind} "{name}"; {did_you_mean(name, table)}'
        raise PluginArgsInvalid((("name", message),))
    model = table[name]
    try:
        return model.model_validate(dict(args))
    except ValidationError as error:
        problems = tuple(problem(one, model) for one in error.errors(include_url=False))
        raise PluginArgsInvalid(problems) from None
