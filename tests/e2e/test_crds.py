"""The CRDs as the API server takes them, and the objects a user would write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "deploy" / "examples"
KINDS = ("schedulerprofiles", "schedulerconfigs", "sandboxnodes", "sandboxrequests")

Kubectl = Callable[..., CompletedProcess[str]]

ONE_OF_EACH = """
apiVersion: cubesched.io/v1alpha1
kind: SchedulerConfig
metadata: {name: default}
spec:
  profileRouteLabelKeys: [workload]
  guards: {maxCpuUtilPercent: 80, createConcurrencyLimit: 100, metricsMaxAge: 60s}
---
apiVersion: cubesched.io/v1alpha1
kind: SchedulerProfile
metadata: {name: burst}
spec:
  order: 10
  route: {labels: {workload: burst}}
  filters:
  - {name: node_labels, args: {matchLabels: {topology.kubernetes.io/zone: z1}}}
  scores:
  - {name: least_allocated, weight: 2}
  - {name: resource_fit_score, weight: 1, args: {imbalance_penalty: 0.5}}
  selection: {topN: 5, method: spread}
  failure: {score: default-score, noCandidate: backoff}
---
apiVersion: cubesched.io/v1alpha1
kind: SchedulerProfile
metadata: {name: everything-else}
spec:
  default: true
  scores: [{name: most_allocated, weight: 1}]
  selection: {topN: 1, method: highest}
---
apiVersion: cubesched.io/v1alpha1
kind: SandboxNode
metadata:
  name: node-17
  labels: {topology.kubernetes.io/zone: z1}
spec:
  instanceType: cubebox
  capacity: {cpu: "64", memory: 256Gi, systemDisk: 2Ti}
  quota: {cpu: "128", memory: 320Gi, sandboxes: 400, createConcurrency: 50}
---
apiVersion: cubesched.io/v1alpha1
kind: SandboxRequest
metadata:
  name: build-4711
  labels: {workload: burst, app: builder}
spec:
  instanceType: cubebox
  templateID: py312-v4
  resources: {cpu: "2", memory: 4Gi}
