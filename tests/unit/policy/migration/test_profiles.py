from __future__ import annotations

import random
from typing import Any

import pytest
from tests.unit.builders import a_request, a_snapshot
from tests.unit.policy.migration.files import FACTORY, manifests_of, notes_of
from tests.unit.policy.test_legacy_reference import average, random_node

from cubesched.core.inspecting import inspect
from cubesched.policy.migration.migrate import migrate


def profile_of(profile: str, scheduler: str = "") -> dict[str, Any]:
    """The spec of one Profile, given in flow style; nothing is compiled."""
    migration = migrate(f"scheduler: {{profiles: [{profile}], {scheduler}}}")
    return dict(migration.manifests[1].spec)


def names_of(*names: str) -> list[str]:
    listed = ", ".join(f"{{name: {name}, route: {{instance_types: [x]}}}}" for name in names)
    return [m.name for m in manifests_of(f"scheduler: {{profiles: [{listed}]}}")[1:]]


def test_names_become_names_that_objects_may_have_each_once() -> None:
    assert names_of("burst_balance", "Burst Balance", "'__'", "default", '"' + "a" * 80 + '"') == [
        "burst-balance",
        "burst-balance-2",
        "profile",
        "default-2",
        "a" * 63,
    ]


def test_the_name_default_stays_where_no_legacy_block_needs_it() -> None:
    manifests = manifests_of("scheduler: {profiles: [{name: default, default: true}]}")

    assert [(m.kind, m.name) for m in manifests] == [
        ("SchedulerConfig", "default"),
        ("SchedulerProfile", "default"),
    ]


def test_the_place_in_the_list_becomes_the_order() -> None:
    _, first, second, third = manifests_of(FACTORY)

    assert (first.spec["order"], second.spec["order"]) == (10, 20)
    assert "order" not in third.spec


def test_defaults_that_differ_are_written_out() -> None:
    assert profile_of("{name: a, default: true}") == {
        "default": True,
        "scores": [],
        "failure": {"noCandidate": "fail"},
    }


def test_a_default_top_n_stays_and_every_node_is_minus_one() -> None:
    assert "selection" not in profile_of("{name: a, default: true, selection: {top_n: 0}}")
    spec = profile_of("{name: a, default: true, selection: {top_n: -1, method: highest}}")
    assert spec["selection"] == {"topN": -1, "method": "highest"}


def test_a_grpc_entry_keeps_its_socket_and_its_durations() -> None:
    entry = (
        "{name: company-policy, type: grpc, socket_path: /run/cube/company-scheduler.sock,"
        " timeout: 100ms, circuit_breaker_failures: 3, circuit_breaker_cooldown: 1m30s}"
    )
    scheduler = f"scheduler: {{profiles: [{{name: a, default: true, filters: [{entry}]}}]}}"
    migration = migrate(scheduler)

    assert migration.compiled.problems == ()
    assert migration.manifests[1].spec["filters"] == [
        {
            "name": "company-policy",
            "type": "grpc",
            "socketPath": "/run/cube/company-scheduler.sock",
            "timeout": "100ms",
            "circuitBreakerFailures": 3,
            "circuitBreakerCooldown": "90s",
        }
    ]
    assert any("its server must speak cubesched" in note for note in notes_of(migration))


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        ("{name: cpu}", "means nothing here: cpu: a guard is always on"),
        ("{name: thirtparty, type: go}", "means nothing here: thirtparty: it kept every node"),
        ("{name: company, weight: 1}", "not carried over: company: not built in: what your own"),
        ("{}", "not carried over: : not built in"),
    ],
)
def test_a_filter_that_does_not_exist_here_is_left_out_and_noted(entry: str, note: str) -> None:
    migration = migrate(
        f"scheduler: {{profiles: [{{name: a, default: true, filters: [{entry}]}}]}}"
    )

    assert "filters" not in migration.manifests[1].spec
    assert any(note in found for found in notes_of(migration))


def test_a_score_without_a_weight_has_the_one_of_plugin_conf() -> None:
    tree = (
        "score: {resource_weights: {mvm_num: 1}, plugin_conf: {real_time_weighted_average:"
        " {weight: 0.4, enable_weight_factors: [mvm_num]}}}"
    )
    scores = "scores: [{name: real_time_weighted_average}, {name: resource_fit_score, weight: 0}]"
    spec = profile_of(f"{{name: a, default: true, {scores}}}", tree)

    assert spec["scores"] == [
        {"name": "real_time_weighted_average", "weight": 0.4},
        {"name": "resource_fit_score", "weight": 1},
    ]


def test_a_profile_rates_as_there_beside_another_score() -> None:
    """req_cpu and req_mem are shares of 1 there, percents here; unknown factors only divide."""
    weights = {"mvm_num": 2.0, "req_cpu": 40.0, "req_mem": 5.0, "cpu_util": 1.0, "metric_update": 3}
    enabled = ["mvm_num", "req_cpu", "metric_update", "cpu_util"]
    conf = {"weight": 1, "enableWeightFactors": enabled}
    policy = migrate(
        f"""
scheduler:
  score:
    resource_weights: {weights}
    plugin_conf:
      real_time_weighted_average: {{weight: 1, enable_weight_factors: {enabled}}}
  profiles:
    - name: a
      default: true
      scores:
        - {{name: real_time_weighted_average, weight: 0.7}}
        - {{name: half, type: expr, expr: "node.cpu_util", weight: 0.3}}
"""
    ).compiled.policy
    assert policy is not None
    rng = random.Random("profiles")
    nodes = [random_node(rng, f"node-{number:03}") for number in range(300)]
    fleet, request = a_snapshot(nodes), a_request()

    ours = inspect(fleet, request, policy.profiles[0].pipeline)

    def theirs(row: int) -> float:
        rated = average(conf, weights, nodes[row], request, adds_requested=True)
        assert rated is not None
        return 0.7 * rated + 0.3 * nodes[row].cpu_util_percent

    assert ours.rows.size > 50
    expected = [theirs(row) for row in ours.rows.tolist()]
    slope = (max(ours.scores) - min(ours.scores)) / (max(expected) - min(expected))
    shifted = [(value - min(expected)) * slope for value in expected]
    assert (ours.scores - min(ours.scores)).tolist() == pytest.approx(shifted, abs=1e-6)


def test_a_score_without_weighted_factors_never_applies() -> None:
    policy = migrate(
        "scheduler: {score: {resource_weights: {req_cpu: 5}, plugin_conf:"
        " {real_time_weighted_average: {weight: 1, enable_weight_factors: [mvm_num]}}},"
        " profiles: [{name: a, default: true, scores: [{name: real_time_weighted_average}]}]}"
    ).compiled.policy
    assert policy is not None
    fleet = a_snapshot([random_node(random.Random(1), "node-1")])

    assert inspect(fleet, a_request(), policy.profiles[0].pipeline).ratings == ()


def test_labels_keep_their_spelling() -> None:
    spec = profile_of("{name: a, route: {labels: {on: yes, version: 1.10}}}")

    assert spec["route"] == {"labels": {"on": "yes", "version": "1.10"}}


def test_no_label_routes_where_none_is_listed() -> None:
    migration = migrate("scheduler: {profiles: [{name: a, route: {labels: {workload: x}}}]}")

    assert migration.manifests[0].spec["profileRouteLabelKeys"] == []
    (problem,) = migration.compiled.problems
    assert "allowed: none" in problem.text
