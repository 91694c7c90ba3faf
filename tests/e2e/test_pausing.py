"""Pause and resume on a real server: room is freed, taken by others, and reserved anew."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.e2e.operating import Operating, a_request, wait_until

NODE = "node-000"


def a_config(ratio: float) -> dict[str, Any]:
    return {
        "apiVersion": "cubesched.io/v1alpha1",
        "kind": "SchedulerConfig",
        "metadata": {"name": "default"},
        "spec": {"pausedResourceReleaseRatio": ratio},
    }


def release(operating: Operating, ratio: float, node_ratio: float | None = None) -> None:
    """Set the ratio for all nodes, and for one of its own; wait until the node says so."""
    operating.apply(a_config(ratio))
    if node_ratio is not None:
        patch = {"spec": {"quota": {"pausedResourceReleaseRatio": node_ratio}}}
        operating.kubectl("patch", "sbn", NODE, "--type=merge", "-p", json.dumps(patch))
    wanted = ratio if node_ratio is None else node_ratio
    wait_until(lambda: ratio_of(operating) == wanted, what=f"the ratio is {wanted}")
    time.sleep(0.5)  # until the agent has it from its own watch


def ratio_of(operating: Operating) -> float:
    effective = operating.get("sbn", NODE).get("status", {}).get("effectiveCapacity", {})
    return float(effective.get("pausedResourceReleaseRatio", -1))


def wish(operating: Operating, name: str, *, paused: bool) -> None:
    patch = json.dumps({"spec": {"paused": paused}})
    operating.kubectl("patch", "sbr", name, "--type=merge", "-p", patch)


def run(operating: Operating, name: str, **spec: Any) -> None:
    operating.apply(a_request(name, **spec))
    wait_until(lambda: operating.phase(name) == "Running", what=f"{name} runs")


def pause(operating: Operating, name: str) -> None:
    wish(operating, name, paused=True)
    wait_until(lambda: operating.phase(name) == "Paused", what=f"{name} is paused")


def keeps_millis(operating: Operating, name: str) -> int:
    return int(operating.get("sbr", name)["status"]["reservation"]["paused"]["cpuMillis"])


def message(operating: Operating, name: str, condition: str) -> str:
    conditions = operating.get("sbr", name)["status"]["conditions"]
    return next((str(c["message"]) for c in conditions if c["type"] == condition), "")


def test_a_pause_frees_room_that_a_resume_must_reserve_again(operating: Operating) -> None:
    operating.start_nodes(1, "--cpu", "4", "--memory", "64Gi")
    operating.start_auditor()
    operating.start_replica("a")
    operating.start_replica("b")
    release(operating, 0.5)
    run(operating, "first", cpu="4")
    before = operating.get("sbr", "first")["status"]

    pause(operating, "first")
    assert keeps_millis(operating, "first") == 2000
    assert operating.reason("first", "Ready") == "Paused"
    run(operating, "second", cpu="2")

    wish(operating, "first", paused=False)
    wait_until(lambda: operating.reason("first", "ResumeBlocked"), what="it is blocked")
    time.sleep(2)
    assert operating.phase("first") == "Paused"
    assert operating.reason("first", "ResumeBlocked") == "InsufficientCapacity"
    text = message(operating, "first", "ResumeBlocked")
    assert text == f"{NODE}: needs 2000m more cpu, 0m free"
    row = operating.kubectl("get", "sbr", "first").stdout.splitlines()[1].split()
    assert row[:5] == ["first", "Paused", "mixed_binpack", NODE, "Paused"]
    assert text in operating.kubectl("describe", "sbr", "first").stdout

    operating.kubectl("delete", "sbr", "second")
    wait_until(lambda: operating.phase("first") == "Running", what="it is resumed")
    after = operating.get("sbr", "first")["status"]
    assert after["sandboxID"] == before["sandboxID"] == after["reservation"]["resume"]
    assert after["nodeName"] == NODE
    assert after["endpoint"] == before["endpoint"]
    assert after["reservation"]["id"] != before["reservation"]["id"]
    assert "paused" not in after["reservation"]
    assert operating.reason("first", "ResumeBlocked") == ""
    assert operating.reason("first", "Ready") == "Running"
    assert operating.audit()["violations"] == 0


def test_a_node_has_a_ratio_of_its_own_and_a_later_ratio_moves_nothing(
    operating: Operating,
) -> None:
    operating.start_nodes(1, "--cpu", "4", "--memory", "64Gi")
    operating.start_auditor()
    operating.start_replica()
    release(operating, 0.25, node_ratio=0.75)
    run(operating, "first", cpu="2")
    run(operating, "other", cpu="2")

    pause(operating, "first")
    assert keeps_millis(operating, "first") == 500

    release(operating, 0.0, node_ratio=0.0)
    run(operating, "second", cpu="1500m")
    assert keeps_millis(operating, "first") == 500
    pause(operating, "other")
    assert keeps_millis(operating, "other") == 2000
    assert operating.audit()["violations"] == 0


def test_without_a_ratio_a_paused_sandbox_gives_up_nothing_and_is_resumed_at_once(
    operating: Operating,
) -> None:
    operating.start_nodes(1, "--cpu", "2", "--memory", "64Gi")
    operating.start_replica()
    run(operating, "r1", cpu="2")
    pause(operating, "r1")
    operating.apply(a_request("r2", cpu="1"))
    wait_until(lambda: operating.reason("r2") == "Unschedulable", what="r2 waits")

    wish(operating, "r1", paused=False)
    wait_until(lambda: operating.phase("r1") == "Running", what="r1 runs")
    assert operating.phase("r2") == "Pending"


def test_what_is_paused_before_it_runs_is_paused_when_it_does_and_can_be_deleted(
    operating: Operating,
) -> None:
    operating.start_nodes(1, "--cpu", "2", "--memory", "64Gi", "--create-delay", "2s")
    operating.start_replica()
    operating.apply(a_request("r1", cpu="2"))
    wait_until(lambda: operating.phase("r1") == "Starting", what="r1 starts")
    wish(operating, "r1", paused=True)
    wait_until(lambda: operating.phase("r1") == "Paused", what="r1 is paused")

    operating.apply(a_request("r2", cpu="2"))
    operating.kubectl("delete", "sbr", "r1")
    wait_until(lambda: operating.phase("r2") == "Running", what="its room is free")


def test_a_restarted_machine_fails_what_was_paused_and_a_new_agent_pauses_and_resumes(
    operating: Operating,
) -> None:
    operating.start_nodes(1, "--cpu", "4", "--memory", "64Gi")
    operating.start_replica()
    run(operating, "r1")
    pause(operating, "r1")
    operating.processes.stop("nodes-node-")
    operating.start_nodes(1, "--cpu", "4", "--memory", "64Gi")

    wait_until(lambda: operating.phase("r1") == "Failed", what="r1 has failed")
    assert operating.reason("r1", "Ready") == "Finished"
    run(operating, "r2")
    pause(operating, "r2")
    wish(operating, "r2", paused=False)
    wait_until(lambda: operating.phase("r2") == "Running", what="r2 runs again")


def test_flipped_all_the_time_it_settles_as_last_asked_and_leaks_nothing(
    operating: Operating,
) -> None:
    operating.start_nodes(1, "--cpu", "4", "--memory", "64Gi")
    operating.start_auditor()
    operating.start_replica()
    release(operating, 0.5)
    run(operating, "r1", cpu="4")
    for number in range(31):
        wish(operating, "r1", paused=number % 2 == 0)

    wait_until(lambda: operating.phase("r1") == "Paused", what="r1 is paused")
    time.sleep(2)
    assert operating.phase("r1") == "Paused"
    run(operating, "r2", cpu="2")
    operating.kubectl("delete", "sbr", "r2")
    wish(operating, "r1", paused=False)
    wait_until(lambda: operating.phase("r1") == "Running", what="r1 runs")
    assert operating.audit()["violations"] == 0
