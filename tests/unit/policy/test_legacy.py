from __future__ import annotations

from typing import Any

import pytest
from tests.unit.builders import a_node, a_request, a_snapshot
from tests.unit.policy.builders import a_config, a_profile, compiled

from cubesched.core.cycle import decide
from cubesched.core.decision import Placed
from cubesched.core.inspecting import inspect
from cubesched.core.pipeline import NoCandidate, SelectionMethod
from cubesched.plugins.registry import CONSTRAINTS, GUARDS
from cubesched.policy.active import ActivePolicy
from cubesched.policy.compiler import CompileResult, compile_set
from cubesched.policy.objects import PolicyObject
from cubesched.policy.policyset import CompiledProfile
from cubesched.policy.verdicts import config_status

AVERAGE = "real_time_weighted_average"
DOCUMENTED: dict[str, Any] = {
    "prioritySelectNum": 3,
    "filter": {"enableFilters": ["cpu", "mem", "template_locality", "realtime_create_num"]},
    "score": {
        "enableScorers": [AVERAGE],
        "resourceWeights": {
            "mvm_num": 2,
            "local_create_num": 3,
            "quota_cpu_usage": 1,
            "quota_mem_usage": 1,
        },
        "pluginConf": {
            AVERAGE: {
                "weight": 1.0,
                "enableWeightFactors": [
                    "mvm_num",
                    "local_create_num",
                    "quota_cpu_usage",
                    "quota_mem_usage",
                ],
            }
        },
    },
}


def legacy_of(legacy: dict[str, Any], *profiles: PolicyObject, **more: Any) -> CompiledProfile:
    return compiled(profiles, a_config(legacy=legacy, **more)).profiles[-1]


def result_of(legacy: Any, *profiles: PolicyObject) -> CompileResult:
    return compile_set(profiles, a_config(legacy=legacy))


def problems_of(legacy: Any, *profiles: PolicyObject) -> list[str]:
    return [problem.text for problem in result_of(legacy, *profiles).problems]


def test_the_documented_settings_become_the_default_profile() -> None:
    policy = compiled((), a_config(legacy=DOCUMENTED))
    (profile,) = policy.profiles

    assert policy.source == "legacy"
    assert (profile.name, profile.source, profile.is_default) == ("default", "legacy", True)
    pipeline = profile.pipeline
    assert pipeline.guards == GUARDS
    assert pipeline.constraints == CONSTRAINTS
    assert pipeline.filters == ()
    assert [(score.plugin.name, score.weight) for score in pipeline.scores] == [(AVERAGE, 1.0)]
    assert pipeline.selection.method is SelectionMethod.UNIFORM
    assert pipeline.selection.top_n == 3
    assert pipeline.no_candidate is NoCandidate.BACKOFF


def test_an_empty_block_counts_and_picks_evenly_among_all() -> None:
    profile = legacy_of({})

    assert profile.name == "default"
    assert profile.pipeline.scores == ()
    fleet = a_snapshot([a_node(f"node-{number}", sandboxes=number) for number in range(8)])
    picks = {_pick(fleet, profile, uid=f"uid-{number}") for number in range(200)}
    assert len(picks) == 8


def test_without_scores_the_first_node_by_name_is_filled_first() -> None:
    profile = legacy_of({"prioritySelectNum": 1})
    fleet = a_snapshot([a_node("node-a", safety=2), a_node("node-b"), a_node("node-c")])

    assert {_pick(fleet, profile, uid=f"uid-{number}") for number in range(50)} == {"node-b"}


def test_random_ignores_scores_and_rw_draws_in_proportion_to_them() -> None:
    fleet = a_snapshot([a_node("empty"), a_node("full", sandboxes=2700)])
    score = {
        "enableScorers": [AVERAGE],
        "resourceWeights": {"mvm_num": 1},
        "pluginConf": {AVERAGE: {"weight": 1, "enableWeightFactors": ["mvm_num"]}},
    }

    def share(name: str) -> float:
        profile = legacy_of({"score": score, "leastSelectName": name})
        picks = [_pick(fleet, profile, uid=f"uid-{number}") for number in range(2000)]
        return picks.count("full") / len(picks)

    assert share("random") == pytest.approx(0.5, abs=0.05)
    assert share("rw") == pytest.approx(10 / 110, abs=0.03)


def test_it_takes_what_no_profile_takes() -> None:
    policy = compiled([a_profile("burst")], a_config(legacy=DOCUMENTED))

    assert [(p.name, p.source) for p in policy.profiles] == [
        ("burst", "custom"),
        ("default", "legacy"),
    ]
    assert policy.source == "custom"
    pipeline = policy.route(a_request())
    assert pipeline is not None
    assert pipeline.profile == "default"


