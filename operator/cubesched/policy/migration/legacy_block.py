"""What becomes SchedulerConfig.spec.legacy: filter, score, postscore, and how one is picked."""

from __future__ import annotations

import re
from typing import Any, Final

from cubesched.policy.legacy import ACTIVE, FILTERS, HINTS, NEGATIVE, SCORERS, WEIGHTED
from cubesched.policy.migration.notes import Fate
from cubesched.policy.migration.score_settings import NO_FACTOR, ScoreConf, Scorer, weight_of
from cubesched.policy.migration.settings import bounded
from cubesched.policy.migration.yamltree import Block

Spec = dict[str, Any]

UNKNOWN: Final = (
    "not built in: what your own build has becomes a python or grpc plugin of a Profile"
)
ELSEWHERE: Final = {
    "binpack_score": "a Profile with most_allocated or resource_fit_score packs",
    "external_http_score": "a Profile may ask another process by a grpc plugin",
}
SCARCE: Final = "gpu"
_NODE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def legacy_spec(scheduler: Block, conf: ScoreConf) -> Spec:
    """Return the whole block, only what differs from its defaults."""
    spec: Spec = {}
    for name, part in (
        ("filter", _filters(scheduler)),
        ("score", _score(scheduler, conf)),
        ("postscore", _postscore(scheduler)),
    ):
        if part:
            spec[name] = part
    number = scheduler.number("priority_select_num")
    if number:
        spec["prioritySelectNum"] = -1 if number < 0 else max(1, int(number))
    if _picks_by_weight(scheduler):
        spec["leastSelectName"] = "rw"
    return spec


def scarce_label(scheduler: Block) -> str | None:
    """Return the label that marks scarce nodes; None where that filter is off."""
    block = scheduler.block("scarce_resource_filter")
    if block is None or not block.flag("enable"):
        return None
    return block.text("label") or SCARCE


def _filters(scheduler: Block) -> Spec:
    block, names = scheduler.block("filter"), []
    if block is not None:
        for name in block.names("enable_filters"):
            if name in FILTERS:
                names.append(name)
            else:
                _note_name(block, "enable_filters", name)
    label = scarce_label(scheduler)
    if label == SCARCE:
        names += [] if "scarce_resource" in names else ["scarce_resource"]
    elif label:
        scheduler.note("scarce_resource_filter", Fate.LOST, f"legacy knows the label {SCARCE} only")
    return {"enableFilters": names} if names else {}


def _score(scheduler: Block, conf: ScoreConf) -> Spec:
    block = scheduler.block("score")
    if block is None:
        return {}
    enabled, settings = [], {}
    for name in block.names("enable_scorers"):
        if name not in SCORERS:
            _note_name(block, "enable_scorers", name)
        elif name not in conf.scorers:
            why = f"{name} has no block in plugin_conf, without which CubeMaster does not start"
            block.note("enable_scorers", Fate.LOST, why)
        else:
            enabled.append(name)
            settings[name] = _scorer(name, conf.scorers[name], conf)
    weights = {name: weight for name, weight in conf.weights.items() if name in WEIGHTED}
    if not enabled:
        return {}
    return {"enableScorers": enabled, "resourceWeights": weights, "pluginConf": settings}


def _scorer(name: str, scorer: Scorer, conf: ScoreConf) -> Spec:
    enabled = [factor for factor in scorer.factors if factor in SCORERS[name]]
    unknown = [factor for factor in scorer.factors if factor not in enabled]
    weight = scorer.weight
    if unknown:
        why = f"{NO_FACTOR}: {', '.join(unknown)}"
        if conf.weight(unknown) and conf.weight(scorer.factors):
            weight *= conf.weight(enabled) / conf.weight(scorer.factors)
            why += "; there they weaken the score, so its weight is the smaller for them"
        scorer.block.note("enable_weight_factors", Fate.CHANGED, why)
    spec: Spec = {"weight": weight, "enableWeightFactors": enabled}
    return {**spec, "disable": True} if scorer.is_disabled else spec


def _postscore(scheduler: Block) -> Spec:
    block = scheduler.block("postscore")
    if block is None:
        return {}
    weights = block.block("resource_weights")
    factor = bounded(block, "param_factor", 1e-9, 1e6)
    stretch = max(1.0, factor or 0.0)
    spec: Spec = {
        "disable": True if block.flag("disable") else None,
        "paramFactor": min(factor, 1.0) if factor else None,
        "resourceWeights": {
            name: weight_of(weights, name) * stretch
            for name in (ACTIVE, NEGATIVE)
            if weights and name in weights
        },
        "activeWhiteList": _nodes(block, "active_white_list"),
        "negativeWhiteList": _nodes(block, "negative_white_list"),
    }
    return {field: value for field, value in spec.items() if value}


def _nodes(block: Block, key: str) -> list[str]:
    names = []
    for name in block.names(key):
        if _NODE_NAME.fullmatch(name.lower()):
            names.append(name.lower())
        else:
            block.note(key, Fate.LOST, f"no SandboxNode can be named {name}")
    return list(dict.fromkeys(names))


def _picks_by_weight(scheduler: Block) -> bool:
    name = scheduler.text("least_select_name")
    if name in ("sw", "rrw"):
        why = f"{name} takes turns by weight; rw draws in the same proportion"
        scheduler.note("least_select_name", Fate.CHANGED, why)
    elif name not in (None, "", "random", "rw"):
        scheduler.note("least_select_name", Fate.IGNORED, f"{name} is unknown there: random")
    return name in ("sw", "rrw", "rw")


def _note_name(block: Block, key: str, name: str) -> None:
    if name in HINTS:
        block.note(key, Fate.IGNORED, f"{name}: {HINTS[name].removesuffix(': take it out')}")
    else:
        block.note(key, Fate.LOST, f"{name}: {ELSEWHERE.get(name, UNKNOWN)}")
