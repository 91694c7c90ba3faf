"""`cubesched explain` on a real cluster: what it says is true, and errors name what exists."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.operating import Operating, a_request, wait_until


def cubesched(
    operating: Operating, *arguments: str, program: str = "", redis_url: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the command line as a viewer of the cluster."""
    access = operating.cluster.access("cubesched:somebody", "cubesched:viewers")
    command = [program] if program else [sys.executable, "-m", "cubesched"]
    command += [*arguments, *access, "--redis-url", redis_url or operating.cluster.redis_url]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80"}
    )


def explained(operating: Operating, name: str, *arguments: str) -> dict[str, Any]:
    answer = cubesched(operating, "explain", f"default/{name}", *arguments, "-o", "json")
    assert answer.returncode == 0, answer.stderr
    data: dict[str, Any] = json.loads(answer.stdout)
    return data


def test_what_would_help_is_true_when_it_is_done(operating: Operating) -> None:
    operating.start_nodes(3, "--cpu", "4", "--memory", "8Gi", "--templates", "t1")
    operating.start_replica()
    operating.apply(a_request("big", cpu="6"), a_request("stranger", templateID="t-77"))
    wait_until(lambda: operating.reason("big") == "NeverFits", what="big was told")
    wait_until(lambda: operating.reason("stranger") == "Unschedulable", what="stranger was told")

    written = operating.get("sbr", "big")["status"]["explanation"]
    (line,) = written.partition("What would help:\n")[2].splitlines()
    match = re.fullmatch(r"  3 nodes would fit with cpu <= (\w+)", line)
    assert match, written
    helps = [each["text"] for each in explained(operating, "stranger")["whatWouldHelp"]]
    assert helps == [
        "3 nodes would fit with allowNonLocalTemplate: true",
        "3 nodes would fit with template t-77 cached",
    ]

    operating.apply(
        a_request("smaller", cpu=match[1]),
        a_request("elsewhere", templateID="t-77", allowNonLocalTemplate=True),
    )
    wait_until(lambda: operating.phase("smaller") == "Running", what="the smaller one runs")
    wait_until(lambda: operating.phase("elsewhere") == "Running", what="it runs without template")


def test_it_decides_as_the_operator_did_and_needs_none(operating: Operating) -> None:
    operating.start_nodes(4, "--heterogeneous", "--zones", "z1,z2")
    zone = {"topology.kubernetes.io/zone": "z1"}
    operating.apply(a_request("r1", cpu="2", nodeSelector=zone))

    before = explained(operating, "r1")
    assert before["now"]["feasible"] == 2
    operating.start_replica()
    wait_until(lambda: operating.phase("r1") == "Running", what="r1 runs")
    after = explained(operating, "r1")

    assert after["request"]["nodeName"] == before["now"]["wouldTake"]
    assert after["request"]["explanation"].startswith(f"score {after['request']['score']}")
    assert after["now"]["feasible"] == 2
    assert after["now"]["itsNode"]["fits"] is True
    assert after["policy"]["revision"] == after["request"]["policyRevision"]

    outside = next(node["name"] for node in after["nodes"] if not node["fits"])
    node = explained(operating, "r1", "--node", outside)["node"]
    assert [stage["plugin"] for stage in node["stages"] if not stage["passes"]] == ["node_selector"]


def test_the_table_fits_eighty_columns_and_kubectl_finds_the_command(
    operating: Operating, tmp_path: Path
) -> None:
    operating.start_nodes(20)
    operating.apply(a_request("big", cpu="400"))

    answer = cubesched(operating, "explain", "big")
    assert answer.returncode == 0, answer.stderr
    assert max(map(len, answer.stdout.splitlines())) <= 80
    assert "20 nodes would fit with cpu <= 64000m" in answer.stdout
    assert "and 5 more; --all shows them" in answer.stdout
    everything = cubesched(operating, "explain", "big", "--all").stdout
    assert "node-019" in everything

    plugin = tmp_path / "kubectl-cubesched"
    plugin.write_text(
        f"#!{sys.executable}\nimport sys\nfrom cubesched.__main__ import main\nsys.exit(main())\n"
    )
    plugin.chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "COLUMNS": "80"}
    command = [str(operating.cluster.kubectl), "cubesched", "explain", "big", "-o", "yaml"]
    access = operating.cluster.access("cubesched:somebody", "cubesched:viewers")
    command += [*access, "--redis-url", operating.cluster.redis_url]
    listed = subprocess.run(command, capture_output=True, text=True, check=False, env=path)
    assert listed.returncode == 0, listed.stderr
    assert len(yaml.safe_load(listed.stdout)["nodes"]) == 20


def test_errors_name_what_exists_and_what_was_tried(operating: Operating) -> None:
    operating.start_nodes(2)
    operating.apply(a_request("hello"))

    missing = cubesched(operating, "explain", "default/helo")
    assert (missing.returncode, missing.stderr) == (
        1,
        (
            "cubesched: there is no SandboxRequest default/helo; there are in namespace default: "
            "hello\n"
        ),
    )
    no_node = cubesched(operating, "explain", "default/hello", "--node", "node-7")
    assert (no_node.returncode, no_node.stderr) == (
        1,
        "cubesched: there is no SandboxNode node-7; there are: node-000, node-001\n",
    )
    blind = cubesched(operating, "explain", "default/hello", redis_url="redis://127.0.0.1:1/0")
    assert blind.returncode == 0
    assert "Metrics   UNKNOWN: Redis: " in blind.stdout
    assert "2 of 2 nodes fit" in blind.stdout
