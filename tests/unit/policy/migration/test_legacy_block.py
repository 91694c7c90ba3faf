from __future__ import annotations

from typing import Any

import pytest
from tests.unit.policy.migration.files import config_of, notes_of

from cubesched.policy.migration.migrate import migrate

AVERAGE = "real_time_weighted_average"


def legacy_of(scheduler: str) -> Any:
    return config_of(f"scheduler: {{filter: {{}}, {scheduler}}}")["legacy"]


def notes(scheduler: str) -> str:
    return "\n".join(notes_of(migrate(f"scheduler: {{filter: {{}}, {scheduler}}}")))


@pytest.mark.parametrize(
    ("scheduler", "legacy", "note"),
    [
        ("least_select_name: random", {}, ""),
        ("least_select_name: rrw", {"leastSelectName": "rw"}, "rrw takes turns by weight"),
        ("least_select_name: best", {}, "best is unknown there: random"),
        ("priority_select_num: -7", {"prioritySelectNum": -1}, ""),
        ("priority_select_num: 0", {}, ""),
        ("filter: {enable_filters: [thirtparty]}", {}, "thirtparty: it kept every node"),
        ("filter: {enable_filters: [custom]}", {}, "custom: not built in"),
        (
            "scarce_resource_filter: {enable: true}",
            {"filter": {"enableFilters": ["scarce_resource"]}},
            "",
        ),
        ("scarce_resource_filter: {enable: true, label: fpga}", {}, "the label gpu only"),
        ("scarce_resource_filter: {enable: false, label: fpga}", {}, ""),
        ("score: {enable_scorers: [affinity_score]}", {}, "affinity_score: requests have no"),
        ("score: {enable_scorers: [binpack_score]}", {}, "most_allocated or resource_fit_score"),
        ("score: {enable_scorers: [image_score]}", {}, "image_score has no block in plugin_conf"),
        (
            (
                "postscore: {param_factor: 3, resource_weights: {active_whitelist: 2},"
                " active_white_list: [a]}"
            ),
            {
                "postscore": {
                    "paramFactor": 1.0,
                    "resourceWeights": {"active_whitelist": 6.0},
                    "activeWhiteList": ["a"],
                }
            },
            "",
        ),
    ],
)
def test_a_key_of_the_old_pipeline_keeps_its_meaning_or_says_why_not(
    scheduler: str, legacy: Any, note: str
) -> None:
    assert legacy_of(scheduler) == legacy
    assert note in notes(scheduler)


def test_an_unknown_factor_only_weakened_its_score_and_does_so_still() -> None:
    score = (
        "score: {enable_scorers: [real_time_weighted_average], resource_weights: {mvm_num: 1,"
        " gpu_util: 3}, plugin_conf: {real_time_weighted_average: {weight: 2,"
        " enable_weight_factors: [mvm_num, gpu_util]}}}"
    )

    assert legacy_of(score)["score"] == {
        "enableScorers": [AVERAGE],
        "resourceWeights": {"mvm_num": 1},
        "pluginConf": {AVERAGE: {"weight": 0.5, "enableWeightFactors": ["mvm_num"]}},
    }
    assert "there is no such factor: gpu_util" in notes(score)


def test_a_negative_weight_counts_as_none() -> None:
    score = (
        "score: {enable_scorers: [real_time_weighted_average], resource_weights: {mvm_num: -1},"
        " plugin_conf: {real_time_weighted_average: {weight: 1, enable_weight_factors: [mvm_num]}}}"
    )

    assert legacy_of(score)["score"]["resourceWeights"] == {"mvm_num": 0.0}
    assert "a weight must not be negative" in notes(score)
