"""What the demo asks for: a thousand sandboxes of three kinds, and some that cannot fit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from cubesched.api import API_VERSION, REQUESTS

NAMESPACE = "demo"
TEMPLATES = ("py312-v4", "node22-v1")
IMPOSSIBLE_SHARE = 0.04
PICKY = "picky-"
"""Names of requests that different nodes reject for different reasons: worth describing."""
_SIZES = (("500m", "1Gi"), ("1", "2Gi"), ("2", "4Gi"), ("4", "8Gi"))


def requests(count: int, *, seed: int) -> Iterator[dict[str, Any]]:
    """Yield `count` SandboxRequests, the same ones for the same seed."""
    dice = random.Random(seed)  # noqa: S311 - a demo, not a secret
    impossible = max(3, int(count * IMPOSSIBLE_SHARE))
    every = max(1, count // impossible)
    for number in range(count):
        if number % every == 0 and number // every < impossible:
            yield _impossible(number)
        else:
            yield _placeable(number, dice)


def _placeable(number: int, dice: random.Random) -> dict[str, Any]:
    kind = ("burst", "agent", "job")[number % 3]
    if kind == "burst":
        return _request(f"burst-{number:04}", "1", "2Gi", {"workload": "burst_balance"})
    if kind == "agent":
        labels = {"workload": "template_reuse"}
        return _request(f"agent-{number:04}", "1", "2Gi", labels, templateID=dice.choice(TEMPLATES))
    cpu, memory = dice.choice(_SIZES)
    return _request(f"job-{number:04}", cpu, memory, {})


def _impossible(number: int) -> dict[str, Any]:
    """Ask for what no node of the demo offers, in one of three ways."""
    kind = number % 3
    if kind == 0:
        return _request(f"huge-{number:04}", "96", "2Gi", {})
    if kind == 1:
        return _request(f"no-template-{number:04}", "1", "2Gi", {}, templateID="gpu-v1")
    zone = {"topology.kubernetes.io/zone": "z9"}
    template = TEMPLATES[0]
    return _request(f"{PICKY}{number:04}", "12", "2Gi", {}, templateID=template, nodeSelector=zone)


def _request(
    name: str, cpu: str, memory: str, labels: dict[str, str], **spec: Any
) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": REQUESTS.kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"resources": {"cpu": cpu, "memory": memory}, **spec},
    }
