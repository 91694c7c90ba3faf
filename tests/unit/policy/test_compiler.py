from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from tests.unit.policy.builders import a_config, a_profile, compiled, raw_profile

from cubesched.api.v1alpha1.profile import MAX_PLUGINS
from cubesched.core.pipeline import NoCandidate, ScoreFailure, Selection, SelectionMethod
from cubesched.core.request import Request
from cubesched.policy.compiler import compile_set
from cubesched.policy.objects import PolicyObject
from cubesched.policy.reading import MAX_PROBLEMS


def a_request(instance_type: str = "cubebox", **labels: str) -> Request:
    return Request(
        uid="u",
        namespace="n",
        name="r",
        cpu_millis=1,
        memory_bytes=1,
        labels=labels,
        instance_type=instance_type,
    )


def problems_of(*profiles: PolicyObject, config: PolicyObject | None = None) -> list[str]:
    return [problem.text for problem in compile_set(profiles, config).problems]


def test_profiles_are_tried_by_order_then_name_and_the_default_last() -> None:
    policy = compiled(
        [
            a_profile("d", default=True, order=-5),
            a_profile("b"),
            a_profile("a"),
            a_profile("z", order=1),
        ],
        None,
    )

    assert [profile.name for profile in policy.profiles] == ["z", "a", "b", "d"]
    assert policy.source == "custom"


def test_a_request_takes_the_first_route_of_which_every_part_matches() -> None:
    policy = compiled(
        [
            a_profile(
                "gpu",
                order=1,
                route={"instanceTypes": ["gpu-.*"], "labels": {"workload": "train"}},
            ),
            a_profile("train", order=2),
            a_profile("rest", default=True),
        ],
        None,
    )

    def routed(request: Request) -> str:
        pipeline = policy.route(request)
        return pipeline.profile if pipeline else "none"

    assert routed(a_request("gpu-a", workload="train")) == "gpu"
    assert routed(a_request("xgpu-a", workload="train")) == "train"
    assert routed(a_request("gpu-a")) == "rest"


def test_without_a_default_an_unmatched_request_has_no_profile() -> None:
    policy = compiled([a_profile("burst")], None)

    assert policy.route(a_request()) is None


def test_a_profile_becomes_a_pipeline_with_everything_it_says() -> None:
    policy = compiled(
        [
            a_profile(
                "burst",
                filters=[
                    {"name": "node_labels", "args": {"matchLabels": {"zone": "z1"}}},
                    {"name": "scarce_resource", "enabled": False, "args": {"labels": ["gpu"]}},
                ],
                scores=[{"name": "most_allocated", "weight": 2, "defaultScore": 7.5}],
                selection={"topN": -1, "method": "highest"},
                failure={"score": "fail-closed", "noCandidate": "fail"},
            )
        ],
        None,
    )

    pipeline = policy.profiles[0].pipeline
    assert [guard.name for guard in pipeline.guards] == [
        "node_safety",
        "cpu",
        "mem",
        "disk",
        "template_locality",
        "realtime_create_num",
    ]
    assert [f.name for f in pipeline.filters] == ["node_labels"]
    assert [(s.plugin.name, s.weight, s.default_score) for s in pipeline.scores] == [
        ("most_allocated", 2.0, 7.5)
    ]
    assert pipeline.selection == Selection(SelectionMethod.HIGHEST, -1)
    assert pipeline.score_failure is ScoreFailure.FAIL_CLOSED
    assert pipeline.no_candidate is NoCandidate.FAIL


def test_scores_left_out_are_the_real_time_average_and_an_empty_list_is_none_with_a_warning() -> (
    None
):
    omitted = compile_set([a_profile("a")], None)
    empty = compile_set([a_profile("a", scores=[])], None)

    assert omitted.policy is not None
    assert [s.plugin.name for s in omitted.policy.profiles[0].pipeline.scores] == [
        "real_time_weighted_average"
    ]
    assert not omitted.warnings
    assert empty.policy is not None
    assert empty.policy.profiles[0].pipeline.scores == ()
    assert [w.text for w in empty.warnings] == [
        "SchedulerProfile/a: NoScores: spec.scores: nothing is rated, so only the tie rule decides"
    ]


def test_all_errors_of_all_objects_come_at_once() -> None:
    found = problems_of(
        a_profile(
            "one",
            scores=[{"name": "nope", "weight": 0}],
            filters=[{"name": "mem"}],
            selection={"topN": 0, "method": "best"},
        ),
        raw_profile("two", None),
        a_profile("three", default=True),
        a_profile("four", default=True),
        config=a_config(overcommit={"cpu": 20}),
    )

    assert [text.split(": ")[:2] for text in found] == [
        ["SchedulerConfig/default", "spec.overcommit.cpu"],
        ["SchedulerProfile/one", "spec.filters[0].name"],
        ["SchedulerProfile/one", "spec.scores[0].name"],
        ["SchedulerProfile/one", "spec.scores[0].weight"],
        ["SchedulerProfile/one", "spec.selection.method"],
        ["SchedulerProfile/one", "spec.selection.topN"],
        ["SchedulerProfile/two", "spec"],
        ["SchedulerProfile/four", "spec.default"],
        ["SchedulerProfile/three", "spec.default"],
    ]


@pytest.mark.parametrize("spec", [None, 7, "x", [], {"scores": 3}, {"filters": [None, 3]}])
def test_no_stored_object_however_malformed_raises_anything(spec: Any) -> None:
    result = compile_set([raw_profile("bad", spec), a_profile("good")], None)

    assert result.policy is None
    assert {problem.name for problem in result.problems} == {"bad"}


