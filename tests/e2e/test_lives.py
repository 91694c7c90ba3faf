"""Life after binding, on the real server: silent nodes, refusals, ends in time, edits by people."""

from __future__ import annotations

import json
import signal
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.e2e.operating import Operating, a_request, wait_until


def impatient(**spec: Any) -> dict[str, Any]:
    """Return a SchedulerConfig under which a node is silent after 5 seconds."""
    return {
        "apiVersion": "cubesched.io/v1alpha1",
        "kind": "SchedulerConfig",
        "metadata": {"name": "default"},
        "spec": {"guards": {"metricsMaxAge": "5s"}, **spec},
    }


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def message(operating: Operating, name: str, kind: str) -> str:
    conditions = operating.get("sbr", name).get("status", {}).get("conditions", ())
    return next((str(c["message"]) for c in conditions if c["type"] == kind), "")


def names(operating: Operating) -> set[str]:
    return {item["metadata"]["name"] for item in operating.items()}


def edit_status(operating: Operating, name: str, **status: Any) -> None:
    """Change a status as a person with every right may."""
    operating.kubectl(
        "patch", "sbr", name, "--subresource=status", "--type=merge",
        "-p", json.dumps({"status": status}),
    )  # fmt: skip


# Silent nodes


def test_what_ran_on_a_machine_that_died_fails_after_the_grace(operating: Operating) -> None:
    operating.apply(impatient(nodeLostGrace="6s"))
    operating.start_nodes(1, prefix="dies-")
    operating.start_nodes(1, prefix="lives-")
    operating.start_auditor()
    operating.start_replica("a")
    operating.start_replica("b")
    operating.apply(
        a_request("ran", templateNodeScope=["dies-000"]),
        a_request("other", templateNodeScope=["lives-000"]),
    )
    wait_until(lambda: operating.phases()["Running"] == 2, what="both run")

    operating.processes.kill("nodes-dies-")

    wait_until(lambda: operating.reason("ran", "Ready") == "NodeLost", what="it is missed")
    assert operating.phase("ran") == "Running"
    assert "node dies-000 has not reported since 20" in message(operating, "ran", "Ready")
    assert "unless it reports before" in message(operating, "ran", "Ready")
    wait_until(lambda: operating.phase("ran") == "Failed", what="the grace is over")
    status = operating.get("sbr", "ran")["status"]
    assert (status["nodeName"], "finishedTime" in status) == ("dies-000", True)
    assert operating.phase("other") == "Running"
    assert operating.reason("other", "Ready") == "Running"
    assert operating.audit()["violations"] == 0


def test_a_machine_that_is_back_within_the_grace_has_lost_nothing(operating: Operating) -> None:
    operating.apply(impatient(nodeLostGrace="300s"))
    operating.start_nodes(1, prefix="sleeps-")
    operating.start_nodes(1, prefix="lives-")
    operating.start_replica()
    operating.apply(a_request("ran", templateNodeScope=["sleeps-000"]))
    wait_until(lambda: operating.phase("ran") == "Running", what="it runs")
    sleeper = operating.processes.running["nodes-sleeps-"]

    sleeper.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: operating.reason("ran", "Ready") == "NodeLost", what="it is missed")
    finally:
        sleeper.send_signal(signal.SIGCONT)

    wait_until(lambda: operating.reason("ran", "Ready") == "Running", what="it is heard again")
    status = operating.get("sbr", "ran")["status"]
    assert (status["phase"], status["nodeName"]) == ("Running", "sleeps-000")
    starts = [json.loads(line)["event"] for line in operating.journal.read_text().splitlines()]
    assert starts.count("start") == 1


# Refusals


def test_a_node_that_refuses_everything_is_left_out_for_a_while(operating: Operating) -> None:
    operating.start_nodes(1, "--refuse-nodes", "bad-000", prefix="bad-")
    operating.start_nodes(1, "--cpu", "4", "--memory", "64Gi", prefix="good-")
    operating.start_replica()
    operating.create_all(a_request(f"r{n:02}", cpu="1") for n in range(12))

    wait_until(
        lambda: operating.metric("a", "cubesched_nodes", state="quarantined") == 1,
        what="it is left out",
    )
    wait_until(
        lambda: any(
            c["type"] == "Quarantined"
            and c["status"] == "True"
            and c["reason"] == "RepeatedRefusals"
            for c in operating.get("sbn", "bad-000")["status"]["conditions"]
        ),
        what="it says so",
    )
    found = operating.get("sbn", "bad-000")["status"]
    (condition,) = (c for c in found["conditions"] if c["type"] == "Quarantined")
    assert "the last: told to refuse; nothing new is placed here until 20" in condition["message"]
    wait_until(lambda: operating.phases()["Running"] == 4, what="the good node is filled")


# Gates, shutdownTime, ttl


