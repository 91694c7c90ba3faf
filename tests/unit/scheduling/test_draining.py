"""Draining: what has not begun goes elsewhere, what runs is evicted, a few at a time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.scheduling.worlds import World, in_world, rejected, settle

from cubesched.scheduling import draining, upkeep

HALF = {"cpuMillis": 500, "memoryBytes": 1 << 29}


def placed(world: World, phase: str, name: str = "r1", node: str = "n1", **more: Any) -> None:
    world.server.create(
        name,
        phase=phase,
        node=node,
        reservation={"nodeUID": f"uid-{node}", **more},
        spec={"paused": phase == "Paused"},
    )


def drain(world: World, what: str, node: str = "n1") -> None:
    world.put_node(node, "MODIFIED", spec={"drain": what})


def agent_stops(world: World, name: str) -> None:
    """Do what the node's agent does once it has stopped what is evicted."""
    status = {
        key: value
        for key, value in world.status(name).items()
        if key not in {"nodeName", "reservation"}
    }
    world.server.change(name, status={**status, "phase": "Pending"})


def names_in(world: World, phase: str) -> list[str]:
    return sorted(name for name in world.server.objects if world.phase(name) == phase)


@pytest.mark.parametrize("what", ["Unstarted", "All"])
@pytest.mark.parametrize("phase", ["Reserved", "Bound"])
@in_world(nodes=("n1", "n2"))
async def test_what_has_not_begun_to_start_goes_elsewhere(
    world: World, phase: str, what: str
) -> None:
    placed(world, phase)
    await settle(0.1)
    drain(world, what)
    world.start()
    await settle(2.0)

    first = world.server.puts[0].status
    assert (first["phase"], "nodeName" in first, "reservation" in first) == (
        "Pending",
        False,
        False,
    )
    condition = first["conditions"][0]
    assert (condition["status"], condition["reason"]) == ("False", "Drained")
    assert condition["message"] == "SandboxNode n1 is being drained"
    assert (world.phase(), world.status()["nodeName"]) == ("Bound", "n2")


@pytest.mark.parametrize("phase", ["Running", "Paused"])
@in_world(nodes=("n1", "n2"))
async def test_what_runs_or_is_paused_is_evicted_and_counts_until_it_is_stopped(
    world: World, phase: str
) -> None:
    placed(world, phase, paused=HALF)
    await settle(0.1)
    before = world.fleet.ledger.usage("n1").cpu_millis
    drain(world, "All")
    world.start()
    await settle(5.0)

    assert world.phases() == ["Evicting"]
    status = world.status()
    assert status["reservation"]["id"] == "id-1"
    assert world.scheduled() == ("False", "Drained")
    assert world.fleet.ledger.usage("n1").cpu_millis == min(before, 500)

    agent_stops(world, "r1")
    world.server.change("r1", spec={"paused": False})
    await settle(2.0)
    assert (world.phase(), world.status()["nodeName"]) == ("Bound", "n2")


@pytest.mark.parametrize("what", ["None", "Unstarted"])
@pytest.mark.parametrize("phase", ["Running", "Paused"])
@in_world(nodes=("n1", "n2"))
async def test_nothing_that_runs_is_touched_unless_all_is_to_go(
    world: World, phase: str, what: str
) -> None:
    placed(world, phase)
    drain(world, what)
    world.start()
    await settle(10.0)

    assert world.phases() == []


@pytest.mark.parametrize("phase", ["Starting", "Evicting", "Unheard"])
@in_world(nodes=("n1", "n2"))
async def test_what_its_agent_is_busy_with_is_left_to_it(world: World, phase: str) -> None:
    placed(world, phase)
    drain(world, "All")
    world.start()
    await settle(10.0)

    assert world.phases() == []


@in_world(nodes=("n1", "n2"))
async def test_what_was_starting_is_evicted_once_it_runs(world: World) -> None:
    placed(world, "Starting")
    drain(world, "All")
    world.start()
    await settle(5.0)
    world.server.patch_status("r1", phase="Running")
    await settle(1.0)

    assert world.phases() == ["Evicting"]


