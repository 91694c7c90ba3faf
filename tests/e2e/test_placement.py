"""One replica, three nodes: a request is placed, runs, and says how it came there."""

from __future__ import annotations

from tests.e2e.operating import Operating, a_request, wait_until


def test_a_request_is_placed_runs_and_is_explained(operating: Operating) -> None:
    operating.start_nodes(3, "--cpu", "8", "--memory", "16Gi")
    operating.start_replica()

    operating.apply(a_request("r1", cpu="1500m", memory="1.5Gi"))
    wait_until(lambda: operating.phase("r1") == "Running", what="r1 runs")

    status = operating.get("sbr", "r1")["status"]
    assert status["reservation"]["cpuMillis"] == 1500
    assert status["reservation"]["memoryBytes"] == 1610612736
    assert len(status["reservation"]["id"]) == 32
    assert status["nodeName"].startswith("node-")
    assert status["profile"] == "mixed_binpack"
    assert len(status["policyRevision"]) == 12
    assert status["explanation"].startswith("score ")
    assert len(status["explanation"].encode()) <= 300
    assert status["sandboxID"]
    assert operating.reason("r1") == "Bound"
    assert operating.reason("r1", "Ready") == "Running"
    described = operating.kubectl("describe", "sbr", "r1").stdout
    wait_until(
        lambda: (
            "bound to node-" in operating.kubectl("events", "--for", "sandboxrequest/r1").stdout
        ),
        what="the event",
    )
    assert "3 of 3 nodes feasible" in described
    row = operating.kubectl("get", "sbr", "r1").stdout.splitlines()[1].split()
    assert row[:4] == ["r1", "Running", "mixed_binpack", status["nodeName"]]


def test_a_sandbox_that_ends_gives_its_room_back(operating: Operating) -> None:
    operating.start_nodes(1, "--cpu", "2", "--memory", "8Gi", "--lifetime", "3s")
    operating.start_replica()
    operating.apply(a_request("first", cpu="2"))
    wait_until(lambda: operating.phase("first") == "Running", what="first runs")
    operating.apply(a_request("second", cpu="2"))

    wait_until(lambda: operating.phase("second") == "Running", what="second runs")

    assert operating.phase("first") == "Succeeded"
    assert operating.get("sbr", "first")["status"]["finishedTime"]
    assert operating.metric("a", "cubesched_flush_rescues_total") == 0


def test_a_node_that_refuses_is_left_out_and_the_request_goes_elsewhere(
    operating: Operating,
) -> None:
    operating.start_nodes(2, "--cpu", "8", "--memory", "16Gi", "--refuse-nodes", "node-000")
    operating.start_replica()
    operating.create_all(a_request(f"r{n}") for n in range(6))

    wait_until(lambda: operating.phases()["Running"] == 6, what="all run")

    for item in operating.items():
        assert item["status"]["nodeName"] == "node-001"
        refused = {refusal["node"] for refusal in item["status"].get("refusals", ())}
        assert refused <= {"node-000"}
