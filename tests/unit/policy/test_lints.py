from __future__ import annotations

from typing import Any

import pytest
from tests.unit.builders import a_node, a_snapshot
from tests.unit.policy.builders import a_config, a_profile

from cubesched.core.snapshot import Safety, Snapshot
from cubesched.plugins.cel.facts import NODE
from cubesched.policy.compiler import compile_set
from cubesched.policy.factory import FACTORY_PROFILES
from cubesched.policy.lints import LINTS
from cubesched.policy.livelints import LASTING, is_known, look, look_at_limits, look_at_set
from cubesched.policy.objects import PolicyObject

EVERYWHERE = {"labels": {"workload": "a"}}


def expr(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "expr", "expr": text, **more}


def warned(*profiles: PolicyObject) -> list[str]:
    result = compile_set(profiles, None)
    assert not result.problems
    assert {warning.lint for warning in result.warnings} <= set(LINTS)
    return [warning.text.removeprefix("SchedulerProfile/") for warning in result.warnings]


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"labels": {"workload": "a"}}, {"labels": {"workload": "a"}}),
        ({"labels": {"workload": "a"}}, {"labels": {"workload": "a"}, "instanceTypes": ["gpu"]}),
        ({"instanceTypes": ["gpu.*"]}, {"instanceTypes": ["gpu-1", "gpu-2"]}),
        ({"instanceTypes": ["a|b.c"]}, {"instanceTypes": ["a|b.c"], "labels": {"workload": "a"}}),
    ],
)
def test_a_route_that_another_takes_whole_is_never_reached(
    first: dict[str, Any], later: dict[str, Any]
) -> None:
    assert warned(a_profile("one", route=first, order=1), a_profile("two", route=later)) == [
        "two: UnreachableRoute: spec.route: one is tried first and takes all of it"
    ]


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"labels": {"workload": "a"}}, {"labels": {"workload": "b"}}),
        ({"labels": {"workload": "a"}, "instanceTypes": ["gpu"]}, {"labels": {"workload": "a"}}),
        ({"instanceTypes": ["gpu-1"]}, {"instanceTypes": ["gpu-1", "gpu-2"]}),
        ({"instanceTypes": ["gpu.*"]}, {"instanceTypes": ["gpu[12]"]}),
    ],
)
def test_a_route_that_may_still_be_taken_is_not_warned_of(
    first: dict[str, Any], later: dict[str, Any]
) -> None:
    assert warned(a_profile("one", route=first, order=1), a_profile("two", route=later)) == []


def test_a_filter_that_is_false_for_every_node_is_warned_of() -> None:
    assert warned(a_profile("a", filters=[expr("none", "1 > 2")])) == [
        "a: FilterPassesNoNode: spec.filters[0].expr: is false for every node"
    ]


def test_places_are_those_of_the_object_also_beside_disabled_entries() -> None:
    filters = [expr("off", "false", enabled=False), expr("none", "false")]

    assert warned(a_profile("a", filters=filters)) == [
        "a: FilterPassesNoNode: spec.filters[1].expr: is false for every node"
    ]


@pytest.mark.parametrize("text", ["50.0", "request.cpu_millis > 500 ? 10 : 90"])
def test_a_score_that_asks_nothing_about_the_node_is_constant(text: str) -> None:
    assert warned(a_profile("a", scores=[expr("same", text), {"name": "least_allocated"}])) == [
        (
            "a: ConstantScore: spec.scores[0].expr: rates all nodes alike: it asks nothing about"
            " the node"
        )
    ]


def test_one_weight_that_leaves_the_others_no_say_is_warned_of() -> None:
    scores = [{"name": "least_allocated", "weight": 99}, {"name": "balanced_allocation"}]

    assert warned(a_profile("a", scores=scores)) == [
        (
            "a: DominatingWeight: spec.scores[0].weight: 99.0% of all weight: the other scores can"
            " hardly change an order"
        )
    ]


def test_a_method_that_has_one_node_to_choose_from_is_warned_of() -> None:
    assert warned(a_profile("a", selection={"method": "spread"})) == [
        "a: SingleCandidate: spec.selection: spread among 1 node is the same as highest; topN is 1"
    ]


def test_the_default_selection_and_more_candidates_are_not_warned_of() -> None:
    more = {"method": "spread", "topN": 3}
    as_stored = {"method": "random", "topN": 1}

    assert warned(a_profile("a"), a_profile("b", selection=more, route=None, default=True)) == []
    assert warned(a_profile("a", selection=as_stored)) == []


def test_the_factory_profiles_are_never_warned_of() -> None:
    result = compile_set((), a_config())
    stored = [
        a_profile(name.replace("_", "-"), **{"route": None, **spec})
        for name, spec in FACTORY_PROFILES.items()
    ]

    assert result.warnings == compile_set(stored, None).warnings == ()


# What only a look at the fleet can tell


def seen(fleet: Snapshot, **spec: Any) -> list[str]:
    policy = compile_set([a_profile("a", **spec)], None).policy
    assert policy is not None
    return [problem.detail for problem in look(policy.profiles[0], fleet)]


FLEET = a_snapshot(
    [
        a_node("n1", labels={"zone": "a"}),
        a_node("n2", labels={"zone": "b"}, safety=Safety.STALE),
    ]
)


