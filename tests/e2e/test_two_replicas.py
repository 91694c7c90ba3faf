"""Two replicas fill a fleet: nothing over-committed, nothing lost, nothing saved by the flush."""

from __future__ import annotations

from collections import Counter

from tests.e2e.operating import Operating, a_request, wait_until

NODES, REQUESTS = 20, 300


def test_two_replicas_fill_a_fleet_without_over_committing_it(operating: Operating) -> None:
    operating.start_nodes(NODES, "--cpu", "16", "--memory", "64Gi")
    operating.start_auditor()
    for name in ("a", "b"):
        operating.launch_replica(name)
    for name in ("a", "b"):
        operating.wait_ready(name)
    # 320 cpus; the first 300 fill 300 of them, 40 more want 1 cpu each: 20 fit, 20 wait.
    operating.create_all(a_request(f"r{n:03}") for n in range(REQUESTS + 40))

    wait_until(
        lambda: operating.phases() == Counter(Running=320, Pending=20),
        seconds=120,
        what="the fleet is full",
    )
    wait_until(
        lambda: all(
            operating.reason(item["metadata"]["name"]) == "Unschedulable"
            for item in operating.items()
            if item.get("status", {}).get("phase", "Pending") == "Pending"
        ),
        what="the others say why",
    )

    writers = Counter(
        item["status"]["reservation"]["replica"].split("-")[0]
        for item in operating.items()
        if item["status"].get("reservation")
    )
    assert min(writers["a"], writers["b"]) > REQUESTS // 5
    for name in ("a", "b"):
        assert operating.metric(name, "cubesched_flush_rescues_total") == 0
        assert operating.metric(name, "cubesched_overcommitted_nodes") == 0
    summary = operating.audit()
    assert summary["over_committed_nodes"] == 0
    assert summary["violations"] == 0
    assert summary["starts"] >= 320


def test_a_killed_replica_loses_nothing(operating: Operating) -> None:
    operating.start_nodes(10, "--cpu", "16", "--memory", "64Gi")
    operating.start_auditor()
    operating.start_replica("a")
    operating.start_replica("b")

    operating.create_all(a_request(f"r{n:03}") for n in range(60))
    wait_until(lambda: operating.phases()["Running"] >= 5, what="work is under way", every=0.02)
    operating.processes.kill("replica-a")
    operating.create_all(a_request(f"s{n:03}") for n in range(60))

    wait_until(lambda: operating.phases()["Running"] == 120, seconds=60, what="all run")
    summary = operating.audit()
    assert summary["violations"] == 0
    assert "Reserved" not in operating.phases()


def test_a_stopped_replica_gives_its_lease_up_at_once(operating: Operating) -> None:
    operating.start_nodes(2)
    operating.start_replica("a")
    operating.start_replica("b")
    leases = ("get", "leases", "-n", "cubesched-system", "-o", "name")
    wait_until(lambda: len(operating.kubectl(*leases).stdout.split()) == 2, what="two leases")

    code, _ = operating.processes.stop("replica-a")

    assert code == 0
    assert len(operating.kubectl(*leases).stdout.split()) == 1
    operating.create_all(a_request(f"r{n}") for n in range(6))
    wait_until(lambda: operating.phases()["Running"] == 6, seconds=20, what="b takes it all up")
