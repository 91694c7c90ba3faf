"""Routing records follow from the ledger: which have changed, and what should stand now."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.scheduling.worlds import World, in_world, settle

from cubesched.scheduling import routing
from cubesched.scheduling.routing import Routing

SANDBOX = "sbr-uid-r1.id-1"


def routing_of(world: World) -> Routing:
    scheduler = world.scheduler
    part = Routing(world.fleet, scheduler.owns, members=lambda: scheduler.members)
    scheduler.parts = (*scheduler.parts, part)
    return part


def running(world: World, name: str = "r1", **more: Any) -> None:
    fields = {"endpoint": "10.0.0.1:1", "reservation": {"nodeUID": "uid-n1"}, **more}
    world.server.create(name, phase="Running", node="n1", **fields)


def recorded(part: Routing, sandbox: str = SANDBOX) -> dict[str, Any] | None:
    packed = part.record(sandbox)
    return None if packed is None else json.loads(packed)


@in_world()
async def test_a_sandbox_that_runs_is_noted_once_and_can_be_asked_for(world: World) -> None:
    part = routing_of(world)
    running(world)
    await settle(0.1)

    assert part.woken.is_set()
    assert part.take_changed(10) == [SANDBOX]
    assert part.take_changed(10) == []
    assert part.decides(SANDBOX)
    assert (recorded(part) or {})["endpoint"] == "10.0.0.1:1"


@pytest.mark.parametrize("phase", ["Evicting", "Succeeded", "Failed"])
@in_world()
async def test_a_sandbox_that_runs_no_more_is_noted_and_has_no_record(
    world: World, phase: str
) -> None:
    part = routing_of(world)
    running(world)
    await settle(0.1)
    part.take_changed(10)
    world.server.patch_status("r1", phase=phase)
    await settle(0.1)

    assert part.take_changed(10) == [SANDBOX]
    assert recorded(part) is None


@in_world()
async def test_a_deleted_request_is_noted_and_has_no_record(world: World) -> None:
    part = routing_of(world)
    running(world)
    await settle(0.1)
    part.take_changed(10)
    world.server.delete("r1")
    await settle(0.1)

    assert part.take_changed(10) == [SANDBOX]
    assert part.decides(SANDBOX)
    assert recorded(part) is None


@in_world()
async def test_a_sandbox_that_runs_anew_leaves_no_record_of_the_old_one(world: World) -> None:
    part = routing_of(world)
    running(world)
    await settle(0.1)
    reservation = {**world.status()["reservation"], "id": "id-2"}
    world.server.patch_status("r1", reservation=reservation)
    await settle(0.1)

    assert sorted(part.take_changed(10)) == [SANDBOX, "sbr-uid-r1.id-2"]
    assert recorded(part) is None
    assert recorded(part, "sbr-uid-r1.id-2") is not None


@in_world()
async def test_a_changed_endpoint_is_noted_and_a_label_or_a_new_list_is_not(world: World) -> None:
    part = routing_of(world)
    running(world)
    await settle(0.1)
    part.take_changed(10)
    world.server.change("r1", metadata={"labels": {"a": "b"}})
    await settle(0.1)
    world.list_anew()
    assert part.take_changed(10) == []

    world.server.patch_status("r1", endpoint="10.0.0.1:2")
    await settle(0.1)
    assert part.take_changed(10) == [SANDBOX]


@in_world()
async def test_other_replicas_requests_are_theirs(world: World) -> None:
    part = routing_of(world)
    world.scheduler.share(("replica-x",))
    running(world)
    await settle(0.1)

    assert part.take_changed(10) == []
    assert not part.decides(SANDBOX)
    assert [name for some in part.sandboxes(10) for name in some] == []


@in_world()
async def test_what_cannot_be_read_keeps_the_record_it_has(world: World) -> None:
    part = routing_of(world)
    running(world)
    await settle(0.1)
    world.server.patch_status("r1", refusals="unreadable")
    await settle(0.1)

    assert not part.decides(SANDBOX)


@in_world(nodes=("n1", "n2"))
async def test_everything_is_compared_when_shares_or_addresses_change(world: World) -> None:
    part = routing_of(world)
    world.start()
    await settle(1.0)
    part.must_compare = False
    await settle(1.0)
    assert not part.must_compare

    world.scheduler.share((world.scheduler.identity, "replica-x"))
    await settle(1.0)
    assert part.must_compare

    part.must_compare = False
    world.put_node("n1", "MODIFIED", addresses=[("InternalIP", "10.0.0.9")])
    await settle(1.0)
    assert part.must_compare

    part.must_compare = False
    world.put_node("n1", "MODIFIED", addresses=[("InternalIP", "10.0.0.9")], labels={"a": "b"})
    await settle(1.0)
    assert not part.must_compare


@in_world()
async def test_all_that_runs_is_listed_a_part_at_a_time(world: World) -> None:
    part = routing_of(world)
    for number in range(7):
        running(world, f"r{number}")
    world.server.create("waits")
    await settle(0.1)

    parts = list(part.sandboxes(3))

    assert len(parts) == 3
    assert sorted(name for some in parts for name in some) == [
        f"sbr-uid-r{number}.id-1" for number in range(7)
    ]


@in_world()
async def test_nothing_is_called_stale_before_all_is_known(world: World) -> None:
    part = routing_of(world)
    assert part.is_known

    world.fleet.ledger.reset()
    assert not part.is_known


@in_world()
async def test_a_long_outage_is_remembered_as_one_comparison(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routing, "MOST_CHANGED", 5)
    part = routing_of(world)
    part.must_compare = False
    for number in range(9):
        running(world, f"r{number}")
    await settle(0.1)

    assert len(part.changed) == 5
    assert part.must_compare
