"""Things that are deleted at any moment leave no stuck object and take no room with them."""

from __future__ import annotations

import time

from tests.e2e.operating import Operating, a_request, wait_until


def test_requests_deleted_in_every_phase_give_their_room_back(operating: Operating) -> None:
    operating.start_nodes(2, "--cpu", "8", "--memory", "32Gi", "--create-delay", "1s")
    operating.start_auditor()
    operating.start_replica("a")
    operating.start_replica("b")
    operating.create_all(a_request(f"r{n:02}", cpu="1") for n in range(24))
    for moment in range(8):
        time.sleep(0.25)
        name = f"r{moment * 3:02}"
        operating.kubectl("delete", "sbr", name, "--wait=false", "--ignore-not-found")

    wait_until(
        lambda: operating.phases()["Running"] == 16 and sum(operating.phases().values()) == 16,
        seconds=60,
        what="the rest runs",
    )
    operating.kubectl("delete", "sbr", "--all", "--wait=false")
    wait_until(lambda: not operating.items(), what="all gone")
    operating.create_all(a_request(f"s{n:02}", cpu="1") for n in range(16))
    wait_until(lambda: operating.phases()["Running"] == 16, seconds=60, what="room came back")
    assert operating.audit()["violations"] == 0


def test_a_deleted_node_ends_what_ran_there_and_frees_what_had_not_begun(
    operating: Operating,
) -> None:
    operating.start_nodes(1, "--cpu", "4", "--memory", "16Gi", prefix="old-")
    operating.start_replica()
    operating.apply(a_request("ran"))
    wait_until(lambda: operating.phase("ran") == "Running", what="it runs")
    operating.processes.stop("nodes-old-")

    operating.kubectl("delete", "sbn", "old-000")

    wait_until(lambda: operating.phase("ran") == "Failed", what="it is lost")
    assert operating.reason("ran", "Ready") == "NodeLost"
    operating.apply(a_request("next"))
    operating.start_nodes(1, prefix="new-")
    wait_until(lambda: operating.phase("next") == "Running", what="the next one runs")


def test_a_profile_deleted_while_in_use_leaves_its_requests_running(operating: Operating) -> None:
    operating.start_nodes(1)
    operating.apply(
        {
            "apiVersion": "cubesched.io/v1alpha1",
            "kind": "SchedulerProfile",
            "metadata": {"name": "mine"},
            "spec": {"default": True, "scores": [{"name": "least_allocated"}]},
        }
    )
    operating.start_replica()
    operating.apply(a_request("r1"))
    wait_until(lambda: operating.phase("r1") == "Running", what="it runs")
    assert operating.get("sbr", "r1")["status"]["profile"] == "mine"

    operating.kubectl("delete", "sprof", "mine")
    wait_until(
        lambda: operating.metric("a", "cubesched_profile_info", source="factory") == 3,
        what="the factory Profiles take over",
    )

    operating.apply(a_request("r2"))
    wait_until(lambda: operating.phase("r2") == "Running", what="the next one runs")
    assert operating.get("sbr", "r2")["status"]["profile"] == "mixed_binpack"
    assert operating.phase("r1") == "Running"
