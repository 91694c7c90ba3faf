"""The global score tree: wrong names with their path, and what scores take from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from tests.unit.builders import a_node, a_request, a_snapshot
from tests.unit.policy.builders import a_config, a_profile, compiled

from cubesched.core.blending import blend, rate
from cubesched.core.cycle import at_once
from cubesched.policy.compiler import compile_set

HALF_BUSY = a_node(
    cpu_limit_millis=1000,
    cpu_used_millis=500,  # quota_cpu_usage 50
    memory_limit_bytes=1000,
    memory_used_bytes=750,  # quota_mem_usage 25
    sandboxes=600,  # mvm_num 80
    creating_ledger=10,  # local_create_num 90
    cpu_util_percent=40.0,  # cpu_util 60
    templates=("t",),
)
RTWA = "real_time_weighted_average"


def rating(score: Mapping[str, Any], tree: Mapping[str, Any]) -> float | None:
    """Return what a Profile's one score gives the node under this tree; None = not applicable."""
    policy = compiled([a_profile("p", scores=[score])], a_config(score=tree))
    fleet, request = a_snapshot([HALF_BUSY]), a_request(template_id="t")
    ratings = at_once(rate(fleet, request, policy.profiles[0].pipeline, np.array([0])))
    return float(blend(ratings, 1)[0]) if ratings else None


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({}, (80 + 90 + 60 + 25) / 4),
        ({"plugins": {RTWA: {}}}, (80 + 90 + 60 + 25) / 4),
        ({"plugins": {RTWA: {"factors": ["quota_cpu_usage"]}}}, 50.0),
        ({"plugins": {RTWA: {"factors": ["cpu_usage"]}}}, 60.0),
        ({"plugins": {RTWA: {"factors": []}}}, None),
        ({"plugins": {RTWA: {"disabled": True}}}, None),
        ({"plugins": {RTWA: {"disabled": True, "factors": ["mvm_num"]}}}, None),
        (
            {"plugins": {"multi_factor_weighted_average": {"disabled": True}}},
            (80 + 90 + 60 + 25) / 4,
        ),
        # A weight that is not named is 1.
        ({"resourceWeights": {"mvm_num": 3}}, (80 * 3 + 90 + 60 + 25) / 6),
        ({"resourceWeights": {"cpu_util": 0}}, (80 + 90 + 25) / 3),
        ({"resourceWeights": {"cpu_usage": 0}}, (80 + 90 + 25) / 3),
        ({"resourceWeights": {"template_id": 0}}, (80 + 90 + 60 + 25) / 4),
        (
            {
                "resourceWeights": {"quota_cpu_usage": 3, "quota_mem_usage": 1, "mvm_num": 9},
                "plugins": {RTWA: {"factors": ["quota_cpu_usage", "quota_mem_usage"]}},
            },
            (50 * 3 + 25) / 4,
        ),
        (
            {"resourceWeights": {"mvm_num": 0}, "plugins": {RTWA: {"factors": ["mvm_num"]}}},
            None,
        ),
    ],
)
def test_a_score_without_factors_of_its_own_takes_them_from_the_tree(
    tree: dict[str, Any], expected: float | None
) -> None:
    assert rating({"name": RTWA}, tree) == (
        expected if expected is None else pytest.approx(expected)
    )


@pytest.mark.parametrize(
    "tree",
    [
        {"resourceWeights": {"cpu_util": 0, "mvm_num": 7}},
        {"plugins": {RTWA: {"factors": ["quota_cpu_usage"]}}},
        {"plugins": {RTWA: {"disabled": True}}},
    ],
)
def test_factors_in_a_profile_win_over_all_of_the_tree(tree: dict[str, Any]) -> None:
    listed = {"name": RTWA, "args": {"factors": ["cpu_util", "mvm_num"]}}
    weighed = {"name": RTWA, "args": {"factors": {"cpu_util": 3, "mvm_num": 1}}}

    assert rating(listed, tree) == pytest.approx((60 + 80) / 2)
    assert rating(weighed, tree) == pytest.approx((60 * 3 + 80) / 4)


def test_each_weighted_average_has_switches_of_its_own() -> None:
    tree = {
        "plugins": {
            RTWA: {"factors": ["mvm_num"]},
            "multi_factor_weighted_average": {"factors": ["cpu_util"]},
        }
    }

    assert rating({"name": RTWA}, tree) == pytest.approx(80.0)
    assert rating({"name": "multi_factor_weighted_average"}, tree) == pytest.approx(60.0)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({}, 100.0),
        ({"plugins": {"image_score": {"factors": []}}}, None),
        ({"resourceWeights": {"template_id": 0}}, None),
    ],
)
def test_template_affinity_has_two_switches(tree: dict[str, Any], expected: float | None) -> None:
    assert rating({"name": "image_score"}, tree) == expected


def test_a_score_without_factors_can_be_disabled_whatever_its_arguments() -> None:
    fit = {"name": "resource_fit_score", "args": {"imbalance_penalty": 0.0}}

    assert rating(fit, {"plugins": {"resource_fit_score": {"disabled": False}}}) is not None
    assert rating(fit, {"plugins": {"resource_fit_score": {"disabled": True}}}) is None


