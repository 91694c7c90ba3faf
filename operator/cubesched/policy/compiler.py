"""All Profiles and the SchedulerConfig compile as one unit: a whole set, or every error at once.

Order of work: read and check each object by itself, check what only the whole set shows, and
only when nothing is wrong anywhere build the pipelines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cubesched.api.v1alpha1 import SchedulerConfigSpec, SchedulerProfileSpec
from cubesched.core.pipeline import (
    FilterFailure,
    NoCandidate,
    Pipeline,
    ScoreFailure,
    Selection,
    SelectionMethod,
)
from cubesched.plugins.listing import Surroundings
from cubesched.plugins.registry import CONSTRAINTS, GUARDS
from cubesched.policy.config_settings import check_config, route_label_keys, settings_of
from cubesched.policy.factory import FACTORY_FACTORS, FACTORY_PROFILES
from cubesched.policy.legacy import (
    SOURCE_LEGACY,
    beside_legacy,
    has_legacy,
    legacy_profile,
    legacy_warnings,
)
from cubesched.policy.lints import Built, lint
from cubesched.policy.objects import (
    CONFIG_KIND,
    CONFIG_NAME,
    PROFILE_KIND,
    PolicyObject,
    Problem,
    ProblemList,
)
from cubesched.policy.plugin_lists import (
    build_filters,
    build_scores,
    check_plugins,
    places_of,
)
from cubesched.policy.policyset import CompiledProfile, PolicySet, Route
from cubesched.policy.reading import block, read
from cubesched.policy.revision import revision_of
from cubesched.policy.routing import check_route, compile_route
from cubesched.policy.score_settings import score_tree_of

SOURCE_CUSTOM = "custom"
SOURCE_FACTORY = "factory"
SOURCE_NONE = "none"
BARE_PROFILE = "none"
"""Name of the pipeline that runs when nothing is configured and factory Profiles are disabled."""


@dataclass(frozen=True, slots=True)
class CompileResult:
    """A set that may run, or everything that keeps it from running; warnings in both cases."""

    policy: PolicySet | None = None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class _Draft:
    """A Profile that is valid by itself."""

    subject: PolicyObject
    spec: SchedulerProfileSpec


def compile_set(
    profiles: Sequence[PolicyObject],
    config: PolicyObject | None,
    around: Surroundings | None = None,
) -> CompileResult:
    """Compile the whole set; never raises for anything an object may hold."""
    around = around or Surroundings()
    problems: list[Problem] = []
    config_spec = _read_config(config, problems)
    if config_spec is not None:
        around = replace(around, tree=score_tree_of(config_spec))
    drafts = [
        draft
        for subject in sorted(profiles, key=lambda profile: profile.name)
        if (draft := _draft(subject, route_label_keys(config), problems, around)) is not None
    ]
    active = _in_order(draft for draft in drafts if draft.spec.mode == "Active")
    problems += _set_problems(profiles, has_legacy=has_legacy(config))
    warnings = (*_linted(active, around), *_config_warnings(config_spec))
    if problems or config_spec is None:
        return CompileResult(None, tuple(problems), warnings)
    return CompileResult(_build(active, config, config_spec, around), (), warnings)


def _read_config(
    config: PolicyObject | None, problems: list[Problem]
) -> SchedulerConfigSpec | None:
    if config is None:
        return SchedulerConfigSpec()
    found = ProblemList(config)
    spec = check_config(config, found)
    problems += found.found
    return spec


def _draft(
    subject: PolicyObject,
    label_keys: Sequence[str] | None,
    problems: list[Problem],
    around: Surroundings,
) -> _Draft | None:
    found = ProblemList(subject)
    check_route(found, label_keys)
    check_plugins(found, around)
    _check_selection(found)
    spec = read(SchedulerProfileSpec, found)
    problems += sorted(found.found, key=lambda problem: problem.path)
    return None if spec is None or found.found else _Draft(subject, spec)


def _check_selection(problems: ProblemList) -> None:
    """Note a topN of 0, which the model tells only when nothing beside it is wrong."""
    if block(problems.subject.spec, "selection").get("topN") == 0:
        problems.add("spec.selection.topN", "must be at least 1, or -1 for all nodes, not 0")


def _set_problems(profiles: Sequence[PolicyObject], *, has_legacy: bool) -> Iterable[Problem]:
    """Yield what no single object shows: names used twice, more than one default."""
    for name, number in sorted(Counter(profile.name for profile in profiles).items()):
        if number > 1:
            yield Problem(PROFILE_KIND, name, "metadata.name", f"{number} Profiles have this name")
        if not name:
            yield Problem(PROFILE_KIND, name, "metadata.name", "must not be empty")
    defaults = sorted(profile.name for profile in profiles if _claims_default(profile.spec))
    if len(defaults) > 1:
        for name in defaults:
            others = ", ".join(other for other in defaults if other != name)
            yield Problem(PROFILE_KIND, name, "spec.default", f"{others} is the default as well")
    if has_legacy:
        yield from beside_legacy([profile.name for profile in profiles], defaults)


def _claims_default(spec: Any) -> bool:
    """Tell it by the spec as stored, so that a Profile broken elsewhere counts as well."""
    if not isinstance(spec, Mapping):
        return False
    return spec.get("default") is True and spec.get("mode", "Active") == "Active"


def _in_order(drafts: Iterable[_Draft]) -> list[_Draft]:
    """Return them in the order in which their routes are tried."""
    return sorted(drafts, key=lambda d: (d.spec.default, d.spec.order, d.subject.name))


def _linted(drafts: Sequence[_Draft], around: Surroundings) -> tuple[Problem, ...]:
    built = (
        Built(
            draft.subject,
            draft.spec,
            build_filters(draft.spec, around),
            build_scores(draft.spec, around),
        )
        for draft in drafts
    )
    return tuple(lint(list(built)))


def _config_warnings(spec: SchedulerConfigSpec | None) -> Iterable[Problem]:
    if spec is not None and spec.legacy is not None:
        for path, name, message in legacy_warnings(spec.legacy):
            yield Problem(CONFIG_KIND, CONFIG_NAME, path, message, name)


def _build(
    active: Sequence[_Draft],
    config: PolicyObject | None,
    config_spec: SchedulerConfigSpec,
    around: Surroundings,
) -> PolicySet:
    source = SOURCE_CUSTOM
    legacy = () if config_spec.legacy is None else (legacy_profile(config_spec.legacy),)
    if legacy and not active:
        source = SOURCE_LEGACY
    elif not active:
        source = SOURCE_NONE if config_spec.disable_factory_profiles else SOURCE_FACTORY
        active = _factory_drafts() if source == SOURCE_FACTORY else ()
        around = replace(around, tree=around.tree.over(FACTORY_FACTORS))
    ordered = _in_order(active)
    compiled = (*(_compiled(draft, around, source) for draft in ordered), *legacy)
    return PolicySet(
        revision=revision_of(
            source=source,
            config=_canonical(config_spec),
            profiles=[(draft.subject.name, _canonical(draft.spec)) for draft in ordered],
        ),
        source=source,
        settings=settings_of(config_spec),
        config_generation=config.generation if config else 0,
        config_uid=config.uid if config else "",
        profiles=compiled or (_bare_profile(),),
    )


def _factory_drafts() -> Sequence[_Draft]:
    return [
        _Draft(
            PolicyObject(PROFILE_KIND, name, "", 0, "", spec),
            SchedulerProfileSpec.model_validate(spec),
        )
        for name, spec in FACTORY_PROFILES.items()
    ]


def _compiled(draft: _Draft, around: Surroundings, source: str) -> CompiledProfile:
    spec = draft.spec
    return CompiledProfile(
        name=draft.subject.name,
        uid=draft.subject.uid,
        generation=draft.subject.generation,
        route=compile_route(spec),
        is_default=spec.default,
        source=source,
        places=places_of(spec),
        pipeline=Pipeline(
            profile=draft.subject.name,
            guards=GUARDS,
            constraints=CONSTRAINTS,
            filters=build_filters(spec, around),
            scores=build_scores(spec, around),
            selection=Selection(SelectionMethod(spec.selection.method), spec.selection.top_n),
            filter_failure=FilterFailure(spec.failure.filter),
            score_failure=ScoreFailure(spec.failure.score),
            no_candidate=NoCandidate(spec.failure.no_candidate),
        ),
    )


def _bare_profile() -> CompiledProfile:
    """Return a random pick among the nodes that pass the guards."""
    selection = Selection(SelectionMethod.RANDOM, -1)
    pipeline = Pipeline(BARE_PROFILE, GUARDS, CONSTRAINTS, (), (), selection)
    return CompiledProfile(
        BARE_PROFILE, 0, Route(), is_default=True, pipeline=pipeline, source=SOURCE_NONE
    )


def _canonical(spec: SchedulerConfigSpec | SchedulerProfileSpec) -> dict[str, Any]:
    return spec.model_dump(mode="json", by_alias=True)
