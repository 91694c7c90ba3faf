"""The columns agree with the node-by-node reference on choice, counts and reason."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import pytest
from tests.unit.builders import GIB, UNKNOWN, NodeFacts, a_node, a_pipeline, a_request, a_snapshot
from tests.unit.core import reference

from cubesched.core.cycle import decide
from cubesched.core.decision import Decision, Placed
from cubesched.core.derived import derive
from cubesched.core.pipeline import SelectionMethod
from cubesched.core.request import Request, Toleration
from cubesched.core.snapshot import NO_LIMIT, Safety, Snapshot, Taint
from cubesched.plugins.registry import SCORES

Value = TypeVar("Value")
FLEETS = 4000
STEPS = 4
TAINTS = (
    (),
    (),
    (),
    (Taint("dedicated", "a", "NoSchedule"),),
    (Taint("dedicated", "b", "NoExecute"), Taint("spot", "", "PreferNoSchedule")),
)
TOLERATIONS = (
    (),
    (),
    (Toleration(operator="Exists"),),
    (Toleration("dedicated", "Equal", "a"),),
    (Toleration("dedicated", "Exists", "", "NoExecute"), Toleration("spot", "Exists")),
)
IMAGES = {"tiny": 1 << 20, "small": 50 << 20, "large": 5 * GIB, "huge": 400 * GIB}
FACTORS = [
    *reference.DEFAULT_FACTORS,
    "realtime_create_num",
    "quota_cpu_usage",
    "req_cpu",
    "req_mem",
    "cpu_usage",
    "mem_usage",
    "cpu_load",
    "data_disk_usage",
    "storage_disk_usage",
    "sys_disk_usage",
]


@pytest.mark.parametrize("method", list(SelectionMethod))
def test_columns_and_reference_decide_alike(method: SelectionMethod) -> None:
    rng = random.Random(f"fleets {method}")
    decisions = placements = 0

    for _ in range(FLEETS // len(SelectionMethod)):
        placed, decided = compare_one_fleet(rng, method)
        placements += placed
        decisions += decided

    print(  # noqa: T201 - the number of agreeing decisions is the result
        f"{method}: {FLEETS // len(SelectionMethod)} fleets, {decisions} decisions agree,"
        f" {placements} of them placements"
    )
    assert decisions / 4 < placements < decisions


def compare_one_fleet(rng: random.Random, method: SelectionMethod) -> tuple[int, int]:
    oddness = rng.choice((0.0, 0.01, 0.03, 0.1, 0.5))
    size = rng.choice((0, 1, 3, 6, 15, 30))
    nodes = [random_node(rng, f"node-{number:03}", oddness) for number in range(size)]
    fleet = a_snapshot(nodes)
    policy = random_policy(rng, method)
    pipeline = a_pipeline(*policy.scores, filters=policy.filters, method=method, top_n=policy.top_n)
    placements = 0
    for step in range(STEPS):
        request = random_request(rng, f"uid-{rng.random()}", attempt=step)
        prefer_own = rng.random() < 0.5

        decision = decide(fleet, request, pipeline, prefer_own=prefer_own)
        outcome = reference.decide(nodes, request, policy, prefer_own=prefer_own)

        assert as_outcome(decision) == outcome
        if isinstance(decision, Placed):
            placements += 1
            nodes[decision.row] = assume_on_node(nodes[decision.row], request)
            assume_in_columns(fleet, decision.row, request)
    return placements, STEPS


def as_outcome(decision: Decision) -> reference.Outcome:
    counts = {count.plugin: count.rejected for count in decision.counts}
    if isinstance(decision, Placed):
        assert sum(counts.values()) + decision.feasible == decision.total
        return reference.Outcome(decision.node, "", decision.score, counts, decision.feasible)
    assert sum(counts.values()) == decision.total
    return reference.Outcome("", decision.reason, 0.0, counts, 0)


def assume_on_node(node: NodeFacts, request: Request) -> NodeFacts:
    templates = dict(node.template_creating)
    if request.template_id in templates:
        templates[request.template_id] += 1
    return replace(
        node,
        cpu_used_millis=node.cpu_used_millis + request.cpu_millis,
        memory_used_bytes=node.memory_used_bytes + request.memory_bytes,
        disk_used_bytes=node.disk_used_bytes + request.disk_bytes,
        sandboxes=node.sandboxes + 1,
        creating=max(node.creating_reported, node.creating_ledger + 1),
        creating_ledger=node.creating_ledger + 1,
        template_creating=templates,
    )


def assume_in_columns(fleet: Snapshot, row: int, request: Request) -> None:
    fleet.cpu_used_millis[row] += request.cpu_millis
    fleet.memory_used_bytes[row] += request.memory_bytes
    fleet.disk_used_bytes[row] += request.disk_bytes
    fleet.sandboxes[row] += 1
    fleet.creating_ledger[row] += 1
    fleet.creating[row] = max(fleet.creating_reported[row], fleet.creating_ledger[row])
    creating = fleet.template_creating.get(request.template_id)
    if creating is not None:
        creating[row] += 1
    derive(fleet, slice(row, row + 1))


def random_node(rng: random.Random, name: str, oddness: float) -> NodeFacts:
    def some(usual: Sequence[Value], odd: Sequence[Value]) -> Value:
        return rng.choice(odd if rng.random() < oddness else usual)

    ledger = rng.randint(0, 4)
    reported = some((0, ledger, ledger + 1), (-1, -1, 9))
    return a_node(
        name,
        cpu_limit_millis=some((8000, 64_000), (0, 4000)),
        memory_limit_bytes=some((16, 128), (0, 4)) * GIB,
        disk_limit_bytes=some((NO_LIMIT,), (50 * GIB,)),
        sandbox_limit=some((3000, NO_LIMIT), (0, 5)),
        create_limit=some((100, 8), (0, 3)),
        cpu_used_millis=some((0, 1000, 3000), (7000, 12_000, 64_000)),
        memory_used_bytes=some((0, GIB), (3 * GIB + 1, 15 * GIB, 15 * GIB + 1)),
        disk_used_bytes=some((0, GIB), (40 * GIB, 60 * GIB)),
        sandboxes=rng.randint(0, 5),
        creating=max(ledger, reported),
        creating_ledger=ledger,
        creating_reported=reported,
        cpus=some((8.0, 64.0), (4.0, UNKNOWN)),
        memory_capacity_bytes=some((16, 128), (2,)) * GIB,
        memory_reserved_bytes=some((1, 2), (15,)) * GIB,
        cpu_util_percent=some((0.0, 12.5, 50.0), (79.9, 80.0, 130.0, UNKNOWN)),
        cpu_load=some((0.0, 1.0, 4.0), (9.0, UNKNOWN)),
        memory_really_used_bytes=some((0.0, 1.0 * GIB), (13.0 * GIB, 20.0 * GIB, UNKNOWN)),
        data_disk_percent=some((0.0, 33.3), (79.0, 80.0, UNKNOWN)),
        storage_disk_percent=some((10.0,), (99.0, UNKNOWN)),
        system_disk_percent=some((10.0,), (95.0, UNKNOWN)),
        safety=some((Safety.OK,), list(Safety)),
        instance_type=some(("",), ("", "cubebox", "gpu")),
        taints=some(((),), TAINTS),
        labels=random_labels(rng),
        templates=tuple(template for template in ("t1", "t2") if rng.random() < 0.6),
        images={image: size for image, size in IMAGES.items() if rng.random() < 0.5},
        template_creating={"t1": rng.randint(0, 3)},
        own=rng.random() < 0.3,
    )


def random_labels(rng: random.Random) -> dict[str, str]:
    labels = {"zone": rng.choice(("a", "b"))}
    if rng.random() < 0.3:
        labels["gpu"] = rng.choice(("true", "false", "0", "a100", ""))
    return labels


def random_request(rng: random.Random, uid: str, attempt: int) -> Request:
    is_odd = rng.random() < 0.3
    return a_request(
        uid,
        attempt=attempt,
        cpu_millis=rng.choice((1, 1000, 1000, 4000, 64_000 if is_odd else 2000)),
        memory_bytes=rng.choice((1, 1, 2, 200 if is_odd else 1)) * GIB,
        disk_bytes=rng.choice((0, 0, 10 * GIB)),
        template_id=rng.choice(("", "", "t1", "t2", "t3" if is_odd else "t1")),
        template_node_scope=("node-001", "node-002", "gone") if rng.random() < 0.1 else (),
        allow_non_local_template=rng.random() < 0.5,
        images=tuple(rng.sample(sorted((*IMAGES, "nowhere")), rng.choice((0, 0, 1, 2, 4)))),
        node_selector=random_selector(rng),
        tolerations=rng.choice(TOLERATIONS),
        refused_nodes=("node-000", "gone") if rng.random() < 0.2 else (),
        instance_type=rng.choice(("cubebox", "cubebox", "gpu", "other")),
    )


def random_selector(rng: random.Random) -> tuple[tuple[str, str], ...]:
    return rng.choice(
        ((), (), (), (("zone", "a"),), (("gpu", "true"),), (("zone", "b"), ("gpu", "no such")))
    )


def random_policy(rng: random.Random, method: SelectionMethod) -> reference.Policy:
    names = rng.sample(sorted(SCORES), rng.randint(0, 4))
    filters: dict[str, Mapping[str, object]] = {}
    if rng.random() < 0.2:
        filters["node_labels"] = {"matchLabels": {"zone": "a"}}
    if rng.random() < 0.3:
        filters["scarce_resource"] = {"labels": ["gpu", "fpga"]}
    return reference.Policy(
        scores=tuple(
            (name, random_args(rng, name), rng.choice((1.0, 0.3, 0.7, 2.0))) for name in names
        ),
        filters=filters,
        method=method.value,
        top_n=rng.choice((1, 1, 2, 3, 5, 9, 17, 100, -1)),
    )


def random_args(rng: random.Random, name: str) -> Mapping[str, object]:
    choices: list[Mapping[str, object]] = [{}]
    if name.endswith("_weighted_average"):
        some = rng.sample(FACTORS, rng.randint(0, 5))
        if "cpu_usage" in some and "cpu_util" in some:
            some.remove("cpu_usage")
        weights = {factor: rng.choice((0.0, 1.0, 2.5)) for factor in some}
        choices += [{"factors": some}, {"factors": weights}]
    if name == "image_score":
        weights = {factor: rng.choice((0.0, 1.0, 2.5)) for factor in ("image_id", "template_id")}
        choices += [{"factors": ["image_id"]}, {"factors": weights}]
    if name == "resource_fit_score":
        choices += [{"imbalance_penalty": 0.0}, {"imbalance_penalty": 2.0}]
    if name == "create_concurrency_score":
        choices += [{"include_local_create": False}]
    return rng.choice(choices)