def test_a_broken_label_list_in_the_config_does_not_blame_the_profiles() -> None:
    found = problems_of(a_profile("burst"), config=a_config(profileRouteLabelKeys="workload"))

    assert [text.split(": ")[0] for text in found] == ["SchedulerConfig/default"]


def test_the_config_opens_other_labels_to_routes() -> None:
    config = a_config(profileRouteLabelKeys=["team"])
    profile = a_profile("burst", route={"labels": {"team": "x"}})

    assert compiled([profile], config).profiles[0].route.labels == (("team", "x"),)


def test_names_used_twice_are_refused() -> None:
    found = problems_of(a_profile("a"), raw_profile("a", {"default": True}, uid="other"))

    assert found == ["SchedulerProfile/a: metadata.name: 2 Profiles have this name"]


def test_a_disabled_profile_is_validated_and_stays_out_of_the_set() -> None:
    profiles = [a_profile("on"), a_profile("off", default=True, mode="Disabled")]

    assert [p.name for p in compiled(profiles, None).profiles] == ["on"]
    assert problems_of(a_profile("on"), a_profile("off", mode="Disabled", ordr=1)) == [
        'SchedulerProfile/off: spec.ordr: unknown field; did you mean "order"?'
    ]


def test_a_second_default_may_wait_disabled() -> None:
    profiles = [
        a_profile("now", default=True),
        a_profile("next", default=True, mode="Disabled"),
    ]

    assert [p.name for p in compiled(profiles, None).profiles] == ["now"]


@pytest.mark.parametrize(
    "profiles", [[], [a_profile("off", mode="Disabled")]], ids=["nothing", "all disabled"]
)
def test_the_factory_profiles_run_while_no_profile_is_active(profiles: list[PolicyObject]) -> None:
    policy = compiled(profiles, None)

    assert policy.source == "factory"
    assert [(p.name, p.is_default, p.generation) for p in policy.profiles] == [
        ("burst_balance", False, 0),
        ("template_reuse", False, 0),
        ("mixed_binpack", True, 0),
    ]
    scores = {
        p.name: [(s.plugin.name, s.weight) for s in p.pipeline.scores] for p in policy.profiles
    }
    assert scores == {
        "burst_balance": [("real_time_weighted_average", 1.0), ("create_concurrency_score", 1.0)],
        "template_reuse": [
            ("image_score", 0.7),
            ("template_local_pressure", 0.2),
            ("real_time_weighted_average", 0.3),
        ],
        "mixed_binpack": [("resource_fit_score", 0.7), ("real_time_weighted_average", 0.3)],
    }
    assert [p.pipeline.selection.top_n for p in policy.profiles] == [3, 3, 2]
    assert {p.pipeline.selection.method for p in policy.profiles} == {SelectionMethod.SPREAD}


def test_the_factory_profiles_do_not_depend_on_the_labels_the_config_allows() -> None:
    policy = compiled([], a_config(profileRouteLabelKeys=[]))

    assert policy.source == "factory"


def test_any_active_profile_replaces_all_factory_profiles() -> None:
    policy = compiled([a_profile("burst")], None)

    assert [p.name for p in policy.profiles] == ["burst"]


def test_without_factory_profiles_a_bare_random_pick_runs() -> None:
    policy = compiled([], a_config(disableFactoryProfiles=True))

    assert policy.source == "none"
    (only,) = policy.profiles
    assert only.is_default
    assert only.pipeline.filters == ()
    assert only.pipeline.scores == ()
    assert only.pipeline.selection == Selection(SelectionMethod.RANDOM, -1)
    assert len(only.pipeline.guards) == 6


def test_settings_carry_the_config_and_exact_over_commit() -> None:
    policy = compiled(
        [],
        a_config(
            generation=4,
            overcommit={"cpu": 1.1, "memory": 2},
            guards={"metricsMaxAge": "60s", "memoryReserved": "1Gi"},
            queue={"initialBackoff": "100ms", "flushInterval": "1m"},
            startDeadline="90s",
            concurrency={"maxInFlight": 12, "ownNodesFirst": False},
        ),
    )

    settings = policy.settings
    assert settings.overcommit_cpu == Fraction(11, 10)
    assert settings.overcommit_memory == 2
    assert settings.guards.metrics_max_age_seconds == 60.0
    assert settings.guards.memory_reserved_bytes == 1 << 30
    assert settings.initial_backoff_seconds == 0.1
    assert settings.flush_interval_seconds == 60.0
    assert settings.start_deadline_seconds == 90.0
    assert settings.max_in_flight == 12
    assert not settings.own_nodes_first
    assert (policy.config_generation, policy.config_uid) == (4, "uid-default")


def test_a_config_of_another_name_is_refused() -> None:
    found = problems_of(config=a_config(name="other"))

    assert found == [
        'SchedulerConfig/other: metadata.name: must be "default": there is one SchedulerConfig'
    ]


def test_a_field_name_cannot_break_a_line() -> None:
    (found,) = problems_of(a_profile("burst", **{"a\nb\x1b[31m": 1}))

    assert found.startswith("SchedulerProfile/burst: spec.a?b?[31m: unknown field")


def test_what_is_wrong_a_thousand_times_is_counted() -> None:
    found = problems_of(
        a_profile("many", **{f"k{number}": 1 for number in range(1000)}),
        a_profile("long", scores=[{"name": f"x{number}"} for number in range(1000)]),
    )

    assert len([text for text in found if "/many: " in text]) == MAX_PROBLEMS + 1
    assert "SchedulerProfile/many: spec: has 800 more errors" in found
    assert len([text for text in found if "/long: " in text]) == MAX_PLUGINS + 1