@in_world(nodes=("n1", "n2"))
async def test_other_nodes_and_other_replicas_requests_are_left_alone(world: World) -> None:
    placed(world, "Running", "elsewhere", node="n2")
    drain(world, "All")
    world.start()
    await settle(2.0)
    assert world.phases("elsewhere") == []

    world.scheduler.share(("replica-x",))
    placed(world, "Running", "of-another-replica")
    await settle(10.0)
    assert world.server.puts == []


@in_world(nodes=("n1", "n2"))
async def test_sandboxes_are_stopped_a_few_at_a_time_on_one_node(world: World) -> None:
    for number in range(20):
        placed(world, "Running", f"r{number:02}", cpuMillis=10)
    drain(world, "All")
    world.start()
    await settle(5.0)
    first = names_in(world, "Evicting")
    assert len(first) == draining.EVICTIONS_PER_NODE

    for name in first[:3]:
        world.server.delete(name)
    await settle(1.0)
    assert len(names_in(world, "Evicting")) == draining.EVICTIONS_PER_NODE
    assert len(names_in(world, "Running")) == 20 - 3 - draining.EVICTIONS_PER_NODE


@in_world(nodes=tuple(f"n{number:02}" for number in range(20)))
async def test_sandboxes_are_stopped_a_few_at_a_time_in_all(world: World) -> None:
    for number in range(200):
        placed(world, "Running", f"r{number:03}", node=f"n{number % 20:02}", cpuMillis=10)
    for number in range(20):
        drain(world, "All", f"n{number:02}")
    world.start()
    await settle(10.0)

    assert len(names_in(world, "Evicting")) == draining.EVICTIONS_IN_ALL


@in_world(nodes=("n1", "n2"))
async def test_replicas_divide_what_may_be_stopped_at_a_time(world: World) -> None:
    world.scheduler.share((world.scheduler.identity, "replica-b"))
    for number in range(60):
        placed(world, "Running", f"r{number:02}", cpuMillis=10)
    drain(world, "All")
    world.start()
    await settle(5.0)

    evicted = names_in(world, "Evicting")
    assert len(evicted) == draining.EVICTIONS_PER_NODE // 2
    assert all(world.scheduler.owns(f"uid-{name}") for name in evicted)


@in_world(nodes=("n1", "n2"))
async def test_what_another_replica_evicts_is_its_own_share(world: World) -> None:
    world.scheduler.share((world.scheduler.identity, "replica-b"))
    others = [f"r{n}" for n in range(60) if not world.scheduler.owns(f"uid-r{n}")]
    for name in others:
        placed(world, "Evicting", name, cpuMillis=10)
    mine = next(f"r{n}" for n in range(60) if world.scheduler.owns(f"uid-r{n}"))
    placed(world, "Running", mine, cpuMillis=10)
    drain(world, "All")
    world.start()
    await settle(1.0)

    assert world.phases(mine) == ["Evicting"]


@in_world(nodes=("n1", "n2"))
async def test_evictions_that_are_being_written_count_like_written_ones(world: World) -> None:
    for number in range(20):
        placed(world, "Running", f"r{number:02}", cpuMillis=10)
    drain(world, "All")
    world.server.latency_seconds = 5.0
    world.start()
    await settle(4.0)

    assert len(world.server.puts) == draining.EVICTIONS_PER_NODE


@in_world(nodes=("n1", "n2"))
async def test_only_so_many_writes_are_under_way_at_once(world: World) -> None:
    for number in range(50):
        placed(world, "Bound", f"r{number:02}", cpuMillis=10)
    drain(world, "Unstarted")
    world.server.latency_seconds = 5.0
    world.start()
    await settle(4.0)

    assert len(world.server.puts) == upkeep.MOST_AT_ONCE


