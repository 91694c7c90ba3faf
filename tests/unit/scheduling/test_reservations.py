"""Reserve, meet, confirm: the verdict falls where the reservation is met, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.fleet.objects import a_request_dict, as_json
from tests.unit.scheduling.worlds import (
    ME,
    World,
    in_world,
    lost_after_landing,
    rejected,
    resent_after_landing,
    settle,
)

from cubesched.fleet.rendezvous import ranking
from cubesched.scheduling.reservations import OVERDUE_PER_RANK_SECONDS, OVERDUE_SECONDS

OTHERS = ("replica-x", "replica-y")
SWEEP = 0.5
"""More than the pause between two looks at what is overdue."""


def foreign(world: World, name: str, node: str = "n1", *, cpu: int = 1000, **fields: Any) -> None:
    """Another replica's reservation stands."""
    world.server.create(
        name,
        phase="Reserved",
        node=node,
        reservation={"id": f"id-of-{name}", "replica": "replica-x", "cpuMillis": cpu, **fields},
    )


def conflicts(world: World, kind: str) -> int:
    return sum(
        name == "cubesched_bind_conflicts_total" and labels["kind"] == kind
        for name, labels in world.meter.labels
    )


# The usual way


@in_world()
async def test_a_request_is_reserved_then_confirmed_and_nothing_is_left_over(world: World) -> None:
    world.start()
    world.server.create("r1", template="")
    await settle()

    assert world.phases() == ["Reserved", "Bound"]
    status = world.status()
    assert status["nodeName"] == "n1"
    assert status["reservation"] == {
        "id": "id-of-mine-1",
        "replica": ME,
        "time": status["reservation"]["time"],
        "nodeUID": "uid-n1",
        "cpuMillis": 1000,
        "memoryBytes": 1 << 30,
        "diskBytes": 0,
    }
    assert world.scheduled() == ("True", "Bound")
    assert world.is_at_rest()


@in_world()
async def test_the_verdict_waits_for_the_stream_however_early_the_reply_comes(
    world: World,
) -> None:
    world.lag_seconds = 1.5
    world.start()
    world.server.create("r1")
    await settle(1.5 + 1.4)
    assert world.phases() == ["Reserved"]

    await settle(0.2)
    assert world.phases() == ["Reserved", "Bound"]


@in_world()
async def test_each_write_is_conditional_on_the_version_it_was_made_from(world: World) -> None:
    world.start()
    world.server.create("r1")
    await settle()

    assert [put.version for put in world.server.puts] == [102, 103]


@in_world()
async def test_a_confirmation_goes_before_a_reservation_and_that_before_a_report(
    world: World,
) -> None:
    world.start()
    world.server.create("r1")
    world.server.create("big", cpu="99")
    await settle(5.0)

    assert {(put.status["phase"], put.priority) for put in world.server.puts} == {
        ("Reserved", 1),
        ("Bound", 0),
        ("Pending", 2),
    }


@in_world()
async def test_what_others_keep_in_the_status_survives_every_write(world: World) -> None:
    world.start()
    world.server.create("r1", aFieldOfNextYear={"x": 1})
    await settle()

    assert world.phase() == "Bound"
    assert world.status()["aFieldOfNextYear"] == {"x": 1}


@in_world()
async def test_an_own_reservation_sent_twice_is_recognised_by_its_id(world: World) -> None:
    world.server.script.append(resent_after_landing)
    world.start()
    world.server.create("r1")
    await settle()

    assert world.phases() == ["Reserved", "Bound"]
    assert world.status()["reservation"]["id"] == "id-of-mine-1"


@in_world()
async def test_a_lost_reply_of_a_reservation_ends_in_a_binding(world: World) -> None:
    world.server.script.append(lost_after_landing)
    world.start()
    world.server.create("r1")
    await settle(2.0)

    assert world.phase() == "Bound"
    assert world.is_at_rest()


