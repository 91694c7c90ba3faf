"""The models refuse what the API server refuses, each error with its field as users write it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from cubesched.api.v1alpha1 import (
    GUARDS,
    Model,
    SandboxNodeSpec,
    SandboxRequestSpec,
    SchedulerConfigSpec,
    SchedulerProfileSpec,
)
from cubesched.plugins import registry


def problems(model: type[Model], body: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(body)
    return tuple(
        "spec"
        + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error["loc"])
        + ": "
        + error["msg"].removeprefix("Value error, ")
        for error in refused.value.errors()
    )


def a_request(**resources: object) -> dict[str, Any]:
    return {"resources": {"cpu": 1, "memory": "1Gi", **resources}}


def test_an_empty_config_has_every_default() -> None:
    config = SchedulerConfigSpec.model_validate({})

    assert config.profile_route_label_keys == ["workload"]
    assert config.guards.metrics_max_age == "300s"
    assert config.concurrency.max_in_flight == 256


def test_identifiers_are_spelled_as_users_expect() -> None:
    request = SandboxRequestSpec.model_validate({**a_request(), "templateID": "t1"})

    assert request.template_id == "t1"
    assert "templateID" in request.model_dump(by_alias=True)


def test_omitted_scores_differ_from_no_scores() -> None:
    omitted = SchedulerProfileSpec.model_validate({"default": True})
    none = SchedulerProfileSpec.model_validate({"default": True, "scores": []})

    assert omitted.scores is None
    assert none.scores == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"default": True, "scores": [{"name": "x", "weight": 0}]}, "spec.scores[0].weight: "),
        ({"default": True, "scores": [{"name": "x", "weight": float("nan")}]}, "spec.scores[0].w"),
        ({"default": True, "selection": {"topN": 0}}, "spec.selection: topN must be at least 1"),
        ({"default": True, "selection": {"method": "best"}}, "spec.selection.method: "),
        ({"default": True, "filters": [{"name": "mem"}]}, "spec.filters[0]: mem is a guard"),
        ({"default": True, "filters": [{"name": "a"}] * 2}, "spec: filters lists a more than once"),
        ({"default": True, "filters": [{"name": "a", "type": "exrp"}]}, "spec.filters[0].type: "),
        (
            {"default": True, "filters": [{"name": "a", "type": "expr"}]},
            "spec.filters[0]: type",
        ),
        (
            {"default": True, "scores": [{"name": "a", "expr": "1.0"}]},
            "spec.scores[0]: expr is",
        ),
        ({"default": True, "route": {"labels": {"a": "b"}}}, "spec: a default Profile takes"),
        ({"default": True, "colour": "red"}, "spec.colour: "),
        ({"default": "true"}, "spec.default: "),
        ({}, "spec: route needs instanceTypes or labels"),
        ({"route": {"labels": {"a b": "c"}}}, "spec.route.labels.a b.[key]: "),
    ],
)
def test_a_wrong_profile_is_refused_with_the_path(body: dict[str, Any], expected: str) -> None:
    [problem] = problems(SchedulerProfileSpec, body)

    assert problem.startswith(expected)


def test_every_error_is_told_at_once() -> None:
    body = {"default": True, "order": "first", "scores": [{"weight": -1}], "selection": {"topN": 0}}

    assert [problem.split(":")[0] for problem in problems(SchedulerProfileSpec, body)] == [
        "spec.order",
        "spec.scores[0].name",
        "spec.scores[0].weight",
        "spec.selection",
    ]


def test_guards_are_the_ones_that_run() -> None:
    assert [guard.name for guard in registry.GUARDS] == list(GUARDS)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("cpu", value) for value in (0, "0", -1, "-1", 0.5, "NaN", "1 Gi", "9" * 30, True, None)),
        *(("memory", value) for value in (0, "0.0", -1, "1gi", "1e400", "2P", 1.0, "\uff11")),
        *(("systemDisk", value) for value in (-1, "1e3Mi", 0.5)),
    ],
)
def test_a_wrong_quantity_is_refused_by_its_field(field: str, value: object) -> None:
    [problem] = problems(SandboxRequestSpec, a_request(**{field: value}))

    assert problem.startswith(f"spec.resources.{field}: ")


def test_capacity_that_rounds_down_to_nothing_is_refused() -> None:
    [problem] = problems(SandboxNodeSpec, {"capacity": {"cpu": "0.9m", "memory": "1"}})

    assert problem.startswith(
        "spec.capacity.cpu: '0.9m' is out of range: must be a quantity from 1m"
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"guards": {"metricsMaxAge": "1d"}}, "spec.guards.metricsMaxAge"),
        ({"guards": {"metricsMaxAge": "4s"}}, "spec.guards.metricsMaxAge"),
        ({"queue": {"initialBackoff": "20s"}}, "spec.queue"),
        ({"overcommit": {"cpu": 0.5}}, "spec.overcommit.cpu"),
        ({"confirmation": "nobody"}, "spec.confirmation"),
        ({"score": {"resourceWeights": {"a": -1}}}, "spec.score.resourceWeights.a"),
        ({"score": {"resourceWeights": {"a": 2e6}}}, "spec.score.resourceWeights.a"),
        ({"score": {"plugins": {"p" * 64: {}}}}, f"spec.score.plugins.{'p' * 64}.[key]"),
        ({"score": {"plugins": {"a": {"factor": []}}}}, "spec.score.plugins.a.factor"),
    ],
)
def test_a_wrong_config_is_refused_with_the_path(body: dict[str, Any], field: str) -> None:
    [problem] = problems(SchedulerConfigSpec, body)

    assert problem.startswith(f"{field}: ")


@pytest.mark.parametrize(
    "toleration", [{"operator": "Exists", "value": "a"}, {"operator": "Equal"}, {"effect": "No"}]
)
def test_a_toleration_that_matches_nothing_is_refused(toleration: dict[str, str]) -> None:
    [problem] = problems(SandboxRequestSpec, {**a_request(), "tolerations": [toleration]})

    assert problem.startswith("spec.tolerations[0]")
