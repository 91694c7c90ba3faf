"""The legacy Profile ranks and picks as CubeMaster's formulas, written out node by node, say."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import pytest
from tests.unit.builders import GIB, NodeFacts, a_node, a_request, a_snapshot
from tests.unit.core.reference import Policy as GuardsOnly
from tests.unit.core.reference import first_failing_stage

from cubesched.api.v1alpha1 import Legacy
from cubesched.core.cycle import decide
from cubesched.core.decision import Placed
from cubesched.core.inspecting import inspect
from cubesched.core.request import Request
from cubesched.policy.legacy import legacy_profile

MIB = 1 << 20
Block = Mapping[str, Any]
FACTORS = (
    "mvm_num",
    "quota_cpu_usage",
    "quota_mem_usage",
    "cpu_util",
    "mem_usage",
    "cpu_load",
    "realtime_create_num",
    "local_create_num",
    "data_disk_usage",
    "storage_disk_usage",
    "sys_disk_usage",
    "create_concurrent_limit",
    "metric_update",
    "metric_local_update_at",
)
REQUESTED = ("req_cpu", "req_mem")


# CubeMaster's formulas


def factor(name: str, node: NodeFacts) -> float:
    used_limit = {
        "mvm_num": (node.sandboxes, node.sandbox_limit),
        "quota_cpu_usage": (node.cpu_used_millis, node.cpu_limit_millis),
        "quota_mem_usage": (node.memory_used_bytes, node.memory_limit_bytes),
        "cpu_util": (node.cpu_util_percent, 100),
        "mem_usage": (node.memory_really_used_bytes, node.memory_capacity_bytes),
        "cpu_load": (node.cpu_load, node.cpus),
        "realtime_create_num": (node.creating, node.create_limit),
        "local_create_num": (node.creating_ledger, node.create_limit),
        "data_disk_usage": (node.data_disk_percent, 100),
        "storage_disk_usage": (node.storage_disk_percent, 100),
        "sys_disk_usage": (node.system_disk_percent, 100),
    }
    if name in used_limit:
        used, limit = used_limit[name]
        return 100.0 - 100.0 * used / limit
    return {
        "create_concurrent_limit": float(min(node.create_limit, 100)),
        "metric_update": 1.0,
        "metric_local_update_at": 1.0,
        "req_cpu": 0.0,
        "req_mem": 0.0,
    }[name]


def average(
    conf: Block, weights: Block, node: NodeFacts, request: Request, *, adds_requested: bool
) -> float | None:
    enabled = conf["enableWeightFactors"]
    divisor = sum(weights.get(name, 0.0) for name in enabled)
    if divisor == 0:
        return None
    total = sum(factor(name, node) * weights.get(name, 0.0) for name in enabled)
    if adds_requested:
        cpu = node.cpu_limit_millis - node.cpu_used_millis - request.cpu_millis
        memory = node.memory_limit_bytes - node.memory_used_bytes - request.memory_bytes
        total += cpu / node.cpu_limit_millis * weights.get("req_cpu", 0.0)
        total += memory / node.memory_limit_bytes * weights.get("req_mem", 0.0)
    return float(total / divisor)


def images(
    conf: Block, weights: Block, node: NodeFacts, request: Request, nodes: Sequence[NodeFacts]
) -> float | None:
    enabled = conf["enableWeightFactors"]
    divisor = sum(weights.get(name, 0.0) for name in enabled)
    if divisor == 0:
        return None
    total = 0.0
    if "template_id" in enabled and request.template_id in node.templates:
        total += 100.0 * weights.get("template_id", 0.0)
    if "image_id" in enabled and request.images:
        spread = sum(
            node.images.get(image, 0) * sum(image in other.images for other in nodes) / len(nodes)
            for image in request.images
        )
        most = 80_000 * MIB * len(request.images)
        clamped = min(max(spread, 23 * MIB), most)
        total += 100 * (clamped - 23 * MIB) / (most - 23 * MIB) * weights.get("image_id", 0.0)
    return float(total / divisor)


def scores_of(
    block: Block, feasible: Sequence[NodeFacts], request: Request, nodes: Sequence[NodeFacts]
) -> list[float] | None:
    """None where nothing is rated."""
    score = block["score"]
    totals, whole = [0.0] * len(feasible), 0.0
    for name in score["enableScorers"]:
        conf, weights = score["pluginConf"][name], score["resourceWeights"]
        if conf.get("disable") or not conf.get("weight"):
            continue
        rated = [
            images(conf, weights, node, request, nodes)
            if name == "image_score"
            else average(
                conf,
                weights,
                node,
                request,
                adds_requested=name == "real_time_weighted_average",
            )
            for node in feasible
        ]
        if None in rated:
            continue
        whole += conf["weight"]
        totals = [
            total + conf["weight"] * (one or 0.0) for total, one in zip(totals, rated, strict=True)
        ]
    if not whole:
        return None
    return adjusted(block["postscore"], feasible, [total / whole for total in totals])


def adjusted(post: Block, feasible: Sequence[NodeFacts], scores: list[float]) -> list[float]:
    if post.get("disable"):
        return scores
    mean, weights = sum(scores) / len(scores), post["resourceWeights"]
    factor_of_both = post.get("paramFactor", 0.015)
    result = list(scores)
    for place, node in enumerate(feasible):
        if node.name in post["activeWhiteList"]:
            result[place] += mean * weights.get("active_whitelist", 0.0) * factor_of_both
        if node.name in post["negativeWhiteList"]:
            share = weights.get("negative_whitelist", 0.0) * factor_of_both
            result[place] -= result[place] * share
    return result


def pick(block: Block, scores: Sequence[float] | None, size: int, request: Request) -> int:
    """Ties and draws are ours: CubeMaster's are not reproducible."""
    digest = blake2b(f"{request.uid}/{request.attempt}".encode(), digest_size=16).digest()
    start = int.from_bytes(digest[:8], "big") % size
    fraction = (int.from_bytes(digest[8:], "big") >> 11) / 2**53
    order = list(range(size))
    if scores is not None:
        order.sort(key=lambda place: (-round(scores[place], 9), (place - start) % size))
    number = block["prioritySelectNum"]
    best = order if number < 0 else order[:number]
    total = sum(scores[place] for place in best) if scores else 0.0
    if block["leastSelectName"] == "random" or not scores or not total:
        return best[int(fraction * len(best))]
    reached = 0.0
    for place in best:
        reached += scores[place]
        if reached > fraction * total:
            return place
    return best[-1]


