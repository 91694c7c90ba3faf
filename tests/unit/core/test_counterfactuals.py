"""What would help: each line, applied as it is written, lets so many nodes take the request."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.builders import GIB, UNKNOWN, NodeFacts, a_node, a_pipeline, a_request, a_snapshot

from cubesched.api.quantity import parse_millis, parse_units
from cubesched.core.changes import Case, of_the_request
from cubesched.core.counterfactuals import MOST, Counterfactual, counterfactuals
from cubesched.core.cycle import decide
from cubesched.core.decision import Placed, Rejected
from cubesched.core.node_changes import ONCE, of_the_nodes
from cubesched.core.pipeline import Pipeline
from cubesched.core.request import Request, Toleration
from cubesched.core.snapshot import Safety, Taint

MIB = 1 << 20
World = tuple[Sequence[NodeFacts], Request, Pipeline]
LINE = re.compile(r"(\d+) nodes? would fit (.+?)(?:: ([-, a-z0-9]+))?")


def helped(nodes: Sequence[NodeFacts], pipeline: Pipeline | None = None, **asked: Any) -> list[str]:
    return [each.line for each in found(nodes, a_request(**asked), pipeline or a_pipeline())]


def found(nodes: Sequence[NodeFacts], request: Request, pipeline: Pipeline) -> list[Counterfactual]:
    fleet = a_snapshot(nodes)
    rejected = decide(fleet, request, pipeline)
    assert isinstance(rejected, Rejected)
    return counterfactuals(rejected, fleet, request, pipeline)


# Applying what is written, by nothing but its words


def asks(world: World, **fields: Any) -> World:
    nodes, request, pipeline = world
    return nodes, replace(request, **fields), pipeline


def every(world: World, change: Callable[[NodeFacts], dict[str, Any]]) -> World:
    nodes, request, pipeline = world
    return [replace(node, **change(node)) for node in nodes], request, pipeline


def with_smaller(world: World, cpu: str | None, memory: str | None, disk: str | None) -> World:
    fields: dict[str, int] = {}
    if cpu:
        fields["cpu_millis"] = parse_millis(cpu, round_up=True)
    if memory:
        fields["memory_bytes"] = parse_units(memory, round_up=True)
    if disk:
        fields["disk_bytes"] = parse_units(disk, round_up=True)
    return asks(world, **fields)


def a_toleration(text: str) -> Toleration:
    taint, effect = text.rsplit(":", 1)
    key, _, value = taint.partition("=")
    return Toleration(key, "Equal", value, effect)


def without_filter(world: World, name: str) -> World:
    nodes, request, pipeline = world
    kept = tuple(stage for stage in pipeline.filters if stage.name != name)
    return nodes, request, replace(pipeline, filters=kept)


def safe_instead_of(world: World, text: str) -> World:
    code = next(code for code, once in ONCE.items() if once == text)
    return every(world, lambda n: {"safety": Safety.OK} if n.safety is code else {})


def applied(text: str, world: World) -> World:
    request = world[1]
    if text in ONCE.values():
        return safe_instead_of(world, text)
    rules: dict[str, Callable[..., World]] = {
        r"with cpu <= (\w+)": lambda cpu: with_smaller(world, cpu, None, None),
        r"with memory <= (\w+)": lambda memory: with_smaller(world, None, memory, None),
        r"with systemDisk <= (\w+)": lambda disk: with_smaller(world, None, None, disk),
        r"with cpu <= (\w+) and memory <= (\w+)": lambda cpu, memory: with_smaller(
            world, cpu, memory, None
        ),
        r"with template (\S+) cached": lambda template: every(
            world, lambda node: {"templates": (*node.templates, template)}
        ),
        "with allowNonLocalTemplate: true": lambda: asks(world, allow_non_local_template=True),
        "without templateNodeScope": lambda: asks(world, template_node_scope=()),
        "without nodeSelector": lambda: asks(world, node_selector=()),
        r"without (\S+)=(\S+) in nodeSelector": lambda key, value: asks(
            world,
            node_selector=tuple(p for p in request.node_selector if p != (key, value)),
        ),
        r"with instanceType (\S+)": lambda name: asks(world, instance_type=name),
        "with a toleration of (.+)": lambda listed: asks(
            world,
            tolerations=(*request.tolerations, *map(a_toleration, listed.split(" and "))),
        ),
        "once the refusals there have passed": lambda: asks(world, refused_nodes=()),
        r"without filter (\S+) of Profile a-profile": lambda name: without_filter(world, name),
        "once the creates in flight there have ended": lambda: every(
            world, lambda _: {"creating": 0, "creating_ledger": 0}
        ),
        "once cpu utilisation there is lower": lambda: every(
            world, lambda _: {"cpu_util_percent": 0.0}
        ),
        "once the cpu load there is lower": lambda: every(world, lambda _: {"cpu_load": 0.0}),
        "once the machine there has memory free": lambda: every(
            world, lambda _: {"memory_really_used_bytes": 0.0}
        ),
        "once the disks there are less full": lambda: every(
            world,
            lambda _: {
                "data_disk_percent": 0.0,
                "storage_disk_percent": 0.0,
                "system_disk_percent": 0.0,
            },
        ),
    }
    for pattern, rule in rules.items():
        match = re.fullmatch(pattern, text)
        if match:
            return rule(*match.groups())
    raise AssertionError(f"nobody can act on: {text}")


def holds(line: str, world: World) -> None:
    match = LINE.fullmatch(line)
    assert match, line
    number, text, names = match.groups()
    nodes, request, pipeline = applied(text, world)
    fleet = a_snapshot(nodes)
    decision = decide(fleet, request, pipeline)
    assert isinstance(decision, Placed), line
    assert decision.feasible == int(number), line
    if names:
        assert decision.node in names.split(", ")


# One of each


NO_ROOM: dict[str, Any] = {"cpu_used_millis": 62_500}
GPU = Taint("gpu", "", "NoSchedule")
TEAM = Taint("team", "a", "NoExecute")
CASES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (NO_ROOM, {"cpu_millis": 2000}, "with cpu <= 1500m"),
    (
        {"memory_used_bytes": 100 * GIB + 5},
        {"memory_bytes": 40 * GIB},
        "with memory <= 27Gi",
    ),
    (
        {"memory_really_used_bytes": 117.0 * GIB},
        {"memory_bytes": 2 * GIB},
        "once the machine there has memory free",
    ),
    (
        {"disk_limit_bytes": 8 * GIB, "disk_used_bytes": 3 * GIB},
        {"disk_bytes": 6 * GIB},
        "with systemDisk <= 5Gi",
    ),
    ({}, {"template_id": "t-9"}, "with template t-9 cached"),
    ({}, {"template_id": "t-9"}, "with allowNonLocalTemplate: true"),
    ({}, {"template_node_scope": ("else",)}, "without templateNodeScope"),
    ({"labels": {"a": "1"}}, {"node_selector": (("a", "2"),)}, "without nodeSelector"),
    (
        {"labels": {"a": "1"}},
        {"node_selector": (("a", "1"), ("b", "2"))},
        "without b=2 in nodeSelector",
    ),
    ({"instance_type": "large"}, {}, "with instanceType large"),
    ({"taints": (GPU,)}, {}, "with a toleration of gpu:NoSchedule"),
    ({"taints": (GPU, TEAM)}, {}, "with a toleration of gpu:NoSchedule and team=a:NoExecute"),
    (
        {"taints": (GPU, TEAM)},
        {"tolerations": (Toleration("gpu", "Exists"),)},
        "with a toleration of team=a:NoExecute",
    ),
    ({}, {"refused_nodes": ("node-1",)}, "once the refusals there have passed"),
    ({"creating": 100}, {}, "once the creates in flight there have ended"),
    ({"creating_ledger": 100, "creating": 100}, {}, "once the creates in flight there have ended"),
    ({"cpu_util_percent": 80.0}, {}, "once cpu utilisation there is lower"),
    ({"cpu_load": 65.0}, {}, "once the cpu load there is lower"),
    ({"storage_disk_percent": 80.0}, {}, "once the disks there are less full"),
    *(({"safety": code}, {}, text) for code, text in ONCE.items()),
]


@pytest.mark.parametrize(("facts", "asked", "text"), CASES, ids=[case[2] for case in CASES])
def test_each_kind_of_change_is_found_and_true(
    facts: dict[str, Any], asked: dict[str, Any], text: str
) -> None:
    nodes, request = [a_node(**facts)], a_request(**asked)

    lines = [each.line for each in found(nodes, request, a_pipeline())]

    assert f"1 node would fit {text}: node-1" in lines
    for line in lines:
        holds(line, (nodes, request, a_pipeline()))


def test_every_safety_code_says_what_would_help_but_for_a_node_without_sizes() -> None:
    assert set(Safety) - ONCE.keys() == {Safety.OK, Safety.INVALID_SPEC}


@pytest.mark.parametrize(
    ("filters", "labels"),
    [
        ({"node_labels": {"matchLabels": {"zone": "a"}}}, {"zone": "b"}),
        ({"scarce_resource": {}}, {"gpu": "1"}),
    ],
)
def test_a_profiles_filter_is_named_with_its_profile(
    filters: dict[str, Any], labels: dict[str, str]
) -> None:
    nodes, pipeline = [a_node(labels=labels)], a_pipeline(filters=filters)

    name = next(iter(filters))
    assert helped(nodes, pipeline) == [
        f"1 node would fit without filter {name} of Profile a-profile: node-1"
    ]


def test_of_two_sizes_that_are_too_big_both_are_told_together() -> None:
    nodes = [a_node(cpu_limit_millis=4000, memory_limit_bytes=8 * GIB)]

    assert helped(nodes, cpu_millis=8000, memory_bytes=10 * GIB) == [
        "1 node would fit with cpu <= 4000m and memory <= 8Gi: node-1"
    ]


def test_those_that_win_more_nodes_come_first_then_the_smaller_change_and_names_are_few() -> None:
    nodes = [
        *(a_node(f"tight-{n}", cpu_used_millis=63_000) for n in range(2)),
        *(a_node(f"tainted-{n}", taints=(GPU,)) for n in range(3)),
        *(a_node(f"stale-{n}", safety=Safety.STALE) for n in range(2)),
        a_node("other", instance_type="large"),
    ]

    assert helped(nodes, cpu_millis=2000) == [
        "3 nodes would fit with a toleration of gpu:NoSchedule",
        "2 nodes would fit once metrics are fresh: stale-0, stale-1",
        "2 nodes would fit with cpu <= 1000m: tight-0, tight-1",
        "1 node would fit with instanceType large: other",
    ]


def test_no_more_than_a_few_are_told() -> None:
    nodes = [a_node(f"node-{n}", taints=(Taint(f"k{n}", "", "NoSchedule"),)) for n in range(20)]

    lines = helped(nodes)

    assert len(lines) == MOST
    assert len({line.split(":")[0] for line in lines}) == MOST


def test_the_whole_selector_is_not_named_where_one_label_of_it_does() -> None:
    nodes = [a_node(labels={"a": "1"})]

    lines = helped(nodes, node_selector=(("a", "1"), ("b", "2")))

    assert lines == ["1 node would fit without b=2 in nodeSelector: node-1"]


def test_a_limit_of_no_creates_is_helped_by_nothing_that_ends() -> None:
    assert helped([a_node(create_limit=0)]) == []


def test_an_amount_that_a_filter_and_not_the_room_refuses_is_not_proposed() -> None:
    nodes = [a_node(labels={"zone": "b"}), a_node("full", cpu_used_millis=64_000)]
    pipeline = a_pipeline(filters={"node_labels": {"matchLabels": {"zone": "a"}}})

    assert not any("cpu <=" in line for line in helped(nodes, pipeline))


def test_another_instance_type_is_asked_of_the_profile_that_would_serve_it() -> None:
    fleet = a_snapshot([a_node(instance_type="large")])
    request, pipeline = a_request(), a_pipeline()
    rejected = decide(fleet, request, pipeline)
    assert isinstance(rejected, Rejected)
    picky = a_pipeline(filters={"node_labels": {"matchLabels": {"zone": "a"}}})

    def lines(route: Callable[[Request], Pipeline | None]) -> list[str]:
        helps = counterfactuals(rejected, fleet, request, pipeline, route=route)
        return [each.line for each in helps]

    assert lines(lambda _: pipeline) == ["1 node would fit with instanceType large: node-1"]
    assert lines(lambda asked: picky if asked.instance_type == "large" else pipeline) == []
    assert lines(lambda _: None) == []


def test_finding_them_leaves_the_fleet_as_it_was() -> None:
    facts: dict[str, Any] = {
        "safety": Safety.STALE,
        "creating": 100,
        "cpu_util_percent": 99.0,
        "cpu_load": 99.0,
    }
    fleet = a_snapshot([a_node(**facts), a_node("b", memory_really_used_bytes=200.0 * GIB)])
    before = fleet.derived.with_own_rooms()

    case = Case(fleet, a_request(template_id="t"), a_pipeline(), lambda _: None)
    assert len([*of_the_request(case), *of_the_nodes(case)]) == 7

    assert fleet.safety.tolist() == [0, Safety.STALE]
    assert "t" not in fleet.templates
    for name in ("is_usable", "can_create", "cpu_room_millis", "memory_room_bytes"):
        assert getattr(fleet.derived, name).tolist() == getattr(before, name).tolist()


# For every fleet


percent = st.sampled_from([0.0, 79.9, 80.0, 100.0, UNKNOWN])
taints = st.sampled_from([(), (), (GPU,), (TEAM,), (GPU, TEAM)])
nodes = st.lists(
    st.fixed_dictionaries(
        {
            "cpu_limit_millis": st.sampled_from([0, 1000, 8000]),
            "cpu_used_millis": st.integers(0, 9000),
            "memory_limit_bytes": st.integers(0, 40 * GIB),
            "memory_used_bytes": st.integers(0, 17 * GIB),
            "disk_limit_bytes": st.sampled_from([0, 9 * MIB, 1 << 61]),
            "sandboxes": st.sampled_from([0, 0, 0, 4]),
            "sandbox_limit": st.sampled_from([4, 3000]),
            "creating": st.sampled_from([0, 0, 0, 100]),
            "cpu_util_percent": percent,
            "cpu_load": st.sampled_from([0.0, 1.0, 64.0, 65.0, UNKNOWN]),
            "data_disk_percent": percent,
            "memory_really_used_bytes": st.sampled_from([0.0, 127.0 * GIB, UNKNOWN]),
            "safety": st.sampled_from([*[Safety.OK] * 9, *Safety]),
            "instance_type": st.sampled_from(["", "", "large", "cubebox"]),
            "taints": taints,
            "templates": st.sampled_from([(), ("t",)]),
            "labels": st.sampled_from([{}, {"zone": "a"}, {"zone": "b", "gpu": "1"}]),
        }
    ),
    max_size=8,
).map(lambda every: [a_node(f"node-{n}", **facts) for n, facts in enumerate(every)])
requests = st.builds(
    a_request,
    cpu_millis=st.sampled_from([1, 1000, 8000, 9000]),
    memory_bytes=st.sampled_from([1, GIB, 16 * GIB]),
    disk_bytes=st.sampled_from([0, 10 * MIB]),
    template_id=st.sampled_from(["", "", "t"]),
    template_node_scope=st.sampled_from([(), (), ("node-0",)]),
    node_selector=st.sampled_from([(), (), (("zone", "a"),), (("gpu", "1"), ("zone", "a"))]),
    tolerations=st.sampled_from([(), (), (Toleration("gpu", "Exists"),)]),
    refused_nodes=st.sampled_from([(), (), ("node-1", "node-2")]),
)
filters = st.sampled_from(
    [{}, {}, {"node_labels": {"matchLabels": {"zone": "a"}}}, {"scarce_resource": {}}]
)


@settings(max_examples=300)
@given(nodes, requests, filters)
def test_every_line_is_true_when_applied(
    all_nodes: list[NodeFacts], request: Request, filters: dict[str, Any]
) -> None:
    pipeline = a_pipeline(filters=filters)
    fleet = a_snapshot(all_nodes)
    decision = decide(fleet, request, pipeline)
    if isinstance(decision, Placed):
        return

    helps = counterfactuals(decision, fleet, request, pipeline)

    assert helps == [] or all(each.nodes for each in helps)
    for each in helps:
        holds(each.line, (all_nodes, request, pipeline))


@given(nodes, requests)
def test_the_amount_told_is_the_largest_that_fits(
    all_nodes: list[NodeFacts], request: Request
) -> None:
    fleet, pipeline = a_snapshot(all_nodes), a_pipeline()
    decision = decide(fleet, request, pipeline)
    if isinstance(decision, Placed):
        return

    for each in counterfactuals(decision, fleet, request, pipeline):
        changed = each.change.case.request
        if each.change.kind == "cpu":
            more = replace(request, cpu_millis=changed.cpu_millis + 1)
        elif each.change.kind == "memory":
            more = replace(request, memory_bytes=changed.memory_bytes * 11 // 10 + 1)
        else:
            continue
        assert isinstance(decide(fleet, more, pipeline), Rejected)
