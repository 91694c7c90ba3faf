"""Requests whose node is gone or silent: given back, marked or failed, never in doubt."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.scheduling.worlds import World, a_policy, in_world, settle

from cubesched.core.scheduler_settings import GuardSettings
from cubesched.policy.policyset import PolicySet
from cubesched.scheduling.upkeep import MOST_AT_ONCE

ON_N1 = {"nodeUID": "uid-n1"}
TO_RESUME: dict[str, Any] = {
    **ON_N1,
    "resume": "sbr-uid-r1.id-0",
    "paused": {"cpuMillis": 100, "memoryBytes": 0},
}
TAKEN = ("Starting", "Running", "Paused", "Evicting")


def impatient() -> PolicySet:
    """Reports are believed for 10 s, and a silent node has 20 s more."""
    return a_policy(guards=GuardSettings(metrics_max_age_seconds=10), node_lost_grace_seconds=20.0)


def placed(world: World, phase: str, name: str = "r1", node: str = "n1", **uid: Any) -> None:
    wish = {"paused": phase == "Paused"}
    world.server.create(name, phase=phase, node=node, reservation=uid or ON_N1, spec=wish)


def ready(world: World, name: str = "r1") -> tuple[str, str, str]:
    """Return status, reason and message of the condition `Ready`."""
    for condition in world.status(name).get("conditions", ()):
        if condition["type"] == "Ready":
            return condition["status"], condition["reason"], condition["message"]
    return "", "", ""


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


@pytest.mark.parametrize("phase", TAKEN)
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


@in_world(nodes=())
async def test_what_was_to_be_resumed_on_a_deleted_node_has_failed(world: World) -> None:
    world.start()
    placed(world, "Reserved", **TO_RESUME)
    for _ in range(10):
        await settle(1.0)
        world.fleet.progress(world.server.version)

    assert world.phases()[:1] == ["Paused"]
    assert world.phases()[-1] == "Failed"


@in_world(impatient, nodes=("n1", "n2"))
async def test_what_was_to_be_resumed_on_a_silent_node_is_paused_again(world: World) -> None:
    world.scheduler.policy_changed()
    placed(world, "Bound", **TO_RESUME)
    world.start()
    world.mute.add("n1")
    await settle(12.0)

    first = world.server.puts[0].status
    assert (first["phase"], first["nodeName"]) == ("Paused", "n1")
    assert [(c["type"], c["reason"]) for c in first["conditions"]] == [
        ("ResumeBlocked", "NodeNotReady")
    ]


# Node silent


@pytest.mark.parametrize("phase", ["Reserved", "Bound"])
@in_world(impatient, nodes=("n1", "n2"))
async def test_what_no_machine_runs_leaves_a_silent_node(world: World, phase: str) -> None:
    world.scheduler.policy_changed()
    world.start()
    world.mute.add("n1")
    await settle(12.0)
    placed(world, phase)
    await settle(1.0)

    first = world.server.puts[0].status
    assert (first["phase"], first["conditions"][0]["reason"]) == ("Pending", "NodeLost")
    assert "n1 has not reported since 2027-01-15T08:00:0" in first["conditions"][0]["message"]
    assert "nodeName" not in first


@pytest.mark.parametrize("phase", TAKEN)
@in_world(impatient, nodes=("n1", "n2"))
async def test_what_may_run_on_a_silent_node_says_so_once_and_fails_after_the_grace(
    world: World, phase: str
) -> None:
    world.scheduler.policy_changed()
    placed(world, phase)
    world.start()
    world.mute.add("n1")
    await settle(13.0)

    assert (world.phase(), *ready(world)[:2]) == (phase, "False", "NodeLost")
    assert "; failed at 2027-01-15T08:00:3" in ready(world)[2]
    await settle(15.0)
    assert world.phases() == [phase], "one write, whatever time passes"

    await settle(5.0)
    status = world.status()
    assert (status["phase"], status["nodeName"]) == ("Failed", "n1")
    assert ready(world)[:2] == ("False", "NodeLost")
    assert status["finishedTime"].startswith("2027-01-15T08:00:3")
    assert world.fleet.ledger.usage("n1").sandboxes == 0


@pytest.mark.parametrize(
    ("phase", "shown"),
    [
        ("Starting", ("False", "Starting")),
        ("Running", ("True", "Running")),
        ("Paused", ("False", "Paused")),
        ("Evicting", ("True", "Running")),
    ],
)
@in_world(impatient, nodes=("n1", "n2"))
async def test_a_node_that_comes_back_within_the_grace_has_lost_nothing(
    world: World, phase: str, shown: tuple[str, str]
) -> None:
    world.scheduler.policy_changed()
    placed(world, phase)
    world.start()
    world.mute.add("n1")
    await settle(20.0)
    world.mute.clear()
    await settle(3.0)

    assert (world.phase(), *ready(world)[:2]) == (phase, *shown)
    await settle(60.0)
    assert world.phases() == [phase, phase]


@in_world(impatient, nodes=("n1", "n2"))
async def test_silence_begins_anew_after_a_return(world: World) -> None:
    world.scheduler.policy_changed()
    placed(world, "Running")
    world.start()
    for _ in range(3):
        world.mute.add("n1")
        await settle(25.0)
        world.mute.clear()
        await settle(3.0)

    assert world.phase() == "Running"
    assert ready(world)[:2] == ("True", "Running")


@in_world(impatient, nodes=("n1", "n2"))
async def test_an_outage_of_redis_takes_nothing_from_anyone(world: World) -> None:
    world.scheduler.policy_changed()
    placed(world, "Running")
    placed(world, "Bound", "r2")
    world.start()
    await settle(1.0)
    world.is_beating = False
    await settle(250.0)
    world.is_beating = True
    world.mute.add("n1")  # reports a little later than the other
    await settle(5.0)
    world.mute.clear()
    await settle(5.0)

    assert world.server.puts == []


@in_world(impatient, nodes=("n1", "n2"))
async def test_an_outage_stops_the_clock_of_a_node_that_is_silent_already(world: World) -> None:
    world.scheduler.policy_changed()
    placed(world, "Running")
    world.start()
    world.mute.add("n1")
    await settle(15.0)
    world.is_beating = False
    await settle(250.0)
    world.is_beating = True
    await settle(10.0)
    assert world.phase() == "Running"

    await settle(10.0)
    assert world.phase() == "Failed"


@in_world(impatient, nodes=("n1", "n2"))
async def test_when_no_node_is_heard_none_is_called_silent(world: World) -> None:
    world.scheduler.policy_changed()
    placed(world, "Running")
    world.start()
    world.mute |= {"n1", "n2"}
    for _ in range(100):
        await settle(1.0)
        world.read_old_reports()

    assert world.server.puts == []


@in_world(impatient, nodes=("n1", "n2"))
async def test_only_the_owner_of_a_request_acts_on_silence(world: World) -> None:
    world.scheduler.policy_changed()
    world.scheduler.share(("replica-x",))
    placed(world, "Running")
    world.start()
    world.mute.add("n1")
    await settle(60.0)

    assert world.server.puts == []


@in_world(impatient, nodes=("n1", "n2"))
async def test_thousands_on_a_silent_node_are_written_to_a_few_at_a_time(world: World) -> None:
    world.scheduler.policy_changed()
    for number in range(120):
        placed(world, "Running", f"r{number}")
    world.server.latency_seconds = 0.5
    world.start()
    world.mute.add("n1")
    most = 0
    for _ in range(200):
        await settle(0.1)
        most = max(most, len(world.scheduler.inflight.writes))

    assert most == MOST_AT_ONCE
    assert all(ready(world, f"r{number}")[1] == "NodeLost" for number in range(120))
