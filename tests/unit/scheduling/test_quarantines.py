"""Nodes that refuse are left out, on evidence, for a growing while; never the whole fleet."""

from __future__ import annotations

import pytest
from tests.unit.fleet.objects import a_reservation
from tests.unit.scheduling.worlds import World, in_world, settle

from cubesched.api.timestamps import timestamp
from cubesched.core.snapshot import Safety
from cubesched.fleet.quarantine import Quarantine

GATED = {"schedulingGates": [{"name": "tests/gate"}]}
THREE = ("n1", "n2", "n3")


def refuses(
    world: World,
    name: str,
    node: str = "n1",
    *,
    reason: str = "NoRoom",
    ago_seconds: float = 0.0,
    uid: str = "",
) -> None:
    """Let a node give back a request that was bound there, and that is not placed again."""
    reservation = {"nodeUID": uid or f"uid-{node}"}
    if name in world.server.objects:
        world.server.patch_status(
            name, phase="Bound", nodeName=node, reservation=a_reservation(**reservation)
        )
    else:
        world.server.create(name, phase="Bound", node=node, reservation=reservation, spec=GATED)
    time = timestamp(world.clock.wall() - ago_seconds)
    refusal = {"node": node, "reason": reason, "time": time}
    before = world.status(name).get("refusals", [])
    world.server.change(name, status={"phase": "Pending", "refusals": [*before, refusal]})


def refuses_all(world: World, node: str = "n1", *, round_: int = 0, number: int = 5) -> None:
    for index in range(number):
        refuses(world, f"r{round_}-{node}-{index}", node)


def succeeds(world: World, name: str, node: str = "n1") -> None:
    world.server.create(
        name, phase="Starting", node=node, reservation={"nodeUID": f"uid-{node}"}, spec=GATED
    )
    world.server.patch_status(name, phase="Running")


def safety(world: World, node: str = "n1") -> Safety:
    return Safety(int(world.fleet.snapshot.safety[world.fleet.columns.row_of[node]]))


def out(world: World) -> set[str]:
    return set(world.fleet.quarantined)


@in_world(nodes=THREE)
async def test_five_refusals_by_three_requests_keep_a_node_out_for_half_a_minute(
    world: World,
) -> None:
    world.start()
    for name in ("a", "b", "c", "a"):
        refuses(world, name)
        await settle(1.0)
    assert safety(world) is Safety.OK

    refuses(world, "b", reason="the last straw")
    await settle(0.5)

    assert safety(world) is Safety.QUARANTINED
    found = world.fleet.quarantined["n1"]
    wall = world.clock.wall()
    assert found == Quarantine(found.since, found.since + 30.0, 5, 3, "the last straw")
    assert wall - 1.0 < found.since <= wall
    await settle(28.0)
    assert safety(world) is Safety.QUARANTINED
    await settle(2.0)
    assert (safety(world), out(world)) == (Safety.OK, set())


@in_world(nodes=THREE)
async def test_one_request_that_everybody_refuses_keeps_nobody_out(world: World) -> None:
    world.start()
    for _ in range(6):
        for node in THREE:
            refuses(world, "picky", node)
            refuses(world, "other", node)
        await settle(1.0)
    await settle(1.0)

    assert out(world) == set()


@in_world(nodes=THREE)
async def test_resumes_that_find_no_room_are_no_refusals(world: World) -> None:
    world.start()
    for number in range(6):
        name = f"r{number}"
        world.server.create(
            name, phase="Starting", node="n1", reservation={"nodeUID": "uid-n1", "resume": "s"}
        )
        refusal = {"node": "n1", "reason": "NoRoom", "time": timestamp(world.clock.wall())}
        world.server.patch_status(name, phase="Paused", refusals=[refusal])
    await settle(1.0)

    assert out(world) == set()


@in_world(nodes=THREE)
async def test_a_sandbox_that_came_to_run_in_between_speaks_for_the_node(world: World) -> None:
    world.start()
    refuses_all(world, number=4)
    succeeds(world, "good")
    await settle(0.1)
    refuses_all(world, round_=1, number=4)
    await settle(1.0)
    assert out(world) == set()

    refuses(world, "one-more")
    await settle(0.5)
    assert out(world) == {"n1"}


@in_world(nodes=THREE)
async def test_refusals_of_more_than_five_minutes_are_forgotten(world: World) -> None:
    world.start()
    refuses_all(world, number=4)
    await settle(301.0)
    refuses(world, "late")
    await settle(0.5)

    assert out(world) == set()


@in_world(nodes=THREE)
async def test_a_node_that_goes_on_refusing_is_out_for_longer_each_time_up_to_ten_minutes(
    world: World,
) -> None:
    world.start()
    spans = []
    for round_ in range(7):
        refuses_all(world, round_=round_)
        await settle(0.5)
        found = world.fleet.quarantined["n1"]
        spans.append(round(found.until - found.since))
        await settle(found.until - found.since)
        assert out(world) == set()

    assert spans == [30, 60, 120, 240, 480, 600, 600]


