"""The auditor as a program of its own, under a viewer's certificate."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.operating import Kubectl

from cubesched.local import LocalControlPlane

GIB = 1 << 30


def audit(control_plane: LocalControlPlane, *flags: str) -> tuple[int, dict[str, Any]]:
    viewer = control_plane.client_kubeconfig("auditor", ["cubesched:viewers"])
    argv = [sys.executable, "-m", "cubesched.local.auditor", "--kubeconfig", str(viewer), *flags]
    done = subprocess.run(
        argv,
        cwd=Path(__file__).parents[2] / "operator",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize(("cpu_millis", "code"), [(2000, 0), (2001, 1)], ids=["full", "over"])
def test_it_tells_a_full_node_from_an_over_committed_one(
    control_plane: LocalControlPlane,
    kubectl: Kubectl,
    fresh_namespace: str,
    tmp_path: Path,
    cpu_millis: int,
    code: int,
) -> None:
    node = f"n-{uuid.uuid4().hex[:8]}"
    base = {"apiVersion": "cubesched.io/v1alpha1"}
    spec = {"capacity": {"cpu": "4", "memory": "8Gi"}}
    machine = {**base, "kind": "SandboxNode", "metadata": {"name": node}, "spec": spec}
    kubectl("create", "-f", "-", input=json.dumps(machine))
    for name in ("a", "b"):
        metadata = {"name": name, "namespace": fresh_namespace}
        asked = {"resources": {"cpu": "2", "memory": "1Gi"}}
        request = {**base, "kind": "SandboxRequest", "metadata": metadata, "spec": asked}
        kubectl("create", "-f", "-", input=json.dumps(request))
        amounts = {"cpuMillis": cpu_millis if name == "b" else 2000, "memoryBytes": GIB}
        reservation = {"id": uuid.uuid4().hex, "replica": "by-hand", **amounts}
        status = {"phase": "Bound", "nodeName": node, "reservation": reservation}
        patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
        kubectl("-n", fresh_namespace, "patch", "sbr", name, *patch)
    log = tmp_path / "log"

    found, summary = audit(control_plane, "--duration", "1s", "--agent-log", str(log))

    kubectl("-n", fresh_namespace, "delete", "sbr", "--all")
    kubectl("delete", "sbn", node)
    assert found == code, summary
    assert summary["over_committed_nodes"] == code
    assert summary["synced"]
    assert summary["ran_twice"] == 0