@in_world()
async def test_the_request_that_another_replica_took_is_let_go(world: World) -> None:
    world.server.create("r1")
    await settle(0.01)
    world.cut_off = True
    foreign_id = {"phase": "Reserved", "nodeName": "n1"}
    world.server.patch_status(
        "r1", **foreign_id, reservation={**as_reservation("replica-x"), "cpuMillis": 1000}
    )
    world.cut_off = False
    world.start()
    await settle(0.1)
    assert world.is_at_rest() is False, "the refusal alone settles nothing"

    world.fleet.ledger.event("MODIFIED", as_json(world.server.objects["r1"]), world.server.version)
    assert not world.scheduler.reservations.mine
    assert world.fleet.assumed == 0
    assert conflicts(world, "write") == 1


def as_reservation(replica: str) -> dict[str, Any]:
    reservation: dict[str, Any] = a_request_dict(
        phase="Reserved", node="n1", reservation={"replica": replica}
    )["status"]["reservation"]
    return reservation


# Edits in between


@in_world()
async def test_an_edit_between_reserve_and_confirm_is_evaluated_again_at_its_version(
    world: World,
) -> None:
    world.start()
    world.server.create("r1")
    while not world.phases().count("Bound"):  # the confirmation is on its way
        await settle(0.0005)
    edited = world.server.change("r1", metadata={"labels": {"a": "b"}})
    await settle()

    assert world.phases() == ["Reserved", "Bound", "Bound"]
    assert world.server.puts[-1].version == edited
    assert world.phase() == "Bound"
    assert world.is_at_rest()


@in_world()
async def test_an_edit_that_meets_less_room_is_judged_by_the_room_there_is(world: World) -> None:
    world.start()
    world.server.create("r1")
    while not world.phases().count("Bound"):
        await settle(0.0005)
    world.server.change("r1", metadata={"labels": {"a": "b"}})
    world.put_node("n1", "MODIFIED", cpu="500m")
    await settle()

    assert world.phase() == "Pending"
    assert world.is_at_rest()


# No room


@in_world(nodes=("n1", "n2"))
async def test_a_reservation_that_lost_its_room_moves_on_in_one_write(world: World) -> None:
    world.start()
    world.server.create("r1", cpu="6")
    await settle(0.0035)  # reserved on the server, not met yet
    chosen = world.server.puts[0].status["nodeName"]
    other = {"n1": "n2", "n2": "n1"}[chosen]
    world.cut_off = True
    world.cut_off = False
    stolen = as_json(
        a_request_dict(
            "thief", version=90, phase="Bound", node=chosen, reservation={"cpuMillis": 3000}
        )
    )
    world.fleet.ledger.event("ADDED", stolen, 101)
    await settle()

    assert world.phases() == ["Reserved", "Reserved", "Bound"]
    assert world.status()["nodeName"] == other
    assert world.status()["reservation"]["id"] == "id-of-mine-2"
    assert conflicts(world, "room") == 1
    assert world.is_at_rest()


@in_world(nodes=("n1", "n2", "n3", "n4", "n5", "n6"))
async def test_after_three_moves_it_is_pending_with_reason_conflict_and_tried_again_later(
    world: World,
) -> None:
    fits = world.fleet.fits
    world.fleet.fits = lambda entry: entry is None  # type: ignore[method-assign]
    world.start()
    world.server.create("r1")
    while "Pending" not in world.phases():
        await settle(0.001)
    await settle(0.003)

    assert world.phases() == ["Reserved"] * 4 + ["Pending"]
    assert world.scheduled() == ("False", "Conflict")
    assert not {"nodeName", "reservation", "explanation"} & world.status().keys()
    assert world.status()["attempts"] == 4

    world.fleet.fits = fits  # type: ignore[method-assign]
    begun = world.clock.monotonic()
    while world.phase() != "Bound":
        await settle(0.001)
    assert 0.05 <= world.clock.monotonic() - begun < 0.2
    assert world.status()["attempts"] == 5


@in_world()
async def test_without_another_node_it_goes_back_to_pending_at_once(world: World) -> None:
    world.start()
    world.server.create("r1", cpu="6")
    await settle(0.0035)
    thief = a_request_dict(
        "t", version=9, phase="Bound", node="n1", reservation={"cpuMillis": 3000}
    )
    world.fleet.ledger.event("ADDED", as_json(thief), 101)
    await settle()

    assert world.phases()[:2] == ["Reserved", "Pending"]
    assert world.is_at_rest()