@in_world(nodes=("n1", "n2"))
async def test_a_machine_that_does_not_answer_holds_up_no_other_for_long(world: World) -> None:
    for number in range(10):
        placed(world, "Running", f"r{number:02}", cpuMillis=10)
    drain(world, "All")
    world.start()
    await settle(draining.EVICTION_SECONDS - 1.0)
    assert len(names_in(world, "Evicting")) == draining.EVICTIONS_PER_NODE

    await settle(3.0)
    assert len(names_in(world, "Evicting")) == 10


@in_world(nodes=("n1", "n2"))
async def test_a_drain_taken_back_evicts_nothing_more_and_what_has_begun_goes_on(
    world: World,
) -> None:
    for number in range(12):
        placed(world, "Running", f"r{number:02}", cpuMillis=10)
    drain(world, "All")
    world.start()
    await settle(1.0)
    drain(world, "None")
    for name in names_in(world, "Evicting"):
        agent_stops(world, name)
    await settle(30.0)

    assert len(names_in(world, "Running")) == 12 - draining.EVICTIONS_PER_NODE
    assert len(names_in(world, "Bound")) == draining.EVICTIONS_PER_NODE


@in_world(nodes=("n1", "n2"))
async def test_a_node_deleted_while_it_is_drained_is_drained_no_more(world: World) -> None:
    drain(world, "All")
    world.put_node("n1", "DELETED")

    assert not world.fleet.draining


@in_world(nodes=("n1", "n2"))
async def test_what_is_on_another_node_of_that_name_is_not_evicted_here(world: World) -> None:
    drain(world, "All")
    placed(world, "Running", nodeUID="a-newer-one")
    world.start()
    await settle(5.0)

    assert world.phases() == []


@in_world(nodes=("n1", "n2"))
async def test_a_write_that_the_server_rejects_is_tried_again_but_not_in_a_hurry(
    world: World,
) -> None:
    placed(world, "Running")
    drain(world, "All")
    world.server.otherwise = rejected
    world.start()
    await settle(31.0)

    assert 6 <= len(world.server.puts) <= 7


@in_world(nodes=("n1", "n2"))
async def test_nothing_is_moved_before_the_lists_are_complete(world: World) -> None:
    placed(world, "Running")
    drain(world, "All")
    await settle(0.1)
    world.fleet.ledger.reset()
    world.start()
    await settle(10.0)
    assert world.phases() == []

    world.list_requests()
    await settle(1.0)
    assert world.phases() == ["Evicting"]


@in_world(nodes=("n1", "n2"))
async def test_a_request_that_cannot_be_read_stays_where_it_is(world: World) -> None:
    world.server.create("r1", phase="Running", nodeName="n1")
    drain(world, "All")
    world.start()
    await settle(10.0)

    assert world.server.puts == []


@in_world(nodes=("n1", "n2"))
async def test_with_room_nowhere_else_the_evicted_wait_and_say_so(world: World) -> None:
    placed(world, "Running", "large", node="n2", cpuMillis=8000)
    placed(world, "Running")
    drain(world, "All")
    world.start()
    await settle(1.0)
    agent_stops(world, "r1")
    await settle(5.0)

    assert world.phase() == "Pending"
    assert world.scheduled() == ("False", "Unschedulable")


# What was to be resumed


@pytest.mark.parametrize("phase", ["Reserved", "Bound"])
@in_world(nodes=("n1", "n2"))
async def test_what_was_to_be_resumed_is_paused_again_and_then_evicted(
    world: World, phase: str
) -> None:
    placed(world, phase, resume="sbr-uid-r1.x", paused=HALF)
    world.start()
    drain(world, "All")
    await settle(8.0)

    assert world.phases() == ["Paused", "Evicting"]


@in_world(nodes=("n1", "n2"))
async def test_what_is_to_be_resumed_may_be_when_only_the_unstarted_are_to_go(
    world: World,
) -> None:
    placed(world, "Bound", resume="sbr-uid-r1.x", paused=HALF)
    world.start()
    drain(world, "Unstarted")
    await settle(20.0)

    assert world.phases() == []
