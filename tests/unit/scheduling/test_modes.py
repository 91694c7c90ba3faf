"""Who confirms: the operator, the node's agent, or nobody; and when a replica says which."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.fleet.objects import a_request_dict, as_json
from tests.unit.scheduling.worlds import (
    ME,
    World,
    a_policy,
    in_world,
    lost_after_landing,
    settle,
    unknown,
)

from cubesched.core.scheduler_settings import Confirmation
from cubesched.policy.policyset import PolicySet
from cubesched.scheduling import modes
from cubesched.scheduling.reservations import OVERDUE_SECONDS


def asks_for(mode: str, **settings: Any) -> PolicySet:
    return a_policy(confirmation=Confirmation(mode), **settings)


def by_agents() -> PolicySet:
    return asks_for("agent", start_deadline_seconds=30.0)


def directly() -> PolicySet:
    return asks_for("none")


def switch_to(world: World, mode: str) -> None:
    world.policy.current = asks_for(mode)
    world.scheduler.policy_changed()


def for_its_agent(world: World, name: str, *, cpu: int = 1000, replica: str = "replica-x") -> None:
    """Another replica's reservation stands that an agent is to confirm."""
    world.server.create(
        name,
        phase="Reserved",
        node="n1",
        reservation={
            "id": f"id-of-{name}",
            "replica": replica,
            "cpuMillis": cpu,
            "memoryBytes": 1,
            "confirmation": "agent",
        },
    )


# The agent confirms


@in_world(by_agents)
async def test_what_the_agent_is_to_confirm_is_reserved_and_then_left_alone(world: World) -> None:
    world.start()
    world.server.create("r1")
    await settle(20.0)

    assert world.phases() == ["Reserved"]
    status = world.status()
    assert status["reservation"]["confirmation"] == "agent"
    assert float(status["score"]) > 0
    assert world.scheduled() == ("", "")


@in_world(by_agents)
async def test_the_budget_counts_until_the_writer_has_met_and_checked_it(world: World) -> None:
    world.lag_seconds = 1.0
    world.start()
    world.server.create("r1")
    await settle(1.9)
    assert world.scheduler.reservations.unresolved == 1

    await settle(0.2)
    assert world.phase() == "Reserved"
    assert world.scheduler.reservations.unresolved == 0
    assert world.fleet.assumed == 0


@in_world(lambda: asks_for("agent", max_in_flight=1))
async def test_standing_reservations_of_agents_take_no_budget(world: World) -> None:
    world.start()
    for number in range(5):
        world.server.create(f"r{number}")
    await settle()

    assert {world.phase(f"r{number}") for number in range(5)} == {"Reserved"}


@in_world(by_agents, nodes=("n1", "n2"))
async def test_what_lost_its_room_moves_on_though_the_agent_would_confirm(world: World) -> None:
    world.start()
    world.server.create("r1", cpu="6")
    await settle(0.0035)  # reserved on the server, not met yet
    chosen = world.server.puts[0].status["nodeName"]
    room = {"id": "id-thief", "replica": "replica-x", "cpuMillis": 3000}
    stolen = a_request_dict("thief", version=90, phase="Bound", node=chosen, reservation=room)
    world.fleet.ledger.event("ADDED", as_json(stolen), 101)
    await settle()

    moved = world.status()
    assert world.phases() == ["Reserved", "Reserved"]
    assert {chosen, moved["nodeName"]} == {"n1", "n2"}
    assert moved["reservation"]["id"] == "id-of-mine-2"
    assert moved["reservation"]["confirmation"] == "agent"


@in_world(by_agents)
async def test_overdue_ones_are_undone_until_the_rest_fits_and_then_left_alone(
    world: World,
) -> None:
    for_its_agent(world, "a", cpu=5000)
    for_its_agent(world, "b", cpu=4000)
    world.start()
    await settle(OVERDUE_SECONDS - 0.5)
    assert not world.server.puts

    await settle(10.0)
    undone, left = ("a", "b") if world.phases("a") else ("b", "a")
    assert world.phases(undone)[0] == "Pending"
    assert world.phases(left) == []
    assert "Bound" not in world.phases(undone)