@in_world()
async def test_everything_reserved_counts_whoever_reserved_it(world: World) -> None:
    world.list_nodes("n1", cpu="1")
    world.start()
    world.server.create("r1")
    await settle(0.0035)
    foreign(world, "other")
    await settle(0.1)

    assert world.phase("r1") == "Bound", "it was met first"
    await settle(6.0)
    assert world.phase("other") == "Pending"


# Lists


@in_world()
async def test_nothing_is_confirmed_while_a_list_is_incomplete(world: World) -> None:
    world.scheduler.reservations.members = lambda: (ME,)
    foreign(world, "r1")
    await settle(0.01)
    world.fleet.ledger.reset()
    world.start()
    await settle(20.0)
    assert world.server.puts == []

    world.list_requests()
    await settle(OVERDUE_SECONDS + SWEEP)
    assert world.phase() == "Bound"


@in_world()
async def test_an_own_reservation_found_in_a_list_is_evaluated_at_once(world: World) -> None:
    reservation = {"replica": ME, "id": "id-long-forgotten"}
    world.cut_off = True
    world.server.create("r1", phase="Reserved", node="n1", reservation=reservation)
    world.cut_off = False
    world.list_requests()
    await settle(0.1)

    assert world.phase() == "Bound"


@in_world()
async def test_a_list_that_shows_nothing_new_leaves_a_verdict_in_flight_alone(
    world: World,
) -> None:
    world.start()
    world.server.create("r1")
    while not world.phases().count("Bound"):
        await settle(0.0005)
    world.list_requests()
    await settle()

    assert world.phases() == ["Reserved", "Bound"]


@in_world()
async def test_while_an_object_names_no_node_nothing_is_confirmed(world: World) -> None:
    blind = as_json({**a_request_dict("bad", version=5), "status": []})
    world.fleet.ledger.event("ADDED", blind, 102)
    foreign(world, "r1")
    world.start()
    await settle(20.0)
    assert world.server.puts == []

    gone = as_json(a_request_dict("bad", version=6))
    world.fleet.ledger.event("DELETED", gone, world.server.version + 1)
    await settle(OVERDUE_SECONDS + SWEEP)
    assert world.phase() == "Bound"


# Others' reservations


@in_world()
async def test_a_reservation_left_behind_is_confirmed_when_it_fits(world: World) -> None:
    world.scheduler.members = (ME,)
    foreign(world, "r1")
    world.start()
    await settle(OVERDUE_SECONDS - 0.1)
    assert world.server.puts == []

    await settle(0.1 + SWEEP)
    assert world.phases() == ["Bound"]
    assert "explanation" not in world.status(), "why it was chosen is not known here"


@in_world()
async def test_a_reservation_left_behind_without_an_id_or_a_node_is_not_left_for_ever(
    world: World,
) -> None:
    world.start()
    foreign(world, "no-id", id="")
    world.server.create("no-node", phase="Reserved")
    await settle(OVERDUE_SECONDS + SWEEP)

    assert world.phase("no-id") == "Bound"
    assert world.phases("no-node")[:1] == ["Pending"]
    await settle()
    assert world.phase("no-node") == "Bound"


@in_world()
async def test_a_reservation_left_behind_is_undone_when_it_does_not_fit(world: World) -> None:
    foreign(world, "r1", cpu=9000)
    world.start()
    await settle(OVERDUE_SECONDS + SWEEP)

    undone = world.server.puts[0].status
    assert undone["phase"] == "Pending"
    assert [condition["reason"] for condition in undone["conditions"]] == ["Conflict"]


@pytest.mark.parametrize("rank", [0, 1, 2])
@in_world()
async def test_each_replica_waits_a_second_more_for_each_before_it(world: World, rank: int) -> None:
    members = (ME, *OTHERS)
    name = next(
        f"r{number}" for number in range(99) if ranking(f"uid-r{number}", members)[rank] == ME
    )
    world.scheduler.share(members)
    foreign(world, name)
    world.start()
    await settle(OVERDUE_SECONDS + rank * OVERDUE_PER_RANK_SECONDS - 0.2)
    assert world.server.puts == []

    await settle(0.2 + SWEEP)
    assert world.phases(name) == ["Bound"]


