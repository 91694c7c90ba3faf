"""A wait that its client limited ends in time, with no node taken for it any more."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.scheduling.worlds import WALL_AT_START, World, a_policy, in_world, settle

from cubesched.api.timestamps import timestamp


def until(seconds: float) -> dict[str, Any]:
    return {"shutdownTime": timestamp(WALL_AT_START + seconds)}


def conditions(world: World, name: str = "r1") -> dict[str, tuple[str, str]]:
    found = world.status(name).get("conditions", ())
    return {c["type"]: (c["reason"], c["message"]) for c in found}


@in_world()
async def test_what_waits_when_its_time_comes_has_failed(world: World) -> None:
    world.start()
    world.server.create("r1", cpu="99", spec=until(30.0))
    await settle(29.0)
    assert (world.phase(), conditions(world)["Scheduled"][0]) == ("Pending", "NeverFits")

    await settle(2.0)
    status = world.status()
    assert (status["phase"], "nodeName" in status) == ("Failed", False)
    assert status["finishedTime"].startswith("2027-01-15T08:00:3")
    assert conditions(world)["Ready"] == (
        "Finished",
        "shutdownTime 2027-01-15T08:00:30Z passed before it was placed",
    )
    assert conditions(world)["Scheduled"][0] == "NeverFits", "what it waited for stays known"


@in_world()
async def test_no_node_is_reserved_for_one_whose_time_has_passed(world: World) -> None:
    world.start()
    world.server.create("r1", spec=until(-10.0))
    await settle(1.0)

    assert world.phases() == ["Failed"]


@in_world(nodes=("n1", "n2"))
async def test_one_that_loses_its_place_after_its_time_takes_no_other(world: World) -> None:
    world.server.latency_seconds = 0.01
    world.start()
    world.server.create("r1", cpu="8", spec=until(1.0))
    await settle(0.002)
    (put,) = world.server.puts
    first = put.status["nodeName"]
    world.server.create("other", phase="Bound", node=first, reservation={"cpuMillis": 8000})
    world.lag_seconds = 2.0  # its reservation is met when its time has passed
    await settle(0.1)
    world.lag_seconds = 0.001
    await settle(5.0)

    assert world.phases() == ["Reserved", "Pending", "Failed"]


@in_world()
async def test_what_is_held_back_by_its_client_ends_in_time_too(world: World) -> None:
    world.start()
    world.server.create("r1", spec={"schedulingGates": [{"name": "a/b"}], **until(20.0)})
    await settle(21.0)

    assert world.phase() == "Failed"
    assert conditions(world)["Scheduled"][0] == "Gated"


@pytest.mark.parametrize("phase", ["Bound", "Starting", "Running", "Paused", "Evicting"])
@in_world()
async def test_what_is_on_a_node_is_left_to_its_agent(world: World, phase: str) -> None:
    world.start()
    spec = {**until(10.0), "paused": phase == "Paused"}
    world.server.create("r1", phase=phase, node="n1", reservation={"nodeUID": "uid-n1"}, spec=spec)
    await settle(60.0)

    assert world.phases() == []


@in_world(lambda: a_policy(start_deadline_seconds=30.0))
async def test_what_comes_back_from_a_node_after_its_time_has_failed(world: World) -> None:
    world.start()
    world.server.create(
        "r1", phase="Bound", node="n1", reservation={"nodeUID": "uid-n1"}, spec=until(10.0)
    )
    await settle(32.0)

    assert world.phases() == ["Pending", "Failed"]
    assert conditions(world)["Scheduled"][0] == "StartDeadline"


@in_world()
async def test_only_the_owner_ends_the_wait(world: World) -> None:
    world.scheduler.share(("replica-x",))
    world.start()
    world.server.create("r1", spec=until(1.0))
    await settle(30.0)

    assert world.server.puts == []


@in_world()
async def test_a_time_that_is_none_is_an_invalid_spec_and_ends_nothing(world: World) -> None:
    world.start()
    world.server.create("r1", spec={"shutdownTime": "0000-01-01"})
    await settle(10.0)

    assert world.phase() == "Pending"
    assert conditions(world)["Scheduled"] == (
        "InvalidSpec",
        "spec.shutdownTime: found '0000-01-01', must be a time as in 2030-01-31T12:00:00Z",
    )


@in_world()
async def test_a_time_before_all_clocks_has_passed(world: World) -> None:
    world.start()
    world.server.create("r1", spec={"shutdownTime": "0001-01-01T00:00:00+23:59"})
    await settle(1.0)

    assert world.phase() == "Failed"