@in_world(by_agents)
async def test_many_that_are_left_to_agents_keep_no_other_from_being_evaluated(
    world: World,
) -> None:
    for number in range(20):
        for_its_agent(world, f"a{number}", cpu=1)
    world.server.create(
        "old", phase="Reserved", node="n1", reservation={"id": "id-old", "replica": "replica-x"}
    )
    world.start()
    await settle(OVERDUE_SECONDS + 0.5)

    assert world.phases("old") == ["Bound"]


@in_world(by_agents)
async def test_a_claim_that_never_comes_is_not_waited_for_for_ever(world: World) -> None:
    world.start()
    for_its_agent(world, "r1")
    await settle(29.5)
    assert world.phases() == []

    await settle(1.0)
    first = world.server.puts[0].status
    assert (first["phase"], "nodeName" in first) == ("Pending", False)
    assert first["conditions"][0]["reason"] == "StartDeadline"


@in_world(by_agents)
async def test_a_claim_resolves_it_and_is_announced_by_the_writer_alone(world: World) -> None:
    world.start()
    world.server.create("r1")
    for_its_agent(world, "r2")
    await settle()
    world.server.patch_status("r1", phase="Starting")
    world.server.patch_status("r2", phase="Starting")
    await settle(60.0)

    assert world.phases() == ["Reserved"]
    assert world.is_at_rest()
    assert world.events.notes == [("r1", "Bound", "bound to n1")]


@in_world(by_agents)
async def test_after_a_switch_agents_keep_what_was_reserved_for_them(world: World) -> None:
    for_its_agent(world, "r1", replica=ME)
    switch_to(world, "operator")
    world.start()
    world.server.create("r2")
    await settle(10.0)

    assert world.phases("r1") == []
    assert world.phases("r2") == ["Reserved", "Bound"]
    assert "confirmation" not in world.status("r2")["reservation"]


@pytest.mark.parametrize(
    ("mode", "stamped"), [("operator", None), ("agent", "agent"), ("none", None)]
)
@in_world()
async def test_a_resume_is_confirmed_as_everything_reserved_is_now(
    world: World, mode: str, stamped: str | None
) -> None:
    world.policy.current = asks_for(mode)
    world.server.create(
        "r1",
        phase="Paused",
        node="n1",
        reservation={"id": "id-1", "nodeUID": "uid-n1", "cpuMillis": 1000, "confirmation": "none"},
        sandboxID="sbr-uid-r1.id-1",
        spec={"paused": False},
    )
    world.start()
    await settle()

    reserved = world.server.puts[0].status
    assert reserved["phase"] == "Reserved"
    assert reserved["reservation"]["resume"] == "sbr-uid-r1.id-1"
    assert reserved["reservation"].get("confirmation") == stamped
    assert world.scheduler.modes.directly_bound == set()


# Nobody confirms


@in_world(directly)
async def test_without_confirmation_one_write_binds(world: World) -> None:
    world.start()
    world.server.create("r1")
    await settle()

    assert world.phases() == ["Bound"]
    assert world.status()["reservation"]["confirmation"] == "none"
    assert world.scheduled() == ("True", "Bound")
    assert world.status()["explanation"]
    assert world.events.notes == [("r1", "Bound", "bound to n1")]
    assert world.is_at_rest()


@in_world(directly)
async def test_as_long_as_one_lease_shows_another_revision_the_operator_confirms(
    world: World,
) -> None:
    world.everyone_runs = False
    world.start()
    world.server.create("r1")
    await settle()
    assert world.phases() == ["Reserved", "Bound"]
    assert "confirmation" not in world.status()["reservation"]

    world.everyone_runs = True
    world.server.create("r2")
    await settle()
    assert world.phases("r2") == ["Bound"]


