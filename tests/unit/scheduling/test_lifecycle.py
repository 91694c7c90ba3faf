"""Bindings that come to nothing: taken back or ended once, by their owner, never in doubt."""

from __future__ import annotations

import pytest
from tests.unit.scheduling.worlds import World, a_policy, in_world, rejected, settle

ON_N1 = {"nodeUID": "uid-n1"}


def placed(world: World, phase: str, name: str = "r1", node: str = "n1", **uid: str) -> None:
    world.server.create(name, phase=phase, node=node, reservation=uid or ON_N1)


# Not started in time


@in_world(lambda: a_policy(start_deadline_seconds=30.0))
async def test_what_is_not_started_in_time_is_pending_again(world: World) -> None:
    world.start()
    placed(world, "Bound")
    await settle(29.5)
    assert world.phases() == []

    await settle(1.0)
    first = world.server.puts[0].status
    assert (first["phase"], "nodeName" in first, "reservation" in first) == (
        "Pending",
        False,
        False,
    )
    assert first["conditions"][0]["reason"] == "StartDeadline"


@in_world(lambda: a_policy(start_deadline_seconds=30.0))
async def test_a_new_reservation_has_its_own_deadline(world: World) -> None:
    world.start()
    placed(world, "Bound")
    await settle(20.0)
    reservation = world.status()["reservation"]
    world.server.patch_status("r1", phase="Reserved", reservation={**reservation, "id": "id-2"})
    world.server.patch_status("r1", phase="Bound")
    await settle(20.0)

    assert world.phases() == []


@pytest.mark.parametrize("phase", ["Starting", "Running", "Paused", "Evicting", "Unheard"])
@in_world(lambda: a_policy(start_deadline_seconds=30.0))
async def test_what_its_agent_has_claimed_is_never_taken_back(world: World, phase: str) -> None:
    world.start()
    placed(world, "Bound")
    await settle(29.0)
    world.server.patch_status("r1", phase=phase)
    await settle(300.0)

    assert world.phases() == []


@in_world(lambda: a_policy(start_deadline_seconds=1.0))
async def test_only_the_owner_takes_it_back(world: World) -> None:
    world.scheduler.share(("replica-x",))
    world.start()
    placed(world, "Bound")
    await settle(10.0)

    assert world.phases() == []


@in_world(lambda: a_policy(start_deadline_seconds=1.0))
async def test_a_write_that_the_server_rejects_is_tried_again_but_not_in_a_hurry(
    world: World,
) -> None:
    world.server.otherwise = rejected
    world.start()
    placed(world, "Bound")
    await settle(31.0)

    assert 6 <= len(world.server.puts) <= 7


# Node gone


@pytest.mark.parametrize("phase", ["Reserved", "Bound"])
@in_world(nodes=("n1", "n2"))
async def test_what_no_machine_runs_is_pending_when_its_node_is_deleted(
    world: World, phase: str
) -> None:
    placed(world, phase)
    await settle(0.1)
    world.start()
    world.put_node("n1", "DELETED")
    await settle(5.0)

    first = world.server.puts[0].status
    assert (first["phase"], first["conditions"][0]["reason"]) == ("Pending", "NodeLost")
    assert (world.phase(), world.status()["nodeName"]) == ("Bound", "n2")


@pytest.mark.parametrize("phase", ["Starting", "Running", "Paused", "Evicting"])
@in_world()
async def test_what_the_machine_took_with_it_has_failed(world: World, phase: str) -> None:
    placed(world, phase)
    world.start()
    await settle(0.1)
    world.put_node("n1", "DELETED")
    await settle(1.0)

    status = world.status()
    assert (status["phase"], status["nodeName"]) == ("Failed", "n1")
    condition = status["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "Ready",
        "False",
        "NodeLost",
    )
    assert status["finishedTime"].endswith("Z")
    assert world.fleet.ledger.usage("n1").sandboxes == 0


