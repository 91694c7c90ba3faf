"""A node is emptied through the command that people use; nothing is lost or over-committed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from tests.e2e.operating import Operating, a_request, wait_until

SIX = ("--cpu", "6", "--memory", "64Gi", "--create-delay", "1s")


def start(operating: Operating, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cubesched", "drain", *words]
    return subprocess.Popen(
        [*command, "--kubeconfig", str(operating.cluster.kubeconfig)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_take_interrupts,  # noqa: PLW1509 - it only sets a signal
    )


def _take_interrupts() -> None:
    """Undo what a run in the background has inherited: that Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def drain(operating: Operating, *words: str) -> tuple[int, str, str]:
    """Run the command; return its code and what it printed on both streams."""
    process = start(operating, *words)
    printed, complained = process.communicate(timeout=120)
    print(f"$ cubesched drain {' '.join(words)}\n{printed}{complained}[{process.returncode}]")  # noqa: T201
    return process.returncode, printed, complained


def condition(operating: Operating, node: str) -> dict[str, Any]:
    """Return the condition Drained of a node; empty without one."""
    conditions = operating.get("sbn", node)["status"]["conditions"]
    return next((c for c in conditions if c["type"] == "Drained"), {})


def on(operating: Operating, node: str) -> dict[str, str]:
    """Return the phases of what counts on a node."""
    return {
        item["metadata"]["name"]: item["status"]["phase"]
        for item in operating.items()
        if item.get("status", {}).get("nodeName") == node
        and item["status"]["phase"] not in {"Succeeded", "Failed"}
    }


def test_a_node_is_emptied_of_everything_and_filled_again_when_that_is_taken_back(
    operating: Operating,
) -> None:
    operating.start_nodes(1, *SIX, prefix="old-")
    operating.start_auditor()
    operating.start_replica("a")
    operating.start_replica("b")
    operating.create_all(a_request(f"r{n}") for n in range(4))
    wait_until(lambda: operating.phases()["Running"] == 4, what="they run")
    operating.kubectl("patch", "sbr", "r0", "--type=merge", "-p", '{"spec": {"paused": true}}')
    wait_until(lambda: operating.phase("r0") == "Paused", what="one is paused")
    operating.create_all(a_request(f"s{n}") for n in range(2))
    operating.start_nodes(1, *SIX, prefix="new-")

    code, printed, _ = drain(operating, "old-000", "--all", "--timeout", "60s")

    assert code == 0
    assert "old-000: spec.drain is All: no new requests, everything moves" in printed
    assert "old-000 is drained" in printed
    assert on(operating, "old-000") == {}
    assert condition(operating, "old-000")["reason"] == "Drained"
    assert operating.phase("r0") == "Pending", "what was paused waits until that is taken back"
    wait_until(lambda: operating.phases()["Running"] == 5, what="all others run on")
    assert {item["status"].get("nodeName") for item in operating.items()} == {"new-000", None}

    code, printed, _ = drain(operating, "old-000", "--undo")
    assert (code, printed) == (0, "old-000: spec.drain is None: takes new requests again\n")
    wait_until(lambda: not condition(operating, "old-000"), what="the condition is gone")
    operating.create_all(a_request(f"t{n}") for n in range(4))
    wait_until(lambda: operating.phases()["Running"] == 9, what="it takes requests again")
    assert operating.audit()["violations"] == 0


def test_only_what_has_not_begun_moves_unless_more_is_asked_for(operating: Operating) -> None:
    operating.start_nodes(1, *SIX, prefix="old-")
    operating.start_replica()
    operating.apply(a_request("runs"))
    wait_until(lambda: operating.phase("runs") == "Running", what="it runs")

    code, printed, _ = drain(operating, "old-000", "--timeout", "30s")

    assert code == 0
    assert "1 request may stay: 1 running" in printed
    assert "--all evicts" in printed
    assert operating.phase("runs") == "Running"
    assert "is Unstarted already" in drain(operating, "old-000", "--no-wait")[1]
    operating.apply(a_request("waits"))
    time.sleep(3)
    assert operating.phase("waits") == "Pending"


def test_a_node_whose_agent_is_dead_shows_what_is_left_and_why(operating: Operating) -> None:
    operating.start_nodes(1, *SIX, prefix="old-")
    operating.start_replica()
    operating.create_all(a_request(f"r{n}") for n in range(2))
    wait_until(lambda: operating.phases()["Running"] == 2, what="they run")
    operating.processes.kill("nodes-old-")

    code, printed, _ = drain(operating, "old-000", "--all", "--timeout", "8s")

    assert code == 1
    assert "2 requests left: 2 evicting" in printed
    assert "old-000 is not drained after" in printed
    assert "default/r0" in printed
    assert "the node's agent has not stopped it yet" in printed

    code, printed, told = drain(operating, "old-000", "--no-wait", "-o", "json")
    data = json.loads(printed)
    assert code == 0
    assert (data["drain"], data["drained"]) == ("All", False)
    assert [one["phase"] for one in data["left"]] == ["Evicting", "Evicting"]
    assert "already" in told

    operating.start_nodes(1, *SIX, prefix="old-")  # its agent is back, on an empty machine
    assert drain(operating, "old-000", "--timeout", "60s")[0] == 0
    assert on(operating, "old-000") == {}


def test_an_interrupted_command_leaves_the_drain_and_says_so(operating: Operating) -> None:
    operating.start_nodes(1, *SIX, prefix="old-")
    operating.start_replica()
    operating.apply(a_request("r"))
    wait_until(lambda: operating.phase("r") == "Running", what="it runs")
    operating.processes.running["nodes-old-"].send_signal(signal.SIGSTOP)
    with start(operating, "old-000", "--all") as process:
        try:
            wait_until(lambda: operating.phase("r") == "Evicting", what="it is evicted")
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=30)
        finally:
            process.kill()
    operating.processes.running["nodes-old-"].send_signal(signal.SIGCONT)

    assert process.returncode == 130
    assert "old-000 goes on being drained" in told
    assert "--undo" in told
    assert operating.get("sbn", "old-000")["spec"]["drain"] == "All"
    wait_until(lambda: operating.phase("r") == "Pending", what="it goes on")


def test_without_an_operator_the_command_says_that_nobody_has_taken_it_up(
    operating: Operating,
) -> None:
    operating.start_nodes(1, prefix="old-")

    code, printed, _ = drain(operating, "old-000", "--all", "--timeout", "17s")

    assert code == 1
    assert "no replica of the operator has taken this up" in printed


@pytest.mark.parametrize("words", [("--all",), ("--undo",), ("-o", "json")])
def test_a_node_that_does_not_exist_is_a_finding(
    operating: Operating, words: tuple[str, ...]
) -> None:
    code, printed, told = drain(operating, "nowhere", *words)

    assert (code, printed) == (1, "")
    assert told.startswith("cubesched: there is no SandboxNode 'nowhere'; `kubectl get sbn`")


def test_a_server_that_cannot_be_reached_is_a_fault(operating: Operating) -> None:
    environment = os.environ | {"KUBECONFIG": str(operating.directory / "none")}
    command = [sys.executable, "-m", "cubesched", "drain", "n"]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert answer.returncode == 2
    assert answer.stderr.startswith("cubesched: kubeconfig")