def test_a_weight_left_out_is_0_as_in_cubemaster() -> None:
    score = {
        "enableScorers": [AVERAGE, "image_score"],
        "resourceWeights": {"mvm_num": 1},
        "pluginConf": {
            AVERAGE: {"enableWeightFactors": ["mvm_num"]},
            "image_score": {"weight": 1, "enableWeightFactors": ["template_id"]},
        },
    }

    assert legacy_of({"score": score}).pipeline.scores == ()


def test_scarce_resource_is_a_filter_that_can_be_enabled() -> None:
    pipeline = legacy_of({"filter": {"enableFilters": ["cpu", "scarce_resource"]}}).pipeline

    assert [each.name for each in pipeline.filters] == ["scarce_resource"]


def test_lists_of_nodes_matter_only_with_a_weight_and_unless_disabled() -> None:
    lists = {"activeWhiteList": ["node-1"], "negativeWhiteList": ["node-2"]}
    weights = {"active_whitelist": 1}

    assert legacy_of({"postscore": lists}).pipeline.adjustments == ()
    off = {**lists, "resourceWeights": weights, "disable": True}
    assert legacy_of({"postscore": off}).pipeline.adjustments == ()
    on = {**lists, "resourceWeights": weights}
    assert len(legacy_of({"postscore": on}).pipeline.adjustments) == 1


def test_an_avoided_node_loses_at_most_all_it_has() -> None:
    score = {
        "enableScorers": [AVERAGE],
        "resourceWeights": {"mvm_num": 1},
        "pluginConf": {AVERAGE: {"weight": 1, "enableWeightFactors": ["mvm_num"]}},
    }
    postscore = {"resourceWeights": {"negative_whitelist": 500}, "negativeWhiteList": ["node-a"]}
    profile = legacy_of({"score": score, "postscore": postscore})
    fleet = a_snapshot([a_node("node-a"), a_node("node-b", sandboxes=10)])

    scores = inspect(fleet, a_request(), profile.pipeline).scores.tolist()

    assert scores[0] == 0.0
    assert scores[1] > 99.0


def test_weights_far_apart_still_order_the_nodes() -> None:
    score = {
        "enableScorers": [AVERAGE],
        "resourceWeights": {"mvm_num": 5e-324, "req_cpu": 1e6},
        "pluginConf": {AVERAGE: {"weight": 1e6, "enableWeightFactors": ["mvm_num"]}},
    }
    profile = legacy_of({"score": score, "prioritySelectNum": 1})
    fleet = a_snapshot([a_node("node-a", cpu_used_millis=9000), a_node("node-b")])

    assert {_pick(fleet, profile, uid=f"uid-{number}") for number in range(20)} == {"node-b"}


