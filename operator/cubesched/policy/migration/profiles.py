"""What becomes SchedulerProfiles, and the score tree that they rate by."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cubesched.plugins.legacy.averages import REAL_TIME
from cubesched.plugins.registry import FACTORS_OF
from cubesched.policy.migration.notes import Fate
from cubesched.policy.migration.plugins import Around, filter_entry, score_entry
from cubesched.policy.migration.score_settings import NO_FACTOR, ScoreConf, Scorer
from cubesched.policy.migration.yamltree import Block

Spec = dict[str, Any]

ORDER_STEP: Final = 10
_REQUESTED: Final = ("req_cpu", "req_mem")
_MAX_NAME: Final = 63
_RANDOM: Final = "draws in proportion to the scores; some versions of CubeMaster picked evenly here"


@dataclass(frozen=True, slots=True)
class Profile:
    """One Profile as translated."""

    name: str
    path: str
    """Where it stood."""
    spec: Spec

    @property
    def is_default(self) -> bool:
        """Tell whether it serves what no other does."""
        return bool(self.spec.get("default"))


def profile_specs(
    scheduler: Block, conf: ScoreConf, *, scarce: str | None, reserved: Collection[str]
) -> list[Profile]:
    """Translate every Profile; no two get the same name, and none a reserved one."""
    used = set(reserved)
    around = Around(conf, {name: share(name, conf) for name in FACTORS_OF}, scarce)
    profiles = []
    for index, block in enumerate(scheduler.blocks("profiles"), start=1):
        name = _name(block, used)
        used.add(name)
        profiles.append(Profile(name, block.path, _spec(block, index * ORDER_STEP, around)))
    return profiles


def score_tree(conf: ScoreConf, profiles: Sequence[Profile]) -> Spec:
    """Return SchedulerConfig.spec.score: what these Profiles rate by, written out in full."""
    used = {score["name"] for profile in profiles for score in profile.spec["scores"]}
    plugins: Spec = {}
    weights: dict[str, float] = {}
    for name, scorer in conf.scorers.items():
        if name not in FACTORS_OF or name not in used:
            continue
        terms = terms_of(name, conf)
        weights |= {factor: weight for factor, weight in terms.items() if weight != 1.0}
        plugins[name] = {"factors": list(terms)} | (
            {"disabled": True} if scorer.is_disabled else {}
        )
        _note_factors(name, scorer, conf)
    tree: Spec = {"resourceWeights": weights} if weights else {}
    return {**tree, "plugins": plugins} if plugins else tree


def terms_of(name: str, conf: ScoreConf) -> dict[str, float]:
    """Return the factors of a score with the weights that they have here.

    req_cpu and req_mem are percents here, and shares of 1 there, added whether enabled or not.
    """
    scorer = conf.scorers.get(name, None)
    if scorer is None or not conf.weight(scorer.factors):
        return {}
    terms = {
        factor: conf.weights.get(factor, 0.0)
        for factor in scorer.factors
        if factor in FACTORS_OF[name] and factor not in _REQUESTED
    }
    if name == REAL_TIME:
        terms |= {f: conf.weights[f] / 100.0 for f in _REQUESTED if conf.weights.get(f)}
    return terms


def share(name: str, conf: ScoreConf) -> float:
    """Return what a score weighs here of its weight there: more or less is in its divisor."""
    scorer = conf.scorers.get(name)
    whole = conf.weight(scorer.factors) if scorer else 0.0
    return sum(terms_of(name, conf).values()) / whole if whole else 1.0


def _note_factors(name: str, scorer: Scorer, conf: ScoreConf) -> None:
    unknown = [f for f in scorer.factors if f not in FACTORS_OF[name]]
    if unknown:
        why = f"{NO_FACTOR} in Profiles: {', '.join(unknown)}"
        scorer.block.note("enable_weight_factors", Fate.CHANGED, why)
    if name == REAL_TIME and any(conf.weights.get(factor) for factor in _REQUESTED):
        why = "req_cpu and req_mem weigh a hundredth: percents here, shares of 1 there"
        scorer.block.note("enable_weight_factors", Fate.CHANGED, why)


def _spec(block: Block, order: int, around: Around) -> Spec:
    is_default = block.flag("default")
    spec: Spec = {"default": True} if is_default else {"order": order}
    route = _route(block)
    if route:
        spec["route"] = route
    filters = [entry for each in block.blocks("filters") if (entry := filter_entry(each, around))]
    if around.scarce:
        filters.append({"name": "scarce_resource", "args": {"labels": [around.scarce]}})
    if filters:
        spec["filters"] = filters
    spec["scores"] = [
        entry for each in block.blocks("scores") if (entry := score_entry(each, around))
    ]
    spec["selection"] = _selection(block)
    spec["failure"] = _failure(block)
    return {field: value for field, value in spec.items() if value != {}}


def _route(block: Block) -> Spec:
    route = block.block("route")
    if route is None:
        return {}
    spec: Spec = {}
    types, labels = route.names("instance_types"), route.block("labels")
    if types:
        spec["instanceTypes"] = types
    if labels is not None and labels.values:
        spec["labels"] = {key: labels.text(key) or "" for key in labels.values}
    return spec


def _selection(block: Block) -> Spec:
    selection = block.block("selection")
    if selection is None:
        return {}
    number, method = selection.number("top_n"), selection.text("method")
    spec: Spec = {}
    if number:
        spec["topN"] = int(number) if number == int(number) else number
    if method:
        spec["method"] = method
    if spec.get("topN", 1) != 1 and method in (None, "", "random"):
        selection.note("method", Fate.CHANGED, _RANDOM)
    return spec


def _failure(block: Block) -> Mapping[str, Any]:
    failure = block.block("failure")
    spec = {
        field: text
        for key, field in (("filter", "filter"), ("score", "score"))
        if failure and (text := failure.text(key))
    }
    spec["noCandidate"] = (failure.text("no_candidate") if failure else None) or "fail"
    return spec


def _name(block: Block, used: Collection[str]) -> str:
    """Return a name that an object may have: lower case, - for everything else, not in use."""
    text = block.text("name") or ""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_MAX_NAME].strip("-") or "profile"
    free, number = name, 1
    while free in used:
        number += 1
        free = f"{name[: _MAX_NAME - 4]}-{number}"
    if free != text:
        block.note(
            "name", Fate.CHANGED, f"no object may be named {text or 'nothing'}; it becomes {free}"
        )
    return free
