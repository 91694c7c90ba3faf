"""The table of built-ins, and what it says about wrong names and arguments."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cubesched.core.errors import PluginArgsInvalid
from cubesched.core.pipeline import Filter
from cubesched.plugins import registry
from cubesched.plugins.registry import build_filter, build_score, is_guard

NAN = float("nan")


@pytest.mark.parametrize("name", list(registry.SCORES))
def test_every_score_builds_without_arguments_under_its_own_name(name: str) -> None:
    assert build_score(name, {}).name == name


def test_every_filter_builds_under_its_own_name() -> None:
    assert build_filter("node_labels", {"matchLabels": {"a": "b"}}).name == "node_labels"
    assert build_filter("scarce_resource", {"labels": ["gpu", "fpga"]}).name == "scarce_resource"


@pytest.mark.parametrize("guard", registry.GUARDS, ids=lambda guard: guard.name)
def test_a_guard_cannot_be_built_as_a_filter_or_score(guard: Filter) -> None:
    assert is_guard(guard.name)
    with pytest.raises(PluginArgsInvalid):
        build_filter(guard.name, {})
    with pytest.raises(PluginArgsInvalid):
        build_score(guard.name, {})


def test_no_name_is_used_twice() -> None:
    names = [stage.name for stage in (*registry.GUARDS, *registry.CONSTRAINTS)]
    names += [*registry.FILTERS, *registry.SCORES]

    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "args", "problems"),
    [
        (
            "least_alocated",
            {},
            [("name", 'unknown built-in score "least_alocated"; did you mean "least_allocated"?')],
        ),
        (
            "resource_fit_score",
            {"imbalance_penalti": 1},
            [
                (
                    "args.imbalance_penalti",
                    'unknown argument; did you mean "imbalance_penalty"?',
                )
            ],
        ),
        (
            "least_allocated",
            {"weight": 1, "x": 2},
            [
                ("args.weight", "unknown argument; there are none"),
                ("args.x", "unknown argument; there are none"),
            ],
        ),
        (
            "real_time_weighted_average",
            {"factors": ["cpu_utl"]},
            [("args.factors", 'unknown factor "cpu_utl"; did you mean "cpu_util"?')],
        ),
        (
            "real_time_weighted_average",
            {"factors": ["mvm_num", "mvm_num"]},
            [("args.factors", "listed more than once: mvm_num")],
        ),
        (
            "real_time_weighted_average",
            {"factors": ["cpu_util", "cpu_usage"]},
            [("args.factors", '"cpu_usage" and "cpu_util" are the same factor')],
        ),
        (
            "real_time_weighted_average",
            {"factors": "cpu_util"},
            [("args.factors", "must be a list of names, or a map from name to weight")],
        ),
        (
            "real_time_weighted_average",
            {"factors": [1]},
            [("args.factors", "a list of factors holds names only")],
        ),
        (
            "image_score",
            {"factors": ["imageid"]},
            [("args.factors", 'unknown factor "imageid"; did you mean "image_id"?')],
        ),
    ],
)
def test_wrong_arguments_are_named_with_their_path(
    name: str, args: Mapping[str, object], problems: list[tuple[str, str]]
) -> None:
    with pytest.raises(PluginArgsInvalid) as caught:
        build_score(name, args)

    assert list(caught.value.problems) == problems


@pytest.mark.parametrize("weight", [-1, -0.001, NAN, float("inf"), "1", True, None])
def test_a_factor_weight_is_a_finite_number_from_zero(weight: object) -> None:
    with pytest.raises(PluginArgsInvalid) as caught:
        build_score("real_time_weighted_average", {"factors": {"cpu_util": weight, "x": -1}})

    assert [path for path, _ in caught.value.problems] == [
        "args.factors.cpu_util",
        "args.factors.x",
    ]


@pytest.mark.parametrize("penalty", [-0.1, NAN, float("inf"), "0.5", True, [1]])
def test_the_penalty_is_a_finite_number_from_zero(penalty: object) -> None:
    with pytest.raises(PluginArgsInvalid) as caught:
        build_score("resource_fit_score", {"imbalance_penalty": penalty})

    assert [path for path, _ in caught.value.problems] == ["args.imbalance_penalty"]


@pytest.mark.parametrize(
    ("name", "args", "paths"),
    [
        ("node_labels", {}, ["args.matchLabels"]),
        ("node_labels", {"matchLabels": {}}, ["args.matchLabels"]),
        ("node_labels", {"matchLabels": {"a": 1}}, ["args.matchLabels.a"]),
        ("node_labels", {"match_labels": {"a": "b"}}, ["args.matchLabels", "args.match_labels"]),
        ("scarce_resource", {"labels": "gpu"}, ["args.labels"]),
        ("scarce_resource", {"labels": []}, ["args.labels"]),
        ("node_label", {}, ["name"]),
    ],
)
def test_wrong_filter_arguments_are_named_with_their_path(
    name: str, args: Mapping[str, object], paths: list[str]
) -> None:
    with pytest.raises(PluginArgsInvalid) as caught:
        build_filter(name, args)

    assert [path for path, _ in caught.value.problems] == paths


def test_arguments_cannot_be_changed_after_they_are_checked() -> None:
    model = registry.SCORES["resource_fit_score"].model_validate({})

    with pytest.raises(ValueError, match="frozen"):
        model.imbalance_penalty = 3.0  # type: ignore[attr-defined]