# The comparison


def random_block(rng: random.Random) -> dict[str, Any]:
    weighed = rng.sample([*FACTORS, *REQUESTED], rng.randint(1, 10))
    weights = {name: rng.choice((0.0, 1.0, 2.0, 0.3, 40.0)) for name in weighed}
    weights |= {"template_id": rng.choice((0.0, 1.0, 3.0)), "image_id": rng.choice((0.0, 2.0))}
    averages = ("real_time_weighted_average", "multi_factor_weighted_average")
    enabled = rng.sample([*averages, "image_score"], rng.choice((0, 1, 1, 2, 3)))
    conf: dict[str, Any] = {
        name: {
            "weight": rng.choice((0.0, 1.0, 1.0, 0.5, 3.0)),
            "enableWeightFactors": rng.sample(weighed, rng.randint(0, len(weighed))),
            "disable": rng.random() < 0.1,
        }
        for name in averages
    }
    conf["image_score"] = {
        "weight": rng.choice((1.0, 0.2)),
        "enableWeightFactors": rng.choice((["template_id"], ["template_id", "image_id"], [])),
    }
    names = [f"node-{number:03}" for number in range(40)]
    return {
        "filter": {"enableFilters": rng.sample(["cpu", "mem", "disk", "template_locality"], 2)},
        "score": {"enableScorers": enabled, "resourceWeights": weights, "pluginConf": conf},
        "postscore": {
            "disable": rng.random() < 0.2,
            "paramFactor": rng.choice((0.015, 0.5)),
            "resourceWeights": {"active_whitelist": 2.0, "negative_whitelist": 1.0},
            "activeWhiteList": rng.sample(names, rng.choice((0, 0, 3))),
            "negativeWhiteList": rng.sample(names, rng.choice((0, 0, 3))),
        },
        "prioritySelectNum": rng.choice((-1, 1, 1, 3, 20)),
        "leastSelectName": rng.choice(("random", "rw")),
    }


def random_node(rng: random.Random, name: str) -> NodeFacts:
    ledger = rng.randint(0, 6)
    creating = rng.randint(ledger, 9)
    return a_node(
        name,
        cpu_used_millis=rng.randint(0, 63_000),
        memory_used_bytes=rng.randint(0, 125_000) * MIB,
        sandboxes=rng.randint(0, 900),
        create_limit=rng.choice((8, 50, 250)),
        creating=creating,
        creating_ledger=ledger,
        creating_reported=creating,
        cpu_util_percent=rng.uniform(0, 90),
        cpu_load=rng.uniform(0, 64),
        memory_really_used_bytes=float(rng.randint(0, 110_000) * MIB),
        data_disk_percent=rng.uniform(0, 82),
        storage_disk_percent=rng.uniform(0, 82),
        system_disk_percent=rng.uniform(0, 82),
        templates=("t-1",) if rng.random() < 0.4 else (),
        images={"i-1": 3 * GIB} if rng.random() < 0.4 else {},
    )


def random_fleet(rng: random.Random) -> list[NodeFacts]:
    nodes = [random_node(rng, f"node-{number:03}") for number in range(rng.randint(1, 40))]
    if rng.random() < 0.3:  # ties
        nodes = [replace(nodes[0], name=node.name) for node in nodes]
    return nodes


@pytest.mark.parametrize("seed", range(20))
def test_ranks_and_picks_are_those_of_cubemaster(seed: int) -> None:
    rng = random.Random(f"legacy {seed}")
    placements = rated = 0
    for number in range(60):
        nodes, block = random_fleet(rng), random_block(rng)
        request = a_request(
            f"uid-{seed}-{number}",
            template_id=rng.choice(("", "t-1", "t-2")),
            allow_non_local_template=rng.random() < 0.7,
            images=rng.choice(((), ("i-1",), ("i-1", "i-2"))),
        )
        pipeline = legacy_profile(Legacy.model_validate(block)).pipeline
        fleet = a_snapshot(nodes)
        feasible = [node for node in nodes if not first_failing_stage(node, request, GuardsOnly())]

        decision = decide(fleet, request, pipeline)

        if not feasible:
            assert not isinstance(decision, Placed)
            continue
        scores = scores_of(block, feasible, request, nodes)
        chosen = feasible[pick(block, scores, len(feasible), request)]
        assert isinstance(decision, Placed)
        assert decision.node == chosen.name
        placements += 1
        if scores is not None and max(scores) > 0:
            rated += 1
            ours = inspect(fleet, request, pipeline).scores
            scale = ours.max() / max(scores)
            assert ours.tolist() == pytest.approx([score * scale for score in scores], abs=1e-9)
            assert ours.min() >= 0.0
            assert ours.max() <= 100.0
    assert placements > 30
    assert rated > 12
