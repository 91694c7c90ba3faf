"""What no agent has claimed in time is taken back, by its owner alone, and never in a hurry."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.scheduling.worlds import (
    WALL_AT_START,
    World,
    a_policy,
    in_world,
    rejected,
    settle,
)

from cubesched.api.timestamps import timestamp

ON_N1 = {"nodeUID": "uid-n1"}
TO_RESUME = {
    **ON_N1,
    "resume": "sbr-uid-r1.id-0",
    "paused": {"cpuMillis": 100, "memoryBytes": 0},
}


def placed(world: World, phase: str, **reservation: Any) -> None:
    world.server.create("r1", phase=phase, node="n1", reservation=reservation or ON_N1)


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
    world.server.change("r1", spec={"paused": phase == "Paused"})
    world.server.patch_status("r1", phase=phase)
    await settle(300.0)

    assert world.phases() == []


@in_world(lambda: a_policy(start_deadline_seconds=300.0))
async def test_what_its_agent_was_to_confirm_is_taken_back_at_its_shutdown_time(
    world: World,
) -> None:
    world.start()
    world.server.create(
        "r1",
        phase="Reserved",
        node="n1",
        reservation={**ON_N1, "confirmation": "agent"},
        spec={"shutdownTime": timestamp(WALL_AT_START + 10.0)},
    )
    await settle(12.0)

    assert world.phases()[-2:] == ["Pending", "Failed"]
    assert world.scheduled() == ("False", "StartDeadline")


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


@in_world(lambda: a_policy(start_deadline_seconds=30.0))
async def test_what_is_not_resumed_in_time_is_paused_again_and_keeps_its_place(
    world: World,
) -> None:
    world.start()
    placed(world, "Bound", **TO_RESUME)
    await settle(31.0)

    first = world.server.puts[0].status
    assert (first["phase"], first["nodeName"]) == ("Paused", "n1")
    assert first["reservation"]["resume"] == TO_RESUME["resume"]
    assert [(c["type"], c["reason"]) for c in first["conditions"]] == [
        ("ResumeBlocked", "NodeNotReady")
    ]