"""
A_REQUEST = ONE_OF_EACH.rsplit("---", maxsplit=1)[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_crd_is_taken_without_a_warning(kubectl: Kubectl, kind: str) -> None:
    answer = kubectl("apply", "--dry-run=server", "--server-side", "--force-conflicts",
                     "-f", str(ROOT / "crds" / f"{kind}.yaml"))  # fmt: skip

    assert answer.stderr == ""


def test_one_object_of_each_kind_is_taken(kubectl: Kubectl, fresh_namespace: str) -> None:
    answer = kubectl("apply", "--dry-run=server", "-n", fresh_namespace, "-f", "-",
                     input=ONE_OF_EACH)  # fmt: skip

    assert answer.stdout.count("created (server dry run)") == 5
    assert answer.stderr == ""


def test_a_new_request_is_pending_whatever_status_it_brings(
    kubectl: Kubectl, fresh_namespace: str
) -> None:
    body = {
        "apiVersion": "cubesched.io/v1alpha1",
        "kind": "SandboxRequest",
        "metadata": {"name": "r", "namespace": fresh_namespace},
        "spec": {"resources": {"cpu": 1, "memory": "1Gi"}},
        "status": {"phase": "Failed", "nodeName": "n1"},
    }

    kubectl("create", "-f", "-", input=json.dumps(body))

    stored = json.loads(kubectl("get", "sbr", "r", "-n", fresh_namespace, "-o", "json").stdout)
    assert stored["status"] == {"phase": "Pending", "attempts": 0}


def test_get_shows_the_columns_of_a_request(kubectl: Kubectl, fresh_namespace: str) -> None:
    kubectl("create", "-n", fresh_namespace, "-f", "-", input=A_REQUEST)

    heading = kubectl("get", "sbr", "-n", fresh_namespace).stdout.splitlines()[0]
    wide = kubectl("get", "sbr", "-n", fresh_namespace, "-o", "wide").stdout.splitlines()[0]

    assert heading.split() == ["NAME", "PHASE", "PROFILE", "NODE", "REASON", "ATTEMPTS", "AGE"]
    assert {"CPU", "MEM", "TEMPLATE", "SCORE", "REVISION"} <= set(wide.split())


def test_a_placed_request_is_found_by_its_node(kubectl: Kubectl, fresh_namespace: str) -> None:
    kubectl("create", "-n", fresh_namespace, "-f", "-", input=A_REQUEST)

    here = kubectl("get", "sbr", "-n", fresh_namespace, "-o", "name",
                   "--field-selector", "status.nodeName=,status.phase=Pending")  # fmt: skip
    there = kubectl("get", "sbr", "-n", fresh_namespace, "-o", "name",
                    "--field-selector", "status.nodeName=node-17")  # fmt: skip

    assert here.stdout.split() == ["sandboxrequest.cubesched.io/build-4711"]
    assert there.stdout == ""


def a_profile_with(**entry: object) -> str:
    """A Profile that lists one filter."""
    body = {
        "apiVersion": "cubesched.io/v1alpha1",
        "kind": "SchedulerProfile",
        "metadata": {"name": "typed"},
        "spec": {"default": True, "filters": [{"name": "mine", **entry}]},
    }
    return json.dumps(body)


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"args": {"a": [1]}},
        {"type": "python", "args": {"a": {"b": 1}}, "timeout": "50ms"},
        {"type": "expr", "expr": "node.creating < 8"},
        {"type": "grpc", "socketPath": "/run/cube/a.sock", "circuitBreakerFailures": 5},
    ],
    ids=str,
)
def test_a_plugin_of_each_type_is_taken_with_its_fields(
    kubectl: Kubectl, entry: dict[str, object]
) -> None:
    answer = kubectl("apply", "--dry-run=server", "-f", "-", input=a_profile_with(**entry))

    assert "created" in answer.stdout


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"type": "expr"}, "type expr needs expr"),
        ({"type": "grpc"}, "type grpc needs socketPath"),
        ({"expr": "true"}, "expr is for type expr only"),
        ({"timeout": "50ms"}, "timeout is for type python or grpc only"),
        (
            {"type": "python", "socketPath": "/run/cube/a.sock"},
            "socketPath is for type grpc only",
        ),
        ({"type": "cel", "expr": "true"}, 'supported values: "builtin", "python", "expr", "grpc"'),
    ],
    ids=str,
)
def test_a_plugin_with_the_fields_of_another_type_is_refused(
    kubectl: Kubectl, entry: dict[str, object], message: str
) -> None:
    answer = kubectl(
        "apply", "--dry-run=server", "-f", "-", input=a_profile_with(**entry), check=False
    )

    assert answer.returncode == 1
    assert message in answer.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_explain_has_a_text_for_every_field_of_spec(kubectl: Kubectl, kind: str) -> None:
    text = kubectl("explain", f"{kind}.spec").stdout

    assert "<no description>" not in text
    assert "FIELDS:" in text


def test_a_placed_request_must_name_its_node_and_reservation(
    kubectl: Kubectl, fresh_namespace: str
) -> None:
    kubectl("create", "-n", fresh_namespace, "-f", "-", input=A_REQUEST)

    answer = kubectl("patch", "sbr", "build-4711", "-n", fresh_namespace, "--subresource=status",
                     "--type=merge", "-p", '{"status": {"phase": "Bound", "nodeName": "n"}}',
                     check=False)  # fmt: skip

    assert answer.returncode == 1
    assert "a request that is placed has a nodeName and a reservation" in answer.stderr


@pytest.mark.parametrize("name", ["profiles.yaml", "request-full.yaml", "node.yaml", "config.yaml"])
def test_applying_the_same_file_again_changes_nothing(name: str, kubectl: Kubectl) -> None:
    path = str(EXAMPLES / name)
    kubectl("apply", "-f", path)
    try:
        assert set(_verdicts(kubectl("apply", "-f", path).stdout)) == {"unchanged"}
    finally:
        kubectl("delete", "-f", path, "--wait=false")


def _verdicts(output: str) -> list[str]:
    return [line.rsplit(" ", 1)[1] for line in output.splitlines()]
