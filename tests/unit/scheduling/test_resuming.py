"""Resuming: reserved in full on the same node, or told why not, at no cost meanwhile."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.unit.fleet.objects import GIB, a_reservation
from tests.unit.scheduling.worlds import (
    ME,
    WALL_AT_START,
    World,
    a_policy,
    in_world,
    lost_after_landing,
    settle,
    unknown,
)

from cubesched.api.timestamps import timestamp
from cubesched.fleet.quarantine import Quarantine
from cubesched.scheduling.resuming import LOOKS_AT_ONCE, Resuming

NAME = "sbr-uid-r1.id-1"
PAUSED_CONDITION = {"type": "Ready", "status": "False", "reason": "Paused"}


def paused(
    world: World, name: str = "r1", *, wants: bool = True, cpu: int = 1000, **fields: Any
) -> None:
    """Store a paused request of 1000 millis that keeps 400, and wants to be resumed."""
    reservation = {
        "nodeUID": "uid-n1",
        "cpuMillis": cpu,
        "paused": {"cpuMillis": min(cpu, 400), "memoryBytes": GIB // 2},
        **fields.pop("reservation", {}),
    }
    world.server.create(
        name,
        phase="Paused",
        node="n1",
        reservation=reservation,
        sandboxID=f"sbr-uid-{name}.id-1",
        conditions=[PAUSED_CONDITION],
        **{"spec": {"paused": not wants}, **fields},
    )


def others(world: World, cpu_millis: int, name: str = "others") -> None:
    """Let others take so much of n1, which has 8000."""
    reservation = {"nodeUID": "uid-n1", "cpuMillis": cpu_millis, "memoryBytes": 1}
    world.server.create(name, phase="Running", node="n1", reservation=reservation)


def blocked_by(world: World, name: str = "r1") -> tuple[str, str]:
    for condition in world.status(name).get("conditions", ()):
        if condition["type"] == "ResumeBlocked":
            return condition["reason"], condition["message"]
    return "", ""


def part_of(world: World) -> Resuming:
    return next(part for part in world.scheduler.parts if isinstance(part, Resuming))


# Reserved, confirmed


@in_world()
async def test_a_resume_is_reserved_in_full_under_a_new_id_and_confirmed(world: World) -> None:
    world.start()
    paused(world)
    await settle()

    assert world.phases() == ["Reserved", "Bound"]
    first = world.server.puts[0].status
    assert first["nodeName"] == "n1"
    assert first["sandboxID"] == NAME
    assert first["conditions"] == [PAUSED_CONDITION]
    assert first["reservation"] == {
        **a_reservation(nodeUID="uid-n1"),
        "id": "id-of-mine-1",
        "replica": ME,
        "time": first["reservation"]["time"],
        "paused": {"cpuMillis": 400, "memoryBytes": GIB // 2},
        "resume": NAME,
    }
    assert world.fleet.ledger.usage("n1").cpu_millis == 1000
    assert world.is_at_rest()


@in_world()
async def test_the_second_resume_carries_the_name_of_the_first_sandbox(world: World) -> None:
    world.start()
    paused(world, reservation={"id": "id-9", "resume": NAME})
    await settle()

    assert world.status()["reservation"]["resume"] == NAME


@in_world()
async def test_a_resume_begins_when_it_is_asked_for_and_not_before(world: World) -> None:
    world.start()
    paused(world, wants=False)
    await settle(5.0)
    assert world.phases() == []

    world.server.change("r1", spec={"paused": False})
    await settle(0.05)
    assert world.phases() == ["Reserved", "Bound"]


@in_world()
async def test_a_resume_that_was_confirmed_by_nobody_before_is_confirmed_now(world: World) -> None:
    world.start()
    paused(world, reservation={"confirmation": "none"})
    await settle()

    assert "confirmation" not in world.status()["reservation"]


@in_world()
async def test_only_the_owner_resumes_and_one_that_takes_over_does(world: World) -> None:
    world.scheduler.share(("replica-x",))
    world.start()
    paused(world)
    await settle(5.0)
    assert world.phases() == []

    world.scheduler.share((ME,))
    await settle(0.5)
    assert world.phases() == ["Reserved", "Bound"]


@in_world(lambda: a_policy(max_in_flight=1))
async def test_resumes_count_among_the_reservations_in_flight(world: World) -> None:
    world.start()
    world.server.otherwise = unknown
    for index in range(3):
        paused(world, f"r{index}")
    world.server.create("new")
    await settle()

    assert {put.name for put in world.server.puts} == {"r0"}
    world.server.otherwise = lambda server, put: server.store_status(put)
    await settle(20.0)
    phases = [world.phase(name) for name in ("r0", "r1", "r2", "new")]
    assert phases == ["Bound"] * 4
    assert world.is_at_rest()


@in_world()
async def test_a_lost_reply_ends_in_a_binding(world: World) -> None:
    world.server.script.append(lost_after_landing)
    world.start()
    paused(world)
    await settle(2.0)

    assert world.phase() == "Bound"
    assert world.is_at_rest()


@in_world()
async def test_one_that_is_deleted_meanwhile_leaves_no_plan(world: World) -> None:
    world.start()
    paused(world)
    await settle(0.002)
    world.server.delete("r1")
    await settle(2.0)

    assert world.is_at_rest()
    assert not part_of(world).asks


@in_world()
async def test_two_that_fit_only_singly_are_not_both_resumed(world: World) -> None:
    world.start()
    others(world, 8000 - 400 - 400 - 700)
    paused(world, "r1")
    paused(world, "r2")
    await settle(5.0)

    assert sorted([world.phase("r1"), world.phase("r2")]) == ["Bound", "Paused"]


# Blocked


@in_world()
async def test_one_without_room_says_so_in_numbers_once(world: World) -> None:
    world.start()
    others(world, 7000)
    paused(world, cpu=2000)
    await settle(30.0)

    assert world.phases() == ["Paused"]
    assert blocked_by(world) == ("InsufficientCapacity", "n1: needs 1600m more cpu, 600m free")
    assert world.status()["reservation"]["paused"]["cpuMillis"] == 400


@in_world()
async def test_room_that_frees_resumes_it_at_once_and_the_condition_goes(world: World) -> None:
    world.start()
    others(world, 7000)
    paused(world, cpu=2000)
    await settle(30.0)
    world.server.delete("others")
    await settle(0.05)
    assert world.phase() == "Paused", "the machine has not let go yet"

    await settle(2.0)
    assert world.phases() == ["Paused", "Reserved", "Bound"]
    assert blocked_by(world) == ("", "")


@in_world()
async def test_a_larger_quota_resumes_it(world: World) -> None:
    world.start()
    others(world, 7000)
    paused(world, cpu=2000)
    await settle(5.0)

    world.put_node("n1", "MODIFIED", cpu="9")
    await settle(0.5)
    assert world.phase() == "Bound"


@in_world(nodes=("n1", "n2"))
async def test_what_changes_elsewhere_or_takes_more_room_is_not_looked_at(world: World) -> None:
    world.start()
    others(world, 7000)
    paused(world, cpu=2000)
    await settle(5.0)
    looked: list[str] = []
    part = part_of(world)

    def owns(uid: str) -> bool:
        looked.append(uid)
        return True

    part.means = replace(part.means, owns=owns)
    world.server.create("there", phase="Running", node="n2", reservation={"nodeUID": "uid-n2"})
    world.server.create("more", phase="Running", node="n1", reservation={"nodeUID": "uid-n1"})
    await settle(0.5)
    assert "uid-r1" not in looked

    world.server.patch_status("more", phase="Succeeded")
    await settle(0.01)
    assert "uid-r1" in looked


@in_world()
async def test_a_text_whose_numbers_change_all_the_time_is_written_once_a_minute(
    world: World,
) -> None:
    world.start()
    others(world, 7000)
    paused(world, cpu=2000)
    await settle(5.0)
    for number in range(110):
        world.server.create(f"o{number}", phase="Running", node="n1",
                            reservation={"nodeUID": "uid-n1", "cpuMillis": number % 7})  # fmt: skip
        world.server.patch_status(f"o{number}", phase="Succeeded")
        await settle(1.0)

    assert len(world.phases()) <= 3


@in_world()
async def test_the_numbers_are_true_in_the_end(world: World) -> None:
    world.start()
    others(world, 7000)
    paused(world, cpu=2000)
    await settle(5.0)
    world.server.create("more", phase="Running", node="n1",
                        reservation={"nodeUID": "uid-n1", "cpuMillis": 500})  # fmt: skip
    world.server.create("less", phase="Running", node="n1",
                        reservation={"nodeUID": "uid-n1", "cpuMillis": 50})  # fmt: skip
    world.server.patch_status("less", phase="Succeeded")
    await settle(70.0)

    assert blocked_by(world)[1] == "n1: needs 1600m more cpu, 100m free"


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ({"ready": False}, "n1: node not ready"),
        ({"cpu": "many"}, "n1: invalid node spec"),
    ],
)
@in_world()
async def test_a_node_that_cannot_be_used_blocks_it_until_it_can(
    world: World, node: dict[str, Any], text: str
) -> None:
    world.start()
    paused(world, wants=False)
    world.put_node("n1", "MODIFIED", **node)
    await settle(1.0)
    world.server.change("r1", spec={"paused": False})
    await settle(5.0)
    assert blocked_by(world) == ("NodeNotReady", text)

    world.put_node("n1", "MODIFIED")
    await settle(0.5)
    assert world.phase() == "Bound"


@in_world()
async def test_a_stale_node_blocks_it_until_it_is_heard_again(world: World) -> None:
    world.start()
    paused(world, wants=False)
    world.is_beating = False
    await settle(301.0)
    world.server.change("r1", spec={"paused": False})
    await settle(1.0)
    assert blocked_by(world) == ("NodeNotReady", "n1: stale metrics")

    world.beat("n1")
    await settle(0.5)
    assert world.phase() == "Bound"


@pytest.mark.parametrize("spec", [{"unschedulable": True}, {"drain": "Unstarted"}], ids=str)
@in_world()
async def test_a_node_that_takes_nothing_new_still_resumes_what_it_holds(
    world: World, spec: dict[str, Any]
) -> None:
    world.start()
    world.put_node("n1", "MODIFIED", spec=spec)
    paused(world)
    await settle()

    assert world.phases() == ["Reserved", "Bound"]


@in_world()
async def test_a_cordoned_node_that_is_stale_does_not(world: World) -> None:
    world.start()
    world.put_node("n1", "MODIFIED", spec={"unschedulable": True})
    world.is_beating = False
    await settle(301.0)
    paused(world)
    await settle(1.0)

    assert blocked_by(world) == ("NodeNotReady", "n1: stale metrics")


@in_world()
async def test_a_quarantined_node_resumes_what_it_holds(world: World) -> None:
    world.start()
    world.fleet.quarantine({"n1": Quarantine(0.0, 1e10, 5, 5, "no room")})
    paused(world)
    await settle(1.0)

    assert world.phase() == "Bound"


@in_world()
async def test_nothing_is_resumed_whose_shutdown_time_has_come(world: World) -> None:
    world.start()
    paused(world, spec={"shutdownTime": timestamp(WALL_AT_START - 1.0)})
    await settle(5.0)

    assert world.server.puts == []


@in_world(nodes=())
async def test_nothing_is_said_before_the_node_is_known(world: World) -> None:
    world.start()
    paused(world)
    await settle(0.01)

    assert world.phases() == []


@in_world()
async def test_creates_in_flight_are_bounded_for_resumes_too(world: World) -> None:
    world.put_node("n1", "MODIFIED", spec={"quota": {"createConcurrency": 1}})
    world.server.create("c", phase="Starting", node="n1", reservation={"nodeUID": "uid-n1"})
    world.start()
    paused(world)
    await settle(2.0)
    reason, message = blocked_by(world)
    assert reason == "InsufficientCapacity"
    assert message == "n1: as many creates in flight as it may have"

    world.server.patch_status("c", phase="Running")
    await settle(0.1)
    assert world.phase() == "Bound"


@in_world()
async def test_a_wish_taken_back_takes_the_condition_back(world: World) -> None:
    world.start()
    others(world, 7000)
    paused(world, cpu=2000)
    await settle(5.0)
    world.server.change("r1", spec={"paused": True})
    await settle(2.0)

    assert blocked_by(world) == ("", "")
    assert world.phase() == "Paused"
    assert len(world.phases()) == 2


# Nothing came of it


@in_world()
async def test_a_machine_that_refuses_is_asked_again_ever_more_rarely(world: World) -> None:
    world.start()
    paused(world)
    tries = []
    for _ in range(900):
        await settle(1.0)
        if world.phase() == "Bound":
            tries.append(world.clock.monotonic())
            refused = [{"node": "n1", "reason": "no room", "time": "2026-11-30T10:00:00Z"}]
            world.server.patch_status("r1", phase="Paused", refusals=refused)

    gaps = [later - sooner for sooner, later in pairwise(tries)]
    assert gaps == sorted(gaps)
    assert 200 <= gaps[-1] <= 242
    assert len(tries) <= 12


@in_world()
async def test_one_that_has_run_again_is_resumed_at_once_the_next_time(world: World) -> None:
    world.start()
    paused(world)
    await settle()
    for phase in ("Starting", "Running"):
        world.server.patch_status("r1", phase=phase)
    await settle(10.0)
    world.server.patch_status("r1", phase="Paused")
    await settle(0.1)

    assert world.phases() == ["Reserved", "Bound"] * 2


@in_world()
async def test_flipped_ten_times_a_second_it_is_resumed_at_most_once_a_second(
    world: World,
) -> None:
    world.start()
    paused(world, wants=False)
    for number in range(100):
        world.server.change("r1", spec={"paused": bool(number % 2)})
        await settle(0.1)
        if world.phase() == "Bound":  # its agent, who is faster than anybody
            for phase in ("Starting", "Running", "Paused"):
                world.server.patch_status("r1", phase=phase)
    world.server.change("r1", spec={"paused": False})
    await settle(2.0)

    assert world.phase() == "Bound"
    assert len(world.phases()) <= 2 * (10 + 2)
    assert world.is_at_rest()


@in_world(lambda: a_policy(start_deadline_seconds=1.0))
async def test_what_was_evicted_or_lost_says_nothing_of_a_resume_any_more(world: World) -> None:
    world.start()
    others(world, 7000)
    paused(world, cpu=2000)
    await settle(5.0)
    world.put_node("n1", "MODIFIED", spec={"drain": "All"})
    await settle(5.0)
    assert (world.phase(), blocked_by(world)) == ("Evicting", ("", ""))


@in_world()
async def test_very_many_are_looked_at_a_part_at_a_time_and_each_is_told(world: World) -> None:
    others(world, 7990)
    number = 3 * LOOKS_AT_ONCE
    for index in range(number):
        reservation = {"cpuMillis": 20, "paused": {"cpuMillis": 0, "memoryBytes": 0}}
        paused(world, f"r{index:03}", reservation=reservation, cpu=20)
    await settle(1.0)
    part, looked = part_of(world), Counter[str]()

    def owns(uid: str) -> bool:
        looked[uid] += 1
        return True

    part.means = replace(part.means, owns=owns)
    part.sweep()
    assert looked.total() <= 2 * LOOKS_AT_ONCE
    world.start()
    await settle(10.0)

    assert {blocked_by(world, f"r{index:03}")[0] for index in range(number)} == {
        "InsufficientCapacity"
    }
    assert not part._later


@pytest.mark.parametrize("became", ["deleted", "Succeeded", "Running", "paused for good"])
@in_world()
async def test_what_changed_while_the_stream_was_broken_is_not_resumed(
    world: World, became: str
) -> None:
    world.start()
    others(world, 7900)
    paused(world)
    await settle()
    assert blocked_by(world)[0] == "InsufficientCapacity"
    written = len(world.server.puts)

    world.cut_off = True
    world.server.patch_status("others", phase="Succeeded")
    if became == "deleted":
        world.server.delete("r1")
    elif became == "paused for good":
        world.server.change("r1", spec={"paused": True})
    else:
        world.server.patch_status("r1", phase=became)
    world.cut_off = False
    world.list_anew()  # room has come on the node before it is seen what became of r1
    await settle()

    assert all(put.status["phase"] == "Paused" for put in world.server.puts[written:])
    assert world.is_at_rest()
