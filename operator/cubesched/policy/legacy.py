"""SchedulerConfig.spec.legacy: CubeMaster's settings, checked name by name, as one Profile.

It places as CubeMaster did, except that the guards are always on.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from cubesched.api.v1alpha1 import GUARDS as GUARD_NAMES
from cubesched.api.v1alpha1 import Legacy, LegacyPostscore, LegacyScore
from cubesched.core.pipeline import (
    Adjustment,
    Filter,
    Pipeline,
    Selection,
    SelectionMethod,
    WeightedScore,
)
from cubesched.plugins.legacy import averages, images
from cubesched.plugins.legacy.whitelist import Whitelist
from cubesched.plugins.registry import CONSTRAINTS, GUARDS, build_filter, one_spelling
from cubesched.plugins.spelling import did_you_mean
from cubesched.policy.objects import (
    CONFIG_KIND,
    CONFIG_NAME,
    PROFILE_KIND,
    PolicyObject,
    Problem,
    ProblemList,
)
from cubesched.policy.policyset import CompiledProfile, Route
from cubesched.policy.reading import block

PATH: Final = "spec.legacy"
PROFILE_NAME: Final = "default"
SOURCE_LEGACY: Final = "legacy"

FILTERS: Final = (*GUARD_NAMES, "scarce_resource")
"""What enableFilters may list."""
SCORERS: Final[Mapping[str, Collection[str]]] = {
    averages.REAL_TIME: averages.KNOWN,
    averages.MULTI_FACTOR: averages.KNOWN,
    images.IMAGES: images.KNOWN,
}
"""What enableScorers may list, each with its factors."""
WEIGHTED: Final = tuple(dict.fromkeys((*averages.KNOWN, *images.KNOWN)))
"""What resourceWeights may weigh."""
ACTIVE, NEGATIVE = "active_whitelist", "negative_whitelist"

HINTS: Final[Mapping[str, str]] = {
    "thirtparty": "it kept every node: take it out",
    "affinity_score": "requests have no preferred node affinity: take it out",
    "template_score": "there never was such a score: take it out",
}
"""Names that CubeMaster knows and that mean nothing here."""
_TURNS: Final = "it took turns by weight: use rw, which draws in the same proportion"


def check_legacy(problems: ProblemList) -> None:
    """Note every name that does not exist, whatever else is wrong."""
    legacy = block(problems.subject.spec, "legacy")
    _check_names(problems, f"{PATH}.filter.enableFilters", _listed(legacy, "filter"), FILTERS)
    _check_names(problems, f"{PATH}.score.enableScorers", _listed(legacy, "score"), SCORERS)
    if legacy.get("leastSelectName") in ("sw", "rrw"):
        problems.add(f"{PATH}.leastSelectName", f'"{legacy["leastSelectName"]}": {_TURNS}')
    _check_score(problems, block(legacy, "score"))
    lists = block(block(legacy, "postscore"), "resourceWeights")
    _check_keys(problems, f"{PATH}.postscore.resourceWeights", lists, (ACTIVE, NEGATIVE))


def has_legacy(config: PolicyObject | None) -> bool:
    """Tell it by the spec as stored, so that a block with errors counts as well."""
    stored = config.spec if config is not None else None
    return isinstance(stored, Mapping) and stored.get("legacy") is not None


def beside_legacy(names: Collection[str], defaults: Collection[str]) -> Iterator[Problem]:
    """Yield what no Profile may be beside the block: the default one, or one of its name."""
    for name in sorted({*defaults, *(name for name in names if name == PROFILE_NAME)}):
        path = "spec.default" if name in defaults else "metadata.name"
        message = f'{PATH} of {CONFIG_KIND}/{CONFIG_NAME} is the default Profile "{PROFILE_NAME}"'
        yield Problem(PROFILE_KIND, name, path, message)
    if defaults:
        message = f"{', '.join(sorted(defaults))} is the default Profile as well"
        yield Problem(CONFIG_KIND, CONFIG_NAME, PATH, message)


def legacy_profile(legacy: Legacy) -> CompiledProfile:
    """Return the Profile of a block that `check_legacy` found nothing wrong with."""
    scores = tuple(_scores(legacy.score))
    method = SelectionMethod.UNIFORM if legacy.least_select_name == "random" else "random"
    pipeline = Pipeline(
        profile=PROFILE_NAME,
        guards=GUARDS,
        constraints=CONSTRAINTS,
        filters=tuple(_filters(legacy)),
        scores=scores,
        selection=Selection(
            SelectionMethod(method), legacy.priority_select_num, first_by_name=not scores
        ),
        adjustments=tuple(_adjustments(legacy.postscore)),
    )
    return CompiledProfile(
        PROFILE_NAME, 0, Route(), is_default=True, pipeline=pipeline, source=SOURCE_LEGACY
    )


def legacy_warnings(legacy: Legacy) -> Iterator[tuple[str, str, str]]:
    """Yield (path, lint, message) for what is allowed, yet probably not meant."""
    unlisted = [name for name in GUARD_NAMES if name not in legacy.filter.enable_filters]
    if unlisted:
        message = f"not listed, yet always on: {', '.join(unlisted)}"
        yield f"{PATH}.filter.enableFilters", "GuardsAlwaysOn", message
    if not list(_scores(legacy.score)):
        number = legacy.priority_select_num
        what = "any node" if number < 0 else "the first node by name until it is full"
        if number > 1:
            what = f"one of the first {number} nodes by name until they are full"
        message = f"nothing is rated, so a request takes {what}"
        yield f"{PATH}.score", "NoScores", message


def _scores(score: LegacyScore) -> Iterator[WeightedScore]:
    weights = {one_spelling(name): weight for name, weight in score.resource_weights.items()}
    for name in score.enable_scorers:
        settings = score.plugin_conf[name]
        if settings.disable or not settings.weight:
            continue
        if name == images.IMAGES:
            found = images.images(settings.enable_weight_factors, weights)
            if found is not None:
                yield WeightedScore(found, settings.weight, 0.0)
            continue
        averaged = averages.average(name, settings.enable_weight_factors, weights)
        if averaged is not None:
            plugin, scale = averaged
            # Against weights so far apart that their quotient overflows.
            yield WeightedScore(plugin, min(settings.weight * scale, sys.float_info.max), 0.0)


def _filters(legacy: Legacy) -> Iterator[Filter]:
    for name in legacy.filter.enable_filters:
        if name not in GUARD_NAMES:
            yield build_filter(name, {})


def _adjustments(postscore: LegacyPostscore) -> Iterator[Adjustment]:
    gain, loss = (
        postscore.resource_weights.get(name, 0.0) * postscore.param_factor
        for name in (ACTIVE, NEGATIVE)
    )
    favoured = tuple(postscore.active_white_list) if gain else ()
    avoided = tuple(postscore.negative_white_list) if loss else ()
    if not postscore.disable and (favoured or avoided):
        yield Whitelist(favoured, gain if favoured else 0.0, avoided, min(loss, 1.0))


def _listed(legacy: Mapping[str, Any], part: str) -> Any:
    return block(legacy, part).get("enableFilters" if part == "filter" else "enableScorers")


def _check_score(problems: ProblemList, score: Mapping[str, Any]) -> None:
    path = f"{PATH}.score"
    weights, settings = block(score, "resourceWeights"), block(score, "pluginConf")
    _check_keys(problems, f"{path}.resourceWeights", weights, WEIGHTED)
    _check_keys(problems, f"{path}.pluginConf", settings, SCORERS)
    for name, known in SCORERS.items():
        factors = block(settings, name).get("enableWeightFactors")
        _check_names(problems, f"{path}.pluginConf.{name}.enableWeightFactors", factors, known)
    enabled = score.get("enableScorers")
    for name in enabled if isinstance(enabled, list) else ():
        if isinstance(name, str) and name in SCORERS and name not in settings:
            problems.add(f"{path}.pluginConf", f"needs {name}, which enableScorers lists")


def _check_keys(
    problems: ProblemList, path: str, found: Mapping[str, Any], known: Collection[str]
) -> None:
    for name in found:
        _check_name(problems, f"{path}.{name}", name, known)
    _check_spelling(problems, path, list(found))


def _check_names(problems: ProblemList, path: str, listed: Any, known: Collection[str]) -> None:
    if not isinstance(listed, list):
        return  # absent, or refused by the model
    names = [name for name in listed if isinstance(name, str)]
    for index, name in enumerate(listed):
        if isinstance(name, str):
            _check_name(problems, f"{path}[{index}]", name, known)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        problems.add(path, f"listed more than once: {', '.join(twice)}")
    _check_spelling(problems, path, names)


def _check_name(problems: ProblemList, path: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        hint = HINTS.get(name) or f"unknown name; {did_you_mean(name, known)}"
        problems.add(path, f'"{name}": {hint}')


def _check_spelling(problems: ProblemList, path: str, names: list[str]) -> None:
    for name in names:
        if one_spelling(name) != name and one_spelling(name) in names:
            problems.add(path, f'"{name}" and "{one_spelling(name)}" are the same factor')