@in_world(nodes=THREE)
async def test_a_success_after_the_return_wipes_the_slate(world: World) -> None:
    world.start()
    for round_ in range(3):
        refuses_all(world, round_=round_)
        await settle(0.5)
        await settle(world.fleet.quarantined["n1"].until - world.clock.wall() + 0.5)
    succeeds(world, "good")
    await settle(0.1)
    refuses_all(world, round_=9)
    await settle(0.5)

    found = world.fleet.quarantined["n1"]
    assert round(found.until - found.since) == 30


@in_world(nodes=THREE)
async def test_what_was_bound_before_and_runs_during_the_quarantine_does_not_end_it(
    world: World,
) -> None:
    world.start()
    refuses_all(world)
    await settle(0.5)
    succeeds(world, "was-bound-before")
    await settle(5.0)
    assert out(world) == {"n1"}

    await settle(26.0)
    refuses_all(world, round_=1)
    await settle(0.5)
    assert round(world.fleet.quarantined["n1"].until - world.fleet.quarantined["n1"].since) == 60


@in_world(nodes=tuple(f"n{number}" for number in range(1, 31)))
async def test_when_most_nodes_refuse_only_a_tenth_of_them_is_out(world: World) -> None:
    world.start()
    for node in world.fleet.columns.names:
        refuses_all(world, node)
    most = set[str]()
    for _ in range(100):
        await settle(1.0)
        assert len(out(world)) <= 3
        most |= out(world)

    assert len(most) > 3, "the others' turn comes when somebody is back"


@in_world(nodes=("n1",))
async def test_of_a_small_fleet_one_may_be_out(world: World) -> None:
    world.start()
    refuses_all(world)
    await settle(0.5)

    assert out(world) == {"n1"}


@in_world(nodes=("n1",))
async def test_what_waits_for_a_quarantined_node_is_placed_when_its_time_is_over(
    world: World,
) -> None:
    world.start()
    refuses_all(world)
    await settle(0.5)
    world.server.create("waits")
    await settle(3.0)
    assert world.scheduled("waits") == ("False", "Unschedulable")
    (scheduled,) = world.status("waits")["conditions"]
    assert "1 quarantined after refusals" in scheduled["message"]

    await settle(27.5)
    assert world.phase("waits") == "Bound"
    assert world.meter.counts["cubesched_flush_rescues_total"] == 0


@pytest.mark.parametrize("order", ["refusals first", "success first"])
@in_world(nodes=THREE)
async def test_a_replica_that_starts_knows_what_requests_remember(world: World, order: str) -> None:
    world.cut_off = True
    for name in ("a", "b", "c", "d", "e"):
        refuses(world, name, ago_seconds=100.0)
        refuses(world, name, "n2", ago_seconds=100.0)
        refuses(world, name, "n3", ago_seconds=301.0)
    since = timestamp(world.clock.wall() - 50.0)
    ready = {"type": "Ready", "status": "True", "reason": "Running", "lastTransitionTime": since}
    name = "zz" if order == "refusals first" else "0"
    world.server.create(
        name, phase="Running", node="n2", reservation={"nodeUID": "uid-n2"}, conditions=[ready]
    )
    if order == "success first":
        world.server.objects = {name: world.server.objects[name], **world.server.objects}
    world.start()
    world.list_anew()
    await settle(0.5)

    assert out(world) == {"n1"}, "something began on n2 since, and n3's refusals are old"
    assert world.fleet.quarantined["n1"].requests == 5


@in_world(nodes=THREE)
async def test_a_list_that_tells_nothing_new_counts_nothing_twice(world: World) -> None:
    world.start()
    refuses_all(world, number=4)
    await settle(0.1)
    world.list_anew()
    world.list_anew()
    await settle(0.5)

    assert out(world) == set()


@in_world(nodes=THREE)
async def test_a_node_created_anew_under_the_name_has_refused_nothing(world: World) -> None:
    world.start()
    refuses_all(world)
    await settle(0.5)
    assert out(world) == {"n1"}

    world.put_node("n1", "DELETED")
    world.put_node("n1", "ADDED", uid="another")
    world.beat("n1", ago_seconds=1.0)
    world.beat("n1")
    await settle(0.5)
    assert (safety(world), out(world)) == (Safety.OK, set())

    refuses_all(world, round_=1, number=4)
    await settle(0.5)
    assert out(world) == set()


@in_world(nodes=THREE)
async def test_refusals_of_nodes_that_nobody_knows_are_kept_for_no_longer_than_others(
    world: World,
) -> None:
    world.start()
    for number in range(5):
        refuses(world, f"r{number}", "nowhere")
    await settle(400.0)
    (part,) = (p for p in world.scheduler.parts if type(p).__name__ == "Quarantines")

    assert (part._records, part._suspects, out(world)) == ({}, set(), set())  # type: ignore[attr-defined]


@in_world(nodes=("n1", "n2"))
async def test_an_agent_that_refuses_gives_the_request_back_and_is_passed_over(
    world: World,
) -> None:
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