@pytest.mark.parametrize(
    ("legacy", "problem"),
    [
        (
            {"filter": {"enableFilters": ["cpu", "dsk"]}},
            'spec.legacy.filter.enableFilters[1]: "dsk": unknown name; did you mean "disk"?',
        ),
        (
            {"filter": {"enableFilters": ["thirtparty"]}},
            'spec.legacy.filter.enableFilters[0]: "thirtparty": it kept every node: take it out',
        ),
        (
            {"filter": {"enableFilters": ["cpu", "cpu"]}},
            "spec.legacy.filter.enableFilters: listed more than once: cpu",
        ),
        (
            {"score": {"enableScorers": ["image_scor"]}},
            (
                'spec.legacy.score.enableScorers[0]: "image_scor": unknown name; did you mean'
                ' "image_score"?'
            ),
        ),
        (
            {"score": {"enableScorers": ["affinity_score"]}},
            (
                'spec.legacy.score.enableScorers[0]: "affinity_score": requests have no'
                " preferred node affinity: take it out"
            ),
        ),
        (
            {"score": {"enableScorers": ["image_score"]}},
            "spec.legacy.score.pluginConf: needs image_score, which enableScorers lists",
        ),
        (
            {"score": {"resourceWeights": {"mvm_nmu": 1}}},
            (
                'spec.legacy.score.resourceWeights.mvm_nmu: "mvm_nmu": unknown name; did you mean'
                ' "mvm_num"?'
            ),
        ),
        (
            {"score": {"resourceWeights": {"cpu_util": 1, "cpu_usage": 1}}},
            'spec.legacy.score.resourceWeights: "cpu_usage" and "cpu_util" are the same factor',
        ),
        (
            {"score": {"pluginConf": {"image_score": {"enableWeightFactors": ["mvm_num"]}}}},
            (
                "spec.legacy.score.pluginConf.image_score.enableWeightFactors[0]: "
                '"mvm_num": unknown name; known are image_id, template_id'
            ),
        ),
        (
            {"score": {"pluginConf": {"image_score": {"weight": -1}}}},
            (
                "spec.legacy.score.pluginConf.image_score.weight: input should be greater than or"
                " equal to 0, not -1"
            ),
        ),
        (
            {"leastSelectName": "rrw"},
            (
                'spec.legacy.leastSelectName: "rrw": it took turns by weight: use rw, which draws'
                " in the same proportion"
            ),
        ),
        (
            {"leastSelectName": "best"},
            "spec.legacy.leastSelectName: input should be 'random' or 'rw', not 'best'",
        ),
        (
            {"prioritySelectNum": 0},
            "spec.legacy: prioritySelectNum must be at least 1, or -1 for all nodes",
        ),
        (
            {"postscore": {"resourceWeights": {"active": 1}}},
            (
                'spec.legacy.postscore.resourceWeights.active: "active": unknown name; known are'
                " active_whitelist, negative_whitelist"
            ),
        ),
        ({"colour": "red"}, "spec.legacy.colour: unknown field; known are filter,"),
        ("all", "spec.legacy: must be an object"),
        ({"score": {"enableScorers": [{}]}}, "spec.legacy.score.enableScorers[0]: "),
    ],
)
def test_whatever_is_wrong_keeps_the_whole_set_out(legacy: Any, problem: str) -> None:
    (found,) = problems_of(legacy, a_profile("burst"))

    assert found.startswith(f"SchedulerConfig/default: {problem}")


def test_no_profile_may_be_the_default_beside_it() -> None:
    assert problems_of({}, a_profile("rest", default=True)) == [
        (
            "SchedulerProfile/rest: spec.default: spec.legacy of SchedulerConfig/default is the"
            ' default Profile "default"'
        ),
        "SchedulerConfig/default: spec.legacy: rest is the default Profile as well",
    ]


@pytest.mark.parametrize("mode", ["Active", "Disabled"])
def test_no_object_may_have_its_name(mode: str) -> None:
    assert problems_of({}, a_profile("default", mode=mode)) == [
        (
            "SchedulerProfile/default: metadata.name: spec.legacy of SchedulerConfig/default is the"
            ' default Profile "default"'
        )
    ]


def test_a_broken_block_still_collides() -> None:
    problems = problems_of({"colour": 1}, a_profile("rest", default=True))

    assert any("SchedulerProfile/rest: spec.default" in problem for problem in problems)


def test_a_disabled_default_profile_is_none() -> None:
    assert problems_of({}, a_profile("rest", default=True, mode="Disabled")) == []


def test_guards_that_were_off_and_nodes_that_nothing_rates_are_warned_of() -> None:
    result = result_of({**DOCUMENTED, "score": {}})

    assert [warning.text for warning in result.warnings] == [
        (
            "SchedulerConfig/default: GuardsAlwaysOn: spec.legacy.filter.enableFilters: not listed,"
            " yet always on: node_safety, disk"
        ),
        (
            "SchedulerConfig/default: NoScores: spec.legacy.score: nothing is rated, so a request"
            " takes one of the first 3 nodes by name until they are full"
        ),
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [(-1, "takes any node"), (1, "takes the first node by name until it is full")],
)
def test_the_warning_says_where_unrated_requests_go(number: int, text: str) -> None:
    result = result_of({"prioritySelectNum": number})

    assert result.warnings[-1].message.endswith(text)


def test_the_config_shows_that_it_runs_instead_of_the_factory_profiles() -> None:
    config, active = a_config(legacy=DOCUMENTED), ActivePolicy(())
    active.adopt(compile_set((), config))

    status = config_status(config, active.verdict(config), active.current, note="", now="now")

    shown = {c["type"]: (c["status"], c["message"]) for c in status["conditions"]}
    assert shown["FactoryProfilesActive"] == (
        "False",
        "spec.legacy runs instead, as Profile default.",
    )
    assert shown["Active"][0] == "True"
    assert "GuardsAlwaysOn" in shown["Warnings"][1]


def _pick(fleet: Any, profile: CompiledProfile, uid: str) -> str:
    decision = decide(fleet, a_request(uid), profile.pipeline)
    assert isinstance(decision, Placed)
    return decision.node