@in_world(nodes=("n1", "n2"))
async def test_overdue_ones_are_evaluated_one_at_a_time_on_each_node(world: World) -> None:
    for number in range(3):
        foreign(world, f"r{number}")
    foreign(world, "elsewhere", "n2")
    await settle(OVERDUE_SECONDS + 1)
    world.scheduler.reservations.evaluate_overdue()
    await settle(0.001)

    assert sorted(put.name for put in world.server.puts) == ["elsewhere", "r0"]


@in_world()
async def test_a_verdict_that_the_server_rejects_is_given_again_but_not_in_a_hurry(
    world: World,
) -> None:
    world.server.otherwise = rejected
    foreign(world, "r1")
    world.start()
    await settle(31.0)

    assert 8 <= len(world.server.puts) <= 10


@in_world()
async def test_a_reservation_that_cannot_be_read_is_left_alone(world: World) -> None:
    broken = a_request_dict("r1", version=5, phase="Reserved", node="n1", refusals="none")
    world.fleet.ledger.event("ADDED", as_json(broken), 102)
    world.start()
    await settle(20.0)

    assert world.server.puts == []


@in_world()
async def test_a_new_reservation_of_the_same_request_has_its_own_time(world: World) -> None:
    foreign(world, "r1")
    await settle(2.0)
    world.server.patch_status("r1", reservation={**as_reservation("replica-x"), "id": "id-new"})
    world.start()
    await settle(2.0)
    assert world.server.puts == []

    await settle(1.0 + SWEEP)
    assert world.phases() == ["Bound"]


# Deletion


@pytest.mark.parametrize("after_seconds", [0.0, 0.001, 0.0025, 0.0035, 0.0045, 0.006, 0.1])
@pytest.mark.parametrize("again", [False, True])
@in_world()
async def test_a_request_deleted_at_any_point_leaves_nothing_behind(
    world: World, after_seconds: float, again: bool
) -> None:
    world.start()
    world.server.create("r1", uid="old")
    await settle(after_seconds)
    world.server.delete("r1")
    if again:
        world.server.create("r1", uid="new")
    await settle(5.0)

    assert world.is_at_rest()
    assert world.phase("r1") == "Bound" if again else "r1" not in world.server.objects
    assert world.fleet.ledger.usage("n1").sandboxes == int(again)
    assert set(world.scheduler.queue.items) == set()
    assert set(world.scheduler.reservations.met) == set()


# Resuming

PAUSED = {"resume": "sbr-uid-r1.id-0", "paused": {"cpuMillis": 100, "memoryBytes": 0}}


@in_world()
async def test_a_reservation_to_resume_is_confirmed_like_any_other(world: World) -> None:
    world.start()
    reservation = {**PAUSED, "replica": "replica-x", "nodeUID": "uid-n1"}
    world.server.create("r1", phase="Reserved", node="n1", reservation=reservation)
    await settle(6.0)

    assert world.phases() == ["Bound"]
    assert world.status()["reservation"]["resume"] == PAUSED["resume"]


@in_world(nodes=("n1", "n2"))
async def test_one_to_resume_that_has_lost_its_room_is_paused_again_and_goes_nowhere_else(
    world: World,
) -> None:
    world.start()
    world.server.create("other", phase="Running", node="n1", reservation={"cpuMillis": 7500})
    reservation = {**PAUSED, "replica": "replica-x", "nodeUID": "uid-n1"}
    world.server.create("r1", phase="Reserved", node="n1", reservation=reservation)
    await settle(6.0)

    first = world.server.puts[0].status
    assert (first["phase"], first["nodeName"]) == ("Paused", "n1")
    blocked = first["conditions"][-1]
    assert (blocked["type"], blocked["reason"]) == ("ResumeBlocked", "InsufficientCapacity")
