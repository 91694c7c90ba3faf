"""`cubesched lint` beside a real API server: what it accepts is accepted, and read alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import Kubectl
from tests.e2e.operating import Operating

from cubesched.manifests.nodes import Document
from cubesched.manifests.tree import read_documents

PROFILE = """\
apiVersion: cubesched.io/v1alpha1
kind: SchedulerProfile
metadata: {{name: {name}}}
spec:
{spec}
"""
CONFIG = """\
apiVersion: cubesched.io/v1alpha1
kind: SchedulerConfig
metadata: {name: default}
spec: {profileRouteLabelKeys: [workload, team]}
"""


def profile(name: str, spec: str) -> str:
    return PROFILE.format(name=name, spec=spec)


@pytest.fixture
def apply(kubectl: Kubectl) -> Iterator[Any]:
    """Applies text; policy is gone again afterwards."""

    def applied(*texts: str) -> None:
        kubectl("apply", "-f", "-", input="---\n".join(texts))

    yield applied
    kubectl("delete", "sprof,sconf", "--all")


def lint(operating: Operating, *arguments: str, files: str) -> subprocess.CompletedProcess[str]:
    """Run it as a viewer of the cluster, on standard input."""
    access = operating.cluster.access("cubesched:somebody", "cubesched:viewers")
    return subprocess.run(
        [sys.executable, "-m", "cubesched", "lint", "-", "--cluster", *arguments, *access],
        input=files,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "operator")},
    )


def test_files_are_judged_as_they_would_be_beside_what_the_cluster_holds(
    operating: Operating, apply: Any
) -> None:
    apply(
        CONFIG,
        profile("burst", "  route: {labels: {workload: burst}}"),
        profile("rest", "  default: true"),
    )

    good = lint(operating, files=profile("burst", "  route: {labels: {team: a}}"))
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.splitlines() == [
        "from the cluster: SchedulerProfile/rest, SchedulerConfig/default",
        "1 object checked beside 2 of the cluster: nothing wrong",
    ]

    second = lint(operating, "-o", "json", files=profile("new", "  default: true"))
    assert second.returncode == 1
    data = json.loads(second.stdout)
    assert [
        (f["from"], f.get("line"), f["object"], f["path"], f["message"]) for f in data["findings"]
    ] == [
        ("file", 5, "SchedulerProfile/new", "spec.default", "rest is the default as well"),
        ("cluster", None, "SchedulerProfile/rest", "spec.default", "new is the default as well"),
    ]
    assert {o["object"]: o["from"] for o in data["objects"]} == {
        "SchedulerProfile/new": "file",
        "SchedulerProfile/burst": "cluster",
        "SchedulerProfile/rest": "cluster",
        "SchedulerConfig/default": "cluster",
    }


def test_an_error_that_the_cluster_holds_is_told_as_the_cluster_s(
    operating: Operating, apply: Any
) -> None:
    apply(profile("burst", "  route: {labels: {team: a}}"))

    answer = lint(operating, "-o", "github", files=profile("rest", "  default: true"))
    assert answer.returncode == 1
    assert answer.stdout.splitlines() == [
        (
            "::error title=SchedulerProfile/burst::spec.route.labels.team: not in"
            " profileRouteLabelKeys of SchedulerConfig/default; allowed: workload"
        ),
        "1 object checked beside 1 of the cluster: 1 error",
    ]
    assert lint(operating, files=CONFIG).returncode == 0


def test_a_server_that_refuses_is_one_line_and_code_2(operating: Operating) -> None:
    nobody = operating.cluster.access("cubesched:nobody", "nobodies")

    answer = subprocess.run(
        [sys.executable, "-m", "cubesched", "lint", "-", "--cluster", *nobody],
        input=CONFIG,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "forbidden" in answer.stderr
    assert answer.stderr.count("\n") == 1


SCALARS = """\
  default: true
  filters:
  - name: node_labels
    args:
      a: [y, n, yes, off, On, "~", 017, 0o17, 08, 1e3, 1.0, 1_000, 0b11, 0x1F, .5, 1., 1:30]
      b: [2026-12-01, 2026-12-01T00:00:00Z, +8, 1e-7, -0, 0., 1_0.5, 0x, 09.5, -0x1F, 0_7]
      c: ["1", !!str 5, !!float 3, .5e1, +.5, 1E3, 0B1, 0O7, 0X1f, &x {k: 1}, *x, {<<: *x, k: 2}]
      d: {n: 1, on: 3, 5: 4, 1.5: 5, 0x10: 6, 1e3: 7, 2026-12-01: 8}
      e: |
        two
        lines
      f: >
        one
        line
"""


def test_files_are_read_as_kubectl_reads_them(kubectl: Kubectl, apply: Any) -> None:
    text = profile("scalars", SCALARS)
    apply(text)
    stored = json.loads(kubectl("get", "sprof", "scalars", "-o", "json").stdout)["spec"]

    (document,) = read_documents(text)
    assert isinstance(document, Document)
    read = document.root.value["spec"]
    assert json.dumps(read["filters"][0]["args"], sort_keys=True) == json.dumps(
        stored["filters"][0]["args"], sort_keys=True
    )


WRONG_FOR_BOTH = [
    profile("unknown", "  default: true\n  ordr: 1"),
    profile("Capital", "  default: true"),
    profile("a..b", "  default: true"),
    profile("7", "  default: true"),
    profile("labels", "  default: true").replace("labels}", "labels, labels: {a: 1}}"),
    profile("spek", "  default: true") + "spek: {}\n",
    profile("version", "  default: true").replace("v1alpha1", "v1"),
    profile("broken", "  default: [true"),
    CONFIG.replace("[workload, team]", "[team, team]"),
    CONFIG.replace("default", "mine"),
    """\
apiVersion: cubesched.io/v1alpha1
kind: SandboxRequest
metadata: {name: fraction}
spec: {resources: {cpu: 0.5, memory: 1Gi}}
""",
]


@pytest.mark.parametrize("text", WRONG_FOR_BOTH)
def test_what_the_server_refuses_is_an_error_of_the_file(
    kubectl: Kubectl, operating: Operating, text: str
) -> None:
    refused = kubectl("apply", "--dry-run=server", "-f", "-", input=text, check=False)

    assert refused.returncode == 1, refused.stdout
    assert lint(operating, files=text).returncode == 1