def test_a_filter_that_no_live_node_passes_is_warned_of() -> None:
    filters = [expr("zone", "node.labels['zone'] == 'b'")]

    assert seen(FLEET, filters=filters) == [
        "FilterPassesNoNode: spec.filters[0]: no live node passes it, whoever asks"
    ]


@pytest.mark.parametrize(
    "text", ["node.labels['zone'] == 'a'", "request.priority > 5 && node.labels['zone'] == 'b'"]
)
def test_a_filter_that_passes_some_or_depends_on_the_request_is_not(text: str) -> None:
    assert seen(FLEET, filters=[expr("zone", text)]) == []


def test_its_place_is_that_of_the_object_beside_disabled_entries() -> None:
    filters = [expr("off", "true", enabled=False), expr("zone", "node.labels['zone'] == 'b'")]

    assert [text.split(": ")[1] for text in seen(FLEET, filters=filters)] == ["spec.filters[1]"]


def test_nodes_kept_for_who_selects_them_are_no_warning() -> None:
    fleet = a_snapshot([a_node("n1", labels={"gpu": "a100"})])

    assert seen(fleet, filters=[{"name": "scarce_resource"}]) == []


TIERS = a_snapshot(
    [
        a_node("n1", labels={"tier": "gold", "zone": "a"}, cpu_util_percent=1.0),
        a_node("n2", labels={"tier": "gold"}, cpu_util_percent=1.0),
        a_node("n3", labels={"tier": "iron"}, safety=Safety.NOT_READY),
    ]
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("node.labels['tier'] == 'gold' ? 100.0 : 0.0", "it rates all live nodes alike"),
        (
            "node.labels['zone'] == 'a' ? 100.0 : 0.0",
            "it fails on live nodes, so defaultScore stands in for all: no such key: zone",
        ),
    ],
)
def test_a_score_of_what_nodes_keep_that_tells_none_apart_is_warned_of(text: str, why: str) -> None:
    assert seen(TIERS, scores=[expr("tier", text)]) == [
        f"ConstantScore: spec.scores[0]: {why}",
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {"scores": [expr("idle", "node.cpu_util < 60.0 ? 80.0 : 20.0")]},
        {"scores": [expr("zone", "has(node.labels.zone) ? 100.0 : 0.0")]},
        {"scores": [expr("mine", "node.labels['tier'] == request.labels['workload'] ? 9.0 : 1.0")]},
        {"scores": [{"name": "least_allocated"}]},
        {
            "scores": [expr("zone", "node.labels['zone'] == 'a' ? 100.0 : 0.0")],
            "failure": {"score": "fail-closed"},
        },
        {
            "scores": [expr("zone", "node.labels['zone'] == 'a' ? 100.0 : 0.0")],
            "filters": [expr("zoned", "has(node.labels.zone)")],
        },
    ],
    ids=["measured", "differs", "by request", "builtin", "fail-closed", "one node passes"],
)
def test_other_scores_are_not(spec: dict[str, Any]) -> None:
    assert seen(TIERS, **spec) == []


def test_without_reports_only_what_nodes_keep_is_judged() -> None:
    filters = [
        expr("load", "node.cpu_load < 0.0"),
        expr("tier", "node.labels['tier'] == 'wood'"),
        {"name": "node_labels", "args": {"matchLabels": {"tier": "wood"}}},
    ]
    policy = compile_set([a_profile("a", filters=filters)], None).policy
    assert policy is not None

    def places(*, is_measured: bool) -> list[str]:
        return [found.path for found in look_at_set(policy, TIERS, is_measured=is_measured)]

    assert places(is_measured=True) == [f"spec.filters[{index}]" for index in range(3)]
    assert places(is_measured=False) == [f"spec.filters[{index}]" for index in (1, 2)]


def test_what_nobody_wrote_is_not_looked_at() -> None:
    policy = compile_set([], None).policy
    assert policy is not None

    assert list(look_at_set(policy, TIERS, is_measured=True)) == []


@pytest.mark.parametrize(
    ("states", "known"),
    [
        ((), False),
        ((Safety.STALE,), False),
        ((Safety.OK, Safety.STALE), True),
        ((Safety.OK, Safety.AWAITING_REPORT), False),
    ],
)
def test_a_fleet_is_known_when_a_node_is_live_and_every_one_was_heard_of(
    states: tuple[Safety, ...], *, known: bool
) -> None:
    nodes = [a_node(f"n{number}", safety=state) for number, state in enumerate(states)]

    assert is_known(a_snapshot(nodes)) is known


def test_quotas_above_capacity_that_are_multiplied_again_are_warned_of() -> None:
    policy = compile_set([], a_config(overcommit={"cpu": 2})).policy
    plain = compile_set([], a_config()).policy
    assert policy is not None
    assert plain is not None
    nodes = [a_node(f"n{number}", cpu_limit_millis=64_000, cpus=16.0) for number in range(4)]
    fleet = a_snapshot([*nodes, a_node("n9", cpu_limit_millis=32_000, cpus=16.0)])

    assert [p.detail for p in look_at_limits(policy, fleet)] == [
        (
            "OvercommitTwice: spec.overcommit.cpu: 4 nodes have a cpu quota above their capacity,"
            " which 2 multiplies again: n0, n1, n2, ..."
        )
    ]
    assert list(look_at_limits(plain, fleet)) == []


def test_what_nodes_keep_are_facts_of_nodes() -> None:
    assert set(NODE) >= LASTING
