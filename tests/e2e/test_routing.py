"""Routing records follow what runs, through outages and crashes; nothing waits for them."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from redis import Redis
from tests.e2e.operating import Operating, a_request, wait_until

from cubesched.adapters.routes.publisher import KEY
from cubesched.local import LocalControlPlane


def records(operating: Operating) -> dict[str, dict[str, Any]]:
    """Return what a proxy finds, by the requests' names."""
    with Redis.from_url(operating.cluster.redis_url) as redis:
        stored = redis.hgetall(KEY)
    found = {name.decode(): json.loads(value) for name, value in stored.items()}
    running = {item["status"].get("sandboxID"): item for item in operating.items()}
    for sandbox, record in found.items():
        assert sandbox not in running or record["uid"] == running[sandbox]["metadata"]["uid"]
    return {record["name"]: {**record, "sandbox": name} for name, record in found.items()}


def wait_until_usable(operating: Operating, *replicas: str, nodes: int) -> None:
    """Return when these replicas have seen every node alive: they then go on without Redis."""
    for name in replicas:
        usable = partial(operating.metric, name, "cubesched_nodes", state="ok")
        wait_until(lambda: usable() == nodes, what=f"{name} has seen them alive")  # noqa: B023


def test_a_record_stands_while_the_sandbox_runs_and_tells_when_it_is_paused(
    operating: Operating,
) -> None:
    operating.start_nodes(1, "--address", "10.1.2.3")
    operating.start_replica()
    operating.apply(a_request("r1"), a_request("r2"))
    wait_until(lambda: operating.phases()["Running"] == 2, what="both run")
    wait_until(lambda: len(records(operating)) == 2, seconds=2, what="both have records")

    found, stored = records(operating)["r1"], operating.get("sbr", "r1")
    assert found == {
        "sandbox": stored["status"]["sandboxID"],
        "state": "Running",
        "node": "node-000",
        "address": "10.1.2.3",
        "endpoint": stored["status"]["endpoint"],
        "namespace": "default",
        "name": "r1",
        "uid": stored["metadata"]["uid"],
        "createdAt": stored["metadata"]["creationTimestamp"],
    }

    operating.kubectl("patch", "sbr", "r1", "--type=merge", "-p", '{"spec": {"paused": true}}')
    wait_until(lambda: records(operating)["r1"]["state"] == "Paused", what="it says paused")
    assert records(operating)["r1"]["endpoint"] == ""
    operating.kubectl("patch", "sbr", "r1", "--type=merge", "-p", '{"spec": {"paused": false}}')
    wait_until(lambda: records(operating)["r1"]["state"] == "Running", what="it says running")
    assert records(operating)["r1"]["sandbox"] == found["sandbox"]

    operating.kubectl("delete", "sbr", "r1")
    wait_until(lambda: set(records(operating)) == {"r2"}, seconds=2, what="one record is gone")


def test_a_sandbox_that_ends_loses_its_record(operating: Operating) -> None:
    operating.start_nodes(1, "--lifetime", "2s")
    operating.start_replica()
    operating.apply(a_request("r1"))
    wait_until(lambda: "r1" in records(operating), what="it has a record")
    wait_until(lambda: operating.phase("r1") == "Succeeded", what="it ends")

    wait_until(lambda: records(operating) == {}, seconds=2, what="the record is gone")


def test_what_runs_while_redis_is_away_has_its_record_when_it_is_back(
    operating: Operating, control_plane: LocalControlPlane
) -> None:
    operating.start_nodes(2)
    operating.start_replica()
    wait_until_usable(operating, "a", nodes=2)
    operating.apply(a_request("before"))
    wait_until(lambda: "before" in records(operating), what="it has a record")
    control_plane.kill_redis()
    try:
        operating.create_all(a_request(f"r{number}") for number in range(6))
        wait_until(lambda: operating.phases()["Running"] == 7, seconds=10, what="all run")
        operating.kubectl("delete", "sbr", "r0")
        wait_until(lambda: operating.metric("a", "cubesched_routes_unwritten") > 0, what="told")
    finally:
        control_plane.start_redis()

    names = {"before", *(f"r{number}" for number in range(1, 6))}
    wait_until(lambda: set(records(operating)) == names, what="all have records")
    wait_until(lambda: operating.metric("a", "cubesched_routes_unwritten") == 0, what="told")


def test_the_next_owner_writes_what_a_killed_replica_could_not(
    operating: Operating, control_plane: LocalControlPlane
) -> None:
    operating.start_nodes(2)
    operating.start_replica("a")
    operating.start_replica("b")
    wait_until_usable(operating, "a", "b", nodes=2)
    operating.apply(a_request("ends"))
    wait_until(lambda: "ends" in records(operating), what="it has a record")
    control_plane.kill_redis()
    try:
        operating.create_all(a_request(f"r{number}") for number in range(10))
        wait_until(lambda: operating.phases()["Running"] == 11, seconds=20, what="all run")
        operating.processes.kill("replica-a")
        operating.kubectl("delete", "sbr", "ends")
    finally:
        control_plane.start_redis()

    names = {f"r{number}" for number in range(10)}
    wait_until(lambda: set(records(operating)) == names, seconds=40, what="all is as it should be")


def test_what_ended_while_no_replica_ran_is_cleared_up(operating: Operating) -> None:
    operating.start_nodes(1)
    operating.start_replica("a")
    operating.apply(a_request("r1"), a_request("r2"))
    wait_until(lambda: len(records(operating)) == 2, what="both have records")
    operating.processes.kill("replica-a")
    operating.kubectl("delete", "sbr", "r1")

    operating.start_replica("b")

    wait_until(lambda: set(records(operating)) == {"r2"}, seconds=40, what="one record is gone")
