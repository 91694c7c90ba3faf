"""Routes: which requests a Profile takes, checked against the labels that may be looked at."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cubesched.api.v1alpha1 import SchedulerProfileSpec
from cubesched.policy.objects import CONFIG_KIND, CONFIG_NAME, ProblemList
from cubesched.policy.patterns import PatternInvalid, compile_pattern
from cubesched.policy.policyset import Route
from cubesched.policy.reading import block


def check_route(problems: ProblemList, allowed_keys: Collection[str] | None) -> None:
    """Note every error of a Profile's route; `allowed_keys` None means that any label will do."""
    spec = problems.subject.spec
    if not isinstance(spec, Mapping):
        return
    route = block(spec, "route")
    labels, types = block(route, "labels"), route.get("instanceTypes")
    if spec.get("default") is True:
        if spec.get("route") is not None:
            problems.add("spec.route", "a default Profile takes what no other does: no route")
    elif not labels and not types:
        problems.add("spec.route", "needs instanceTypes or labels, unless default is true")
    _check_patterns(types, problems)
    _check_labels(labels, allowed_keys, problems)


def compile_route(spec: SchedulerProfileSpec) -> Route:
    """Return the route of a spec that `check_route` found nothing wrong with."""
    if spec.route is None:
        return Route()
    return Route(
        instance_types=tuple(compile_pattern(text) for text in spec.route.instance_types),
        labels=tuple(sorted(spec.route.labels.items())),
    )


def _check_patterns(types: object, problems: ProblemList) -> None:
    for index, text in enumerate(types if isinstance(types, list) else ()):
        if isinstance(text, str):
            try:
                compile_pattern(text)
            except PatternInvalid as error:
                problems.add(f"spec.route.instanceTypes[{index}]", str(error))


def _check_labels(
    labels: Mapping[str, object], allowed_keys: Collection[str] | None, problems: ProblemList
) -> None:
    if allowed_keys is None:
        return
    allowed = ", ".join(allowed_keys) or "none"
    where = f"profileRouteLabelKeys of {CONFIG_KIND}/{CONFIG_NAME}"
    for key in labels:
        if not key:
            problems.add("spec.route.labels.", "a label key must not be empty")
        elif key not in allowed_keys:
            problems.add(f"spec.route.labels.{key}", f"not in {where}; allowed: {allowed}")
