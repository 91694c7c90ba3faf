"""SandboxRequests, SandboxNodes and reports as the servers would hand them over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cubesched.fleet.cubemaster_layout import FIELDS, decode_hashes
from cubesched.fleet.metrics_layout import Decoded, NodeReport, decode_all, encode

GIB = 1 << 30
PLACED = ("Reserved", "Bound", "Starting", "Running", "Paused", "Evicting")


def as_json(value: Any) -> bytes:
    """Return the object as the server sends it."""
    return json.dumps(value).encode()


def a_reservation(**fields: Any) -> dict[str, Any]:
    """Return a status.reservation of 1 cpu and 1 GiB."""
    return {
        "id": "id-1",
        "replica": "replica-a",
        "time": "2026-01-01T00:00:00Z",
        "cpuMillis": 1000,
        "memoryBytes": GIB,
        "diskBytes": 0,
        **fields,
    }


def a_request_dict(
    name: str = "r1",
    *,
    version: int = 1,
    phase: str = "",
    node: str = "",
    uid: str = "",
    namespace: str = "default",
    generation: int = 1,
    created: str = "2026-01-01T00:00:00Z",
    labels: Mapping[str, str] | None = None,
    template: str = "",
    cpu: Any = "1",
    memory: Any = "1Gi",
    spec: Mapping[str, Any] | None = None,
    reservation: Mapping[str, Any] | None = None,
    **status: Any,
) -> dict[str, Any]:
    """Return a SandboxRequest; a placed one has a reservation of 1 cpu and 1 GiB, or that given."""
    held: dict[str, Any] = dict(status)
    if phase:
        held["phase"] = phase
    if node:
        held["nodeName"] = node
        held["reservation"] = a_reservation(**(reservation or {}))
    wanted: dict[str, Any] = {"resources": {"cpu": cpu, "memory": memory}, **(spec or {})}
    if template:
        wanted["templateID"] = template
    return {
        "apiVersion": "cubesched.io/v1alpha1",
        "kind": "SandboxRequest",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "generation": generation,
            "creationTimestamp": created,
            **({"labels": dict(labels)} if labels else {}),
        },
        "spec": wanted,
        **({"status": held} if held else {}),
    }


def a_request_object(name: str = "r1", **fields: Any) -> bytes:
    """Return `a_request_dict` as JSON."""
    return as_json(a_request_dict(name, **fields))


def a_node_object(
    name: str = "n1",
    *,
    uid: str = "",
    version: int = 1,
    cpu: Any = "8",
    memory: Any = "16Gi",
    labels: Mapping[str, str] | None = None,
    templates: Sequence[str] = (),
    images: Mapping[str, int] | None = None,
    ready: bool = True,
    addresses: Sequence[tuple[str, str]] = (),
    spec: Mapping[str, Any] | None = None,
) -> bytes:
    """Return a SandboxNode that is Ready, with 8 cpus and 16 GiB."""
    return as_json(
        {
            "metadata": {
                "name": name,
                "uid": uid or f"uid-{name}",
                "resourceVersion": str(version),
                **({"labels": dict(labels)} if labels else {}),
            },
            "spec": {"capacity": {"cpu": cpu, "memory": memory}, **(spec or {})},
            "status": {
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
                "templates": list(templates),
                "images": [{"name": n, "sizeBytes": size} for n, size in (images or {}).items()],
                "addresses": [{"type": kind, "address": at} for kind, at in addresses],
            },
        }
    )


def reports(stamp_ms: int, *names: str, **fields: Any) -> Decoded:
    """Return one report of each of these nodes, all alike."""
    return decode_all(
        {
            name.encode(): encode(
                NodeReport(**{"node_uid": f"uid-{name}", "stamp_ms": stamp_ms, **fields})
            )
            for name in names
        }
    )


def hashes(values: Mapping[str, Mapping[str, Any]]) -> Decoded:
    """Return the reports of these nodes in CubeMaster's layout: field to value, all as text."""
    answers = [
        [None if name not in held else str(held[name]).encode() for name in FIELDS]
        for held in values.values()
    ]
    return decode_hashes(list(values), answers)