@in_world(directly)
async def test_a_replica_stops_binding_directly_at_once(world: World) -> None:
    world.start()
    world.server.create("r1")
    await settle()
    switch_to(world, "operator")
    world.server.create("r2")
    await settle()

    assert world.phases("r2") == ["Reserved", "Bound"]


@in_world(directly)
async def test_a_direct_binding_with_a_lost_reply_lands_once(world: World) -> None:
    world.server.script.append(lost_after_landing)
    world.start()
    world.server.create("r1")
    await settle(5.0)

    assert world.phase() == "Bound"
    assert world.is_at_rest()


@in_world(directly)
async def test_a_direct_binding_is_not_sent_again_once_the_mode_has_changed(world: World) -> None:
    world.server.script.append(unknown)
    world.start()
    world.server.create("r1")
    await settle(0.1)
    switch_to(world, "operator")
    await settle(5.0)

    assert world.phases() == ["Bound", "Reserved", "Bound"]
    assert "confirmation" not in world.status()["reservation"]
    assert world.is_at_rest()


@in_world(directly)
async def test_what_another_replica_bound_directly_is_a_conflict_and_no_event(
    world: World,
) -> None:
    world.start()
    world.server.create("r1")
    await asyncio.sleep(0.0015)  # decided; its write is on its way
    world.server.patch_status(
        "r1", phase="Bound", nodeName="n1", reservation={"id": "x", "replica": "replica-x"}
    )
    await settle()

    assert ("cubesched_bind_conflicts_total", {"profile": "a-profile", "kind": "write"}) in (
        world.meter.labels
    )
    assert world.events.notes == []


@in_world(directly)
async def test_what_was_bound_directly_is_known_until_the_last_is_gone(world: World) -> None:
    world.start()
    for name in ("r1", "r2"):
        world.server.create(name)
    await settle()
    known = world.scheduler.modes.directly_bound
    assert known == {"uid-r1", "uid-r2"}

    world.server.patch_status("r1", phase="Running")
    await settle()
    assert known == {"uid-r1", "uid-r2"}

    world.server.patch_status("r1", phase="Succeeded")
    world.server.delete("r2")
    await settle()
    assert known == set()


# What is said of it


@in_world(directly)
async def test_each_change_of_the_guarantee_is_told_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []
    world.scheduler.modes.on_note.append(lambda: told.append(world.scheduler.modes.note))
    caplog.set_level(logging.INFO, logger=modes.__name__)
    world.everyone_runs = False
    world.start()
    await settle(2.0)
    world.everyone_runs = True
    world.server.create("r1")
    await settle(2.0)
    switch_to(world, "agent")
    await settle(2.0)
    world.server.patch_status("r1", phase="Succeeded")
    await settle(2.0)

    assert told == [modes.NOT_YET, modes.DIRECT, modes.DIRECT_LEFT, ""]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3 + ["INFO"]


@in_world(directly)
async def test_waiting_for_others_and_what_is_left_are_told_together(world: World) -> None:
    world.start()
    world.server.create("r1")
    await settle()
    world.everyone_runs = False

    assert world.scheduler.modes.note == f"{modes.NOT_YET} {modes.DIRECT_LEFT}"


@in_world()
async def test_without_a_policy_the_operator_confirms(world: World) -> None:
    world.policy.current = None

    assert world.scheduler.modes.current is Confirmation.OPERATOR
    assert world.scheduler.modes.note == ""


@pytest.mark.parametrize("mode", ["operator", "agent"])
@in_world()
async def test_the_exact_modes_need_nobody_elses_lease(world: World, mode: str) -> None:
    world.everyone_runs = False
    world.policy.current = replace(asks_for(mode), revision="another")

    assert world.scheduler.modes.current == mode
    assert world.scheduler.modes.exact == mode
    assert world.scheduler.modes.note == ""