@in_world()
async def test_a_phase_of_a_newer_version_is_not_ours_to_end(world: World) -> None:
    placed(world, "Unheard")
    world.start()
    await settle(0.1)
    world.put_node("n1", "DELETED")
    await settle(20.0)

    assert world.phases() == []


@in_world()
async def test_a_node_recreated_under_its_name_is_another_machine(world: World) -> None:
    placed(world, "Running")
    world.start()
    await settle(0.1)
    world.put_node("n1", "DELETED")
    world.put_node("n1", "ADDED", uid="a-new-one")
    await settle(5.0)

    assert world.phase() == "Failed"


@in_world()
async def test_a_node_that_was_deleted_unseen_is_lost_once_the_nodes_are_known_that_far(
    world: World,
) -> None:
    world.start()
    placed(world, "Running", node="n9", nodeUID="uid-n9")
    await settle(60.0)
    assert world.phases() == [], "n9 may be newer than what is known of the nodes"

    world.fleet.progress(world.server.version)
    await settle(5.0)
    assert world.phase() == "Failed"


@in_world()
async def test_a_node_that_is_only_told_late_loses_nothing(world: World) -> None:
    world.start()
    placed(world, "Running", node="n9", nodeUID="uid-n9")
    await settle(30.0)
    world.put_node("n9")
    await settle(30.0)

    assert world.phases() == []


@in_world()
async def test_nothing_is_ended_before_both_lists_are_complete(world: World) -> None:
    placed(world, "Running", node="n9", nodeUID="uid-n9")
    await settle(0.1)
    world.fleet.progress(world.server.version)
    world.fleet.ledger.reset()
    world.start()
    await settle(10.0)
    assert world.phases() == []

    world.list_requests()
    world.fleet.nodes_listed = False
    await settle(10.0)
    assert world.phases() == []

    world.fleet.nodes_listed = True
    await settle(1.0)
    assert world.phase() == "Failed"


@in_world()
async def test_an_agent_that_refuses_gives_the_request_back_and_is_passed_over(
    world: World,
) -> None:
    world.put_node("n2")
    world.beat("n2", ago_seconds=1.0)
    world.beat("n2")
    world.start()
    world.server.create("r1")
    await settle(1.0)
    first = world.status()["nodeName"]
    status = {key: value for key, value in world.status().items()
              if key not in {"nodeName", "reservation"}}  # fmt: skip
    refusal = {"node": first, "reason": "NoRoom", "time": "2027-01-15T08:00:00Z"}
    world.server.change("r1", status={**status, "phase": "Pending", "refusals": [refusal]})
    await settle(1.0)

    assert world.phase() == "Bound"
    assert world.status()["nodeName"] != first


# What was to be resumed

TO_RESUME = {
    **ON_N1,
    "resume": "sbr-uid-r1.id-0",
    "paused": {"cpuMillis": 100, "memoryBytes": 0},
}


@in_world(lambda: a_policy(start_deadline_seconds=30.0))
async def test_what_is_not_resumed_in_time_is_paused_again_and_keeps_its_place(
    world: World,
) -> None:
    world.start()
    placed(world, "Bound", **TO_RESUME)  # type: ignore[arg-type]
    await settle(31.0)

    first = world.server.puts[0].status
    assert (first["phase"], first["nodeName"]) == ("Paused", "n1")
    assert first["reservation"]["resume"] == TO_RESUME["resume"]
    assert [(c["type"], c["reason"]) for c in first["conditions"]] == [
        ("ResumeBlocked", "NodeNotReady")
    ]


@in_world(nodes=())
async def test_what_was_to_be_resumed_on_a_deleted_node_has_failed(world: World) -> None:
    world.start()
    placed(world, "Reserved", **TO_RESUME)  # type: ignore[arg-type]
    for _ in range(10):
        await settle(1.0)
        world.fleet.progress(world.server.version)

    assert world.phases()[:1] == ["Paused"]
    assert world.phases()[-1] == "Failed"
