"""What only running nodes show to be odd: as a condition, and before it is applied."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.operating import Operating, wait_until

FILTER = {"name": "rack", "type": "expr", "expr": "'rack' in node.labels"}
PROFILE = {
    "apiVersion": "cubesched.io/v1alpha1",
    "kind": "SchedulerProfile",
    "metadata": {"name": "racks"},
    "spec": {"default": True, "filters": [FILTER]},
}
CONFIG = {
    "apiVersion": "cubesched.io/v1alpha1",
    "kind": "SchedulerConfig",
    "metadata": {"name": "default"},
    "spec": {"overcommit": {"cpu": 2}},
}


def warnings(operating: Operating, kind: str, name: str) -> str:
    """Read the message of the condition, empty without it."""
    found = operating.get(kind, name).get("status", {}).get("conditions", ())
    return next((str(c["message"]) for c in found if c["type"] == "Warnings"), "")


def lint(operating: Operating, *arguments: str) -> subprocess.CompletedProcess[str]:
    access = operating.cluster.access("cubesched:somebody", "cubesched:viewers")
    return subprocess.run(
        [sys.executable, "-m", "cubesched", "lint", "-", "--cluster", *access, *arguments],
        input=yaml.safe_dump_all([PROFILE, CONFIG]),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "operator")},
    )


def write(operating: Operating, name: str, **spec: Any) -> None:
    """Change a node's spec as an administrator does."""
    patch = yaml.safe_dump({"spec": spec})
    operating.kubectl("patch", "sbn", name, "--type=merge", "-p", patch)


def test_live_nodes_show_what_is_odd_before_and_after_it_is_applied(operating: Operating) -> None:
    operating.start_nodes(2, "--cpu", "8", "--memory", "64Gi")
    names = [node["metadata"]["name"] for node in operating.items("sbn")]
    write(operating, names[0], quota={"cpu": "32"})

    redis = ("--redis-url", operating.cluster.redis_url)
    before = lint(operating, *redis)
    assert "racks: FilterPassesNoNode: spec.filters[0]: no live node passes it" in before.stdout
    assert (
        "default: OvercommitTwice: spec.overcommit.cpu: 1 nodes have a cpu quota" in before.stdout
    )
    assert (before.returncode, before.stderr) == (0, "")
    assert lint(operating, *redis, "--strict").returncode == 1

    operating.start_replica()
    operating.apply(PROFILE, CONFIG)
    wait_until(lambda: "no live node passes it" in warnings(operating, "sprof", "racks"))
    wait_until(lambda: names[0] in warnings(operating, "sconf", "default"))

    operating.kubectl("label", "sbn", names[1], "rack=r1")
    write(operating, names[0], quota={"cpu": "8"})
    wait_until(lambda: not warnings(operating, "sprof", "racks"), seconds=60)
    wait_until(lambda: not warnings(operating, "sconf", "default"), seconds=60)
    assert lint(operating, *redis, "--strict").returncode == 0


def test_without_redis_a_line_says_what_was_not_looked_at(operating: Operating) -> None:
    operating.start_nodes(1, "--cpu", "8", "--memory", "64Gi")

    answer = lint(operating, "--redis-url", "redis://127.0.0.1:1/0")

    assert "FilterPassesNoNode" in answer.stdout
    assert answer.stderr.startswith("cubesched: no node report was read: ")
    assert answer.stderr.count("\n") == 1