def test_a_gated_request_says_so_and_is_placed_when_the_last_gate_is_gone(
    operating: Operating,
) -> None:
    operating.start_nodes(1)
    operating.start_replica()
    gates = [{"name": "example.com/quota"}, {"name": "example.com/review"}]
    operating.apply(a_request("gated", schedulingGates=gates))
    wait_until(lambda: operating.reason("gated") == "Gated", seconds=10, what="it says so")
    assert message(operating, "gated", "Scheduled").endswith(
        "example.com/quota, example.com/review"
    )

    more = json.dumps({"spec": {"schedulingGates": [*gates, {"name": "example.com/more"}]}})
    refused = operating.kubectl("patch", "sbr", "gated", "--type=merge", "-p", more, check=False)
    assert "schedulingGates can only be removed" in refused.stderr
    fewer = json.dumps({"spec": {"schedulingGates": gates[1:]}})
    operating.kubectl("patch", "sbr", "gated", "--type=merge", "-p", fewer)
    time.sleep(1.0)
    assert operating.phase("gated") == "Pending"

    none = json.dumps({"spec": {"schedulingGates": []}})
    operating.kubectl("patch", "sbr", "gated", "--type=merge", "-p", none)
    wait_until(lambda: operating.phase("gated") == "Running", seconds=10, what="it runs")


def test_requests_end_in_time_and_go_in_time(operating: Operating) -> None:
    operating.start_nodes(1, "--cpu", "8")
    operating.start_replica()
    operating.apply(
        a_request("stops", shutdownTime=in_seconds(12), ttlSecondsAfterFinished=3600),
        a_request("waits", cpu="99", shutdownTime=in_seconds(6)),
        a_request("goes", shutdownTime=in_seconds(8), ttlSecondsAfterFinished=0),
        a_request("late", shutdownTime=in_seconds(-60)),
    )
    wait_until(lambda: operating.phase("stops") == "Running", seconds=10, what="it runs")

    wait_until(lambda: operating.phase("late") == "Failed", what="its time had passed before")
    wait_until(lambda: operating.phase("waits") == "Failed", what="its wait is over")
    assert "passed before it was placed" in message(operating, "waits", "Ready")
    assert operating.reason("waits", "Ready") == "Finished"
    wait_until(lambda: operating.phase("stops") == "Succeeded", what="it is stopped")
    assert message(operating, "stops", "Ready") == "shutdownTime reached"
    wait_until(lambda: "goes" not in names(operating), what="it is gone")
    assert names(operating) == {"stops", "waits", "late"}
    stops = [json.loads(line)["event"] for line in operating.journal.read_text().splitlines()]
    assert (stops.count("start"), stops.count("stop")) == (2, 2)


@pytest.mark.parametrize(
    "stamp", ["tomorrow", "", "2030-01-01", "2030-01-01T00:00Z", "2030-02-30T00:00:00Z"]
)
def test_a_shutdown_time_that_is_none_is_refused_at_apply(operating: Operating, stamp: str) -> None:
    body = json.dumps(a_request("r", shutdownTime=stamp))
    refused = operating.kubectl("create", "-f", "-", input=body, check=False)

    assert refused.returncode == 1
    assert "spec.shutdownTime" in refused.stderr


# People who edit statuses


def test_edits_of_a_status_by_a_person_lose_nothing_and_count_nothing_twice(
    operating: Operating,
) -> None:
    operating.start_nodes(3, "--cpu", "4", "--memory", "16Gi")
    operating.start_auditor()
    operating.start_replica("a")
    operating.start_replica("b")
    operating.create_all(a_request(f"r{n}", ttlSecondsAfterFinished=3600) for n in range(6))
    wait_until(lambda: operating.phases()["Running"] == 6, what="all run")
    first = operating.get("sbr", "r1")["status"]["nodeName"]
    other = next(f"node-00{n}" for n in range(3) if f"node-00{n}" != first)

    edit_status(operating, "r0", nodeName="nowhere")
    edit_status(operating, "r1", nodeName=other)
    edit_status(operating, "r2", phase="Succeeded")
    edit_status(operating, "r3", phase="Pending", nodeName=None, reservation=None)
    edit_status(operating, "r4", reservation={"id": "0" * 32})
    edit_status(operating, "r5", phase="Bound")

    wait_until(lambda: operating.phase("r0") == "Failed", what="its node does not exist")
    assert operating.reason("r0", "Ready") == "NodeLost"
    wait_until(lambda: operating.phase("r1") == "Failed", what="it is not on that machine")
    wait_until(lambda: operating.phase("r3") == "Running", what="it is placed anew")
    wait_until(lambda: operating.phase("r4") == "Failed", what="nothing runs under that id")
    wait_until(lambda: operating.phase("r5") == "Running", what="it is claimed again")
    assert operating.phase("r2") == "Succeeded"
    operating.kubectl("delete", "sbr", "--all", "--wait=false")
    operating.create_all(a_request(f"s{n}") for n in range(12))
    wait_until(
        lambda: operating.phases()["Running"] == 12, seconds=60, what="all room has come back"
    )
