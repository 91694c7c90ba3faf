"""Each recipe of the cookbook runs as it stands, and places as its page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.operating import Operating, a_request, wait_until

PAGE = Path(__file__).parents[2] / "docs" / "policy-cookbook.md"
RECIPE = re.compile(r"^## (.+?)\n.*?^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RECIPES = dict(RECIPE.findall(PAGE.read_text()))


def label(operating: Operating, node: str, **labels: str) -> None:
    """Label a node."""
    operating.kubectl("label", "sbn", node, *(f"{key}={value}" for key, value in labels.items()))


def follow(operating: Operating, title: str, *, risky: frozenset[str] = frozenset()) -> None:
    """Apply a recipe and wait until it runs without a warning; `risky` Profiles accept a risk."""
    operating.kubectl("apply", "-f", "-", input=RECIPES[title])
    for manifest in yaml.safe_load_all(RECIPES[title]):
        kind, name = manifest["kind"].lower(), manifest["metadata"]["name"]
        wait_until(partial(is_active, operating, kind, name), what=f"{name} is Active")
        said = conditions(operating, kind, name)
        assert "Warnings" not in said, operating.get(kind, name)["status"]
        assert ("RiskAccepted" in said) == (name in risky)


def is_active(operating: Operating, kind: str, name: str) -> bool:
    return conditions(operating, kind, name).get("Active") == "True"


def conditions(operating: Operating, kind: str, name: str) -> dict[str, str]:
    found = operating.get(kind, name).get("status", {}).get("conditions", ())
    return {condition["type"]: condition["status"] for condition in found}


def placed(operating: Operating, *requests: dict[str, Any]) -> list[str]:
    """Apply requests and return the nodes that took them, in the order of the requests."""
    operating.apply(*requests)
    names = [request["metadata"]["name"] for request in requests]

    def all_taken() -> bool:
        taken = {item["metadata"]["name"]: is_bound(item) for item in operating.items()}
        return all(taken[name] for name in names)

    wait_until(all_taken, what=f"nodes take {', '.join(names)}")
    return [str(operating.get("sbr", name)["status"]["nodeName"]) for name in names]


def is_bound(item: dict[str, Any]) -> bool:
    return item.get("status", {}).get("phase") in {"Bound", "Starting", "Running"}


def waits(operating: Operating, request: dict[str, Any]) -> str:
    """Apply a request that finds no node and return what it is told."""
    name = request["metadata"]["name"]
    operating.apply(request)
    wait_until(lambda: operating.reason(name) == "Unschedulable", what=f"{name} was told to wait")
    told = operating.get("sbr", name)["status"]["conditions"]
    return next(str(c["message"]) for c in told if c["type"] == "Scheduled")


def judged(operating: Operating, name: str) -> dict[str, dict[str, Any]]:
    """Return what `cubesched explain` says of each node for a request."""
    access = operating.cluster.access("cubesched:somebody", "cubesched:viewers")
    command = [sys.executable, "-m", "cubesched", "explain", name, "-o", "json", *access]
    command += ["--redis-url", operating.cluster.redis_url]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    return {node["name"]: node for node in json.loads(answer.stdout)["nodes"]}


def on(node: str, workload: str, name: str, **more: Any) -> dict[str, Any]:
    """Return a request that only this node can take."""
    return a_request(name, labels={"workload": workload}, templateNodeScope=[node], **more)


def some(count: int, prefix: str = "r", **more: Any) -> list[dict[str, Any]]:
    return [a_request(f"{prefix}{number}", **more) for number in range(count)]


def test_every_recipe_is_tried_here() -> None:
    slugs = {re.sub(r"\W+", "_", title.replace("'", "")).lower() for title in RECIPES}

    tried = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert len(RECIPES) >= 10
    assert slugs <= tried
    assert PAGE.read_text().count("```yaml") == len(RECIPES)


def test_spread_bursts(operating: Operating) -> None:
    operating.start_nodes(4)
    operating.start_replica()
    follow(operating, "Spread bursts")

    nodes = placed(operating, *some(12, labels={"workload": "burst"}))

    assert set(Counter(nodes).values()) == {3}


def test_pack_for_cost(operating: Operating) -> None:
    operating.start_nodes(4, "--cpu", "8", "--memory", "32Gi")
    operating.start_replica()
    follow(operating, "Pack for cost")

    (first,) = set(placed(operating, *some(6, memory="4Gi")))
    nodes = placed(operating, *some(3, "more", memory="4Gi"))

    assert Counter(nodes)[first] == 2, "it takes two more, then another node is begun"
    assert len(set(nodes)) == 2


def test_prefer_warm_templates(operating: Operating) -> None:
    size = ("--cpu", "4", "--memory", "32Gi")
    operating.start_nodes(3, *size, "--templates", "py312", "--template-share", "1", prefix="warm-")
    operating.start_nodes(3, *size, prefix="cold-")
    operating.start_replica()
    follow(operating, "Prefer warm templates")
    wants: dict[str, Any] = {"labels": {"workload": "warm"}, "templateID": "py312", "cpu": "2"}

    nodes = placed(operating, *some(6, allowNonLocalTemplate=True, **wants))
    (elsewhere,) = placed(operating, a_request("e", allowNonLocalTemplate=True, **wants))

    assert Counter(nodes) == {"warm-000": 2, "warm-001": 2, "warm-002": 2}
    assert elsewhere.startswith("cold-")
    assert "3 no local template" in waits(operating, a_request("strict", **wants))


def test_stay_off_busy_nodes(operating: Operating) -> None:
    operating.start_nodes(2, "--create-delay", "120s")
    operating.start_replica()
    follow(operating, "Stay off busy nodes")
    placed(operating, *(on("node-000", "agents", f"a{n}") for n in range(8)))

    nodes = placed(operating, *some(8, labels={"workload": "agents"}))
    told = waits(operating, a_request("late", labels={"workload": "agents"}))

    assert set(nodes) == {"node-001"}
    assert "2 excluded by few-creates" in told


def test_cubesandboxs_burst(operating: Operating) -> None:
    operating.start_nodes(3, "--cpu", "8", "--quota-cpu", "16")
    operating.start_replica()
    follow(operating, "CubeSandbox's burst")
    wants: dict[str, Any] = {"labels": {"workload": "burst"}}
    placed(operating, on("node-000", "burst", "heavy", cpu="8"))
    placed(operating, *(on("node-001", "burst", f"a{n}") for n in range(2)))

    placed(operating, a_request("r", **wants))
    wait_until(lambda: score_of(operating, "r", "node-000") == 20.0, what="node-000 is busy")
    assert score_of(operating, "r", "node-001") == 80.0
    assert operating.get("sbr", "r")["status"]["nodeName"] == "node-002", "it has no sandbox yet"

    operating.apply(a_request("huge", cpu="17", **wants))
    wait_until(lambda: operating.phase("huge") == "Failed", what="huge is given up")
    assert operating.reason("huge") == "NoCandidate"


def score_of(operating: Operating, name: str, node: str) -> float:
    return float(judged(operating, name)[node]["score"])


def parts_of(operating: Operating, name: str, node: str) -> dict[str, float]:
    """Return the score of each plugin for a node."""
    return {part["plugin"]: part["score"] for part in judged(operating, name)[node]["parts"]}


def test_prefer_the_clients_zone(operating: Operating) -> None:
    operating.start_nodes(4, "--cpu", "4", "--memory", "16Gi", "--zones", "z1,z2")
    operating.start_replica()
    follow(operating, "Prefer the client's zone")
    wants: dict[str, Any] = {"labels": {"zone": "z2"}, "cpu": "2"}

    nodes = placed(operating, *some(4, **wants))
    (overflow,) = placed(operating, a_request("overflow", **wants))
    placed(operating, a_request("anywhere"))

    assert Counter(nodes) == {"node-001": 2, "node-003": 2}
    assert overflow in {"node-000", "node-002"}


def test_keep_gpu_nodes_free(operating: Operating) -> None:
    operating.start_nodes(3, "--cpu", "4", "--memory", "16Gi")
    label(operating, "node-001", gpu="a100")
    label(operating, "node-002", gpu="false")
    operating.start_replica()
    follow(operating, "Keep GPU nodes free")

    nodes = placed(operating, *some(8))
    told = waits(operating, a_request("ordinary"))
    (special,) = placed(operating, a_request("special", nodeSelector={"gpu": "a100"}))

    assert Counter(nodes) == {"node-000": 4, "node-002": 4}
    assert "1 kept for scarce resources" in told
    assert special == "node-001"


def test_mind_the_disks(operating: Operating) -> None:
    operating.start_nodes(2, "--sandboxes", "4")
    operating.start_replica()
    follow(operating, "Mind the disks")
    heavy: dict[str, Any] = {"cpu": "10", "memory": "40Gi"}
    placed(operating, *(on("node-000", "snapshots", f"a{n}", **heavy) for n in range(3)))

    wait_until(
        lambda: parts_of(operating, "a0", "node-000")["free-disk"] == 60.0,
        what="the disk of node-000 is reported 40 percent full",
    )
    (node,) = placed(operating, a_request("r", labels={"workload": "snapshots"}))

    assert node == "node-001", "though packing prefers the other"
    assert parts_of(operating, "r", "node-000")["most_allocated"] > 40


def test_canary_nodes(operating: Operating) -> None:
    operating.start_nodes(3, "--cpu", "4", "--memory", "16Gi")
    label(operating, "node-000", track="canary")
    label(operating, "node-001", track="stable")
    operating.start_replica()
    follow(operating, "Canary nodes", risky=frozenset({"canary"}))
    wants: dict[str, Any] = {"labels": {"workload": "canary"}, "cpu": "2"}

    canaries = placed(operating, *some(2, "c", **wants))
    (beyond,) = placed(operating, a_request("beyond", **wants))
    ordinary = placed(operating, *some(6))

    assert set(canaries) == {"node-000"}
    assert beyond == "node-002", "it cannot be judged, so it stays"
    assert operating.metric("a", "cubesched_plugin_failures_total", plugin="on-canaries") > 0
    assert set(ordinary) == {"node-001", "node-002"}


def test_two_instance_types(operating: Operating) -> None:
    operating.start_nodes(3)
    operating.start_replica()
    follow(operating, "Two instance types")

    batch = set(placed(operating, *some(6, "b", instanceType="batch", cpu="4")))
    live = placed(operating, *some(2, "i", instanceType="interactive-small"))

    assert len(batch) == 1
    assert len(set(live)) == 2
    assert not batch & set(live)
    operating.apply(a_request("plain"))
    wait_until(lambda: operating.reason("plain") == "NoProfile", what="no route takes cubebox")


def test_a_teams_own_nodes(operating: Operating) -> None:
    operating.start_nodes(3, "--cpu", "4", "--memory", "16Gi")
    label(operating, "node-001", team="blue")
    operating.start_replica()
    follow(operating, "A team's own nodes")

    blue = placed(operating, *some(4, "b", labels={"team": "blue"}))
    told = waits(operating, a_request("one-more", labels={"team": "blue"}))
    others = placed(operating, *some(8))

    assert set(blue) == {"node-001"}
    assert set(others) == {"node-000", "node-002"}
    assert "2 node labels not matched" in told