def factory_scores(tree: Mapping[str, Any], profile: str) -> Sequence[tuple[str, Any]]:
    policy = compiled([], a_config(score=tree))
    [pipeline] = [p.pipeline for p in policy.profiles if p.name == profile]
    fleet, request = a_snapshot([HALF_BUSY]), a_request(template_id="t")
    ratings = at_once(rate(fleet, request, pipeline, np.array([0])))
    return [(r.plugin, pytest.approx(float(r.scores[0]))) for r in ratings]


def test_the_factory_profiles_rate_by_their_own_factors_until_the_tree_says_otherwise() -> None:
    assert factory_scores({}, "template_reuse") == [
        ("image_score", 100.0),
        ("template_local_pressure", 100.0),
        (RTWA, (50 + 25) / 2),
    ]
    assert factory_scores({"resourceWeights": {"quota_cpu_usage": 3}}, "burst_balance") == [
        (RTWA, (50 * 3 + 25) / 4),
        ("create_concurrency_score", 90.0),
    ]
    assert factory_scores(
        {"resourceWeights": {"template_id": 0}, "plugins": {RTWA: {"factors": ["mvm_num"]}}},
        "template_reuse",
    ) == [("template_local_pressure", 100.0), (RTWA, 80.0)]


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        (
            {"resourceWeights": {"cpu_utl": 1}},
            '.resourceWeights.cpu_utl: unknown factor "cpu_utl"; did you mean "cpu_util"?',
        ),
        (
            {"resourceWeights": {"cpu_util": 1, "cpu_usage": 1}},
            '.resourceWeights: "cpu_usage" and "cpu_util" are the same factor',
        ),
        (
            {"plugins": {"image_scor": {"disabled": True}}},
            '.plugins.image_scor: unknown built-in score "image_scor"; did you mean "image_score"?',
        ),
        (
            {"plugins": {"image_score": {"factors": ["template_id", "x"]}}},
            '.plugins.image_score.factors[1]: unknown factor "x"; known are image_id, template_id',
        ),
        (
            {"plugins": {RTWA: {"factors": ["mvm_num", "mvm_num"]}}},
            f".plugins.{RTWA}.factors: listed more than once: mvm_num",
        ),
        (
            {"plugins": {RTWA: {"factors": ["cpu_usage", "cpu_util"]}}},
            f'.plugins.{RTWA}.factors: "cpu_usage" and "cpu_util" are the same factor',
        ),
        (
            {"plugins": {"least_allocated": {"factors": ["mvm_num"]}}},
            ".plugins.least_allocated.factors: least_allocated does not rate by factors",
        ),
        (
            {"plugins": {RTWA: {"factor": []}}},
            f'.plugins.{RTWA}.factor: unknown field; did you mean "factors"?',
        ),
        (
            {"resourceWeight": {}},
            '.resourceWeight: unknown field; did you mean "resourceWeights"?',
        ),
    ],
)
def test_a_wrong_name_is_an_error_with_its_path(tree: dict[str, Any], problem: str) -> None:
    result = compile_set([], a_config(score=tree))

    assert result.policy is None
    assert [found.detail for found in result.problems] == [f"spec.score{problem}"]


@pytest.mark.parametrize("weight", [-0.001, 1_000_001, float("nan"), float("inf"), "1", True, None])
def test_a_weight_is_a_finite_number_within_bounds(weight: object) -> None:
    result = compile_set([], a_config(score={"resourceWeights": {"cpu_util": weight, "x": 1}}))

    assert [problem.path for problem in result.problems] == [
        "spec.score.resourceWeights.x",
        "spec.score.resourceWeights.cpu_util",
    ]


@pytest.mark.parametrize(
    "tree", [7, [], {"plugins": []}, {"plugins": {RTWA: 1}}, {"resourceWeights": 1}]
)
def test_a_tree_of_the_wrong_shape_is_an_error(tree: object) -> None:
    result = compile_set([], a_config(score=tree))

    assert [problem.path.startswith("spec.score") for problem in result.problems] == [True]


def test_a_profile_of_which_nothing_can_apply_is_warned_of() -> None:
    off = a_config(score={"plugins": {"image_score": {"disabled": True}}})
    profiles = [
        a_profile("off", scores=[{"name": "image_score"}]),
        a_profile("zero", scores=[{"name": RTWA, "args": {"factors": {"mvm_num": 0}}}]),
        a_profile("some", scores=[{"name": "image_score"}, {"name": "least_allocated"}]),
    ]

    result = compile_set(profiles, off)

    text = (
        "NoScores: spec.scores: every score is disabled or without factors, so only the tie rule"
        " decides"
    )
    assert result.policy is not None
    assert [(warning.name, warning.detail) for warning in result.warnings] == [
        ("off", text),
        ("zero", text),
    ]


def test_every_change_of_the_tree_changes_the_revision() -> None:
    trees: list[dict[str, Any]] = [
        {},
        {"resourceWeights": {"mvm_num": 2}},
        {"resourceWeights": {"mvm_num": 2.5}},
        {"resourceWeights": {"cpu_util": 2}},
        {"plugins": {RTWA: {"factors": ["mvm_num"]}}},
        {"plugins": {RTWA: {"factors": []}}},
        {"plugins": {RTWA: {"disabled": True}}},
        {"plugins": {"image_score": {"disabled": True}}},
    ]

    revisions = {compiled([], a_config(score=tree)).revision for tree in trees}

    assert len(revisions) == len(trees)
