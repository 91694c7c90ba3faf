"""The agent confirms what it is asked to: by its own node's exact stream, and only what fits."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from tests.model.faults import Faults
from tests.model.http import a_request
from tests.unit.agent.worlds import GIB, NODE, World, in_a_world, placed
from tests.unit.fleet.objects import as_json

from cubesched.agent.runtime import Order
from cubesched.fleet.entries import Weight
from cubesched.fleet.sandboxes import sandbox_name

EFFECTIVE = {"cpu": "4", "memory": "64Gi", "sandboxes": 100, "createConcurrency": 100}


def say(world: World, *, uid: str = "uid-node", **effective: Any) -> None:
    """The operator says what requests may take here."""
    status = {"effectiveCapacity": {**EFFECTIVE, **effective}}
    world.agent.own_node.take(as_json({"metadata": {"name": NODE, "uid": uid}, "status": status}))


async def reserve(
    world: World, name: str, *, cpus: int = 1, confirmation: str = "agent", **facts: Any
) -> str:
    """Create a request and reserve the node for it; return its uid."""
    with world.unharmed():
        code, created = await world.admin.create(a_request(name))
    assert code == 201, created
    uid: str = created["metadata"]["uid"]
    await world.write(name, reserved(name, cpus=cpus, confirmation=confirmation, **facts))
    return uid


def id_of(name: str) -> str:
    return f"{name:0>32}"


def reserved(name: str, *, cpus: int = 1, confirmation: str = "agent", **facts: Any) -> Any:
    status = placed("Reserved", cpu_millis=1000 * cpus)
    named = {"id": id_of(name), "nodeUID": "uid-node"}
    if confirmation != "operator":
        named["confirmation"] = confirmation
    return {**status, "reservation": {**status["reservation"], **named, **facts}}


async def phases(world: World, *names: str) -> list[str]:
    return [(await world.status(name))["phase"] for name in names]


def test_a_reservation_for_the_agent_is_claimed_in_one_write_and_runs() -> None:
    async def test(world: World) -> None:
        stored: list[dict[str, Any]] = []
        world.at_each_write(lambda obj: stored.append(obj.get("status", {})))
        say(world)
        uid = await reserve(world, "q")
        await asyncio.sleep(2)

        assert [status.get("phase") for status in stored[1:]] == ["Reserved", "Starting", "Running"]
        conditions = {c["type"]: (c["status"], c["reason"]) for c in stored[2]["conditions"]}
        assert conditions == {"Scheduled": ("True", "Bound"), "Ready": ("False", "Starting")}
        assert await world.running() == {sandbox_name(uid, id_of("q"))}

    in_a_world(test)


def test_nothing_is_created_before_the_claim_is_stored() -> None:
    async def test(world: World) -> None:
        phases_at_create: list[str] = []

        def note(order: Order) -> None:
            objects = world.server.store.objects.values()
            (found,) = [o for o in objects if o["metadata"]["uid"] == order.uid]
            phases_at_create.append(found["status"]["phase"])

        world.machine.at_create = note
        say(world)
        await reserve(world, "q")
        await asyncio.sleep(2)

        assert phases_at_create == ["Starting"]

    in_a_world(test)


@pytest.mark.parametrize("confirmation", ["operator", "none"])
def test_a_reservation_that_others_confirm_is_not_touched(confirmation: str) -> None:
    async def test(world: World) -> None:
        say(world)
        await reserve(world, "q", confirmation=confirmation)
        await asyncio.sleep(20)

        assert await phases(world, "q") == ["Reserved"]
        assert not world.machine.created

    in_a_world(test)


def test_what_does_not_fit_beside_everything_here_waits_and_is_no_refusal() -> None:
    async def test(world: World) -> None:
        say(world)
        await reserve(world, "theirs", cpus=3, confirmation="operator")
        await reserve(world, "mine", cpus=2)
        await asyncio.sleep(20)
        assert await phases(world, "theirs", "mine") == ["Reserved", "Reserved"]
        assert "refusals" not in await world.status("mine")

        await world.write("theirs", {"phase": "Pending", "nodeName": None, "reservation": None})
        await asyncio.sleep(2)
        assert await phases(world, "mine") == ["Running"]

    in_a_world(test, cpu_millis=8000)


def test_both_that_fit_only_alone_wait_until_one_is_moved_away() -> None:
    async def test(world: World) -> None:
        world.server.faults = Faults(latency_seconds=0.5)
        say(world)
        world.agent.requests.position.is_listed = False  # both stand before either is judged
        await reserve(world, "a", cpus=3)
        await reserve(world, "b", cpus=3)
        await asyncio.sleep(5)
        world.agent.requests.position.is_listed = True
        say(world, memory="65Gi")
        await asyncio.sleep(5)
        assert await phases(world, "a", "b") == ["Reserved", "Reserved"]

        moved = {**reserved("b", id=id_of("elsewhere")), "nodeName": "node-2"}
        await world.write("b", moved)
        await asyncio.sleep(10)
        assert await phases(world, "a", "b") == ["Running", "Reserved"]

    in_a_world(test)


def test_weights_are_the_stamped_ones_and_never_the_specs() -> None:
    async def test(world: World) -> None:
        say(world)
        await reserve(world, "small-spec", cpus=5)  # spec says 1
        await asyncio.sleep(5)

        assert await phases(world, "small-spec") == ["Reserved"]

    in_a_world(test, cpu_millis=64_000)


@pytest.mark.parametrize(
    "limit", [{"cpu": "2500m"}, {"memory": "2Gi"}, {"sandboxes": 2}, {"createConcurrency": 2}]
)
def test_each_limit_that_the_operator_says_holds(limit: dict[str, Any]) -> None:
    async def test(world: World) -> None:
        say(world, **limit)
        await reserve(world, "first", confirmation="operator")
        await reserve(world, "second", confirmation="operator")
        await reserve(world, "third")
        await asyncio.sleep(5)
        assert await phases(world, "third") == ["Reserved"]

        say(world)
        await asyncio.sleep(2)
        assert await phases(world, "third") == ["Running"]

    in_a_world(test, cpu_millis=64_000)


def test_without_limits_nothing_is_claimed_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(world: World) -> None:
        await reserve(world, "q")
        await asyncio.sleep(30)
        assert await phases(world, "q") == ["Reserved"]

        say(world)
        await asyncio.sleep(2)
        assert await phases(world, "q") == ["Running"]

    with caplog.at_level(logging.WARNING):
        in_a_world(test)
    told = [r.getMessage() for r in caplog.records if "effectiveCapacity" in r.getMessage()]
    assert 1 <= len(told) < 15


@pytest.mark.parametrize("broken", [{"cpu": "much"}, {"memory": "1.2.3"}, {"sandboxes": None}])
def test_limits_that_cannot_be_used_confirm_nothing(broken: dict[str, Any]) -> None:
    async def test(world: World) -> None:
        say(world, **broken)
        await reserve(world, "q")
        await asyncio.sleep(5)

        assert await phases(world, "q") == ["Reserved"]

    logging.disable(logging.CRITICAL)
    in_a_world(test)
    logging.disable(logging.NOTSET)


def test_what_was_reserved_on_the_node_before_it_was_created_anew_is_not_claimed() -> None:
    async def test(world: World) -> None:
        say(world, uid="uid-of-the-new-one")
        await reserve(world, "q")
        await asyncio.sleep(5)

        assert await phases(world, "q") == ["Reserved"]

    logging.disable(logging.CRITICAL)
    in_a_world(test)
    logging.disable(logging.NOTSET)


def test_a_full_machine_gives_the_reservation_back_with_the_reason() -> None:
    async def test(world: World) -> None:
        say(world, cpu="64")
        await reserve(world, "q", cpus=5)
        await asyncio.sleep(2)

        status = await world.status("q")
        assert status["phase"] == "Pending"
        assert "nodeName" not in status
        assert [r["node"] for r in status["refusals"]] == [NODE]
        assert status["refusals"][0]["reason"].startswith("no room on the machine: needs 5000 cpu")

    in_a_world(test)


def test_two_claims_never_share_the_last_room_of_the_machine() -> None:
    async def test(world: World) -> None:
        world.server.faults = Faults(latency_seconds=0.3)
        written: list[str] = []
        world.at_each_write(lambda obj: written.append(obj.get("status", {}).get("phase", "")))
        say(world, cpu="64")
        await asyncio.gather(reserve(world, "a", cpus=3), reserve(world, "b", cpus=3))
        await asyncio.sleep(5)

        assert sorted(await phases(world, "a", "b")) == ["Pending", "Running"]
        assert written.count("Starting") == 1

    in_a_world(test)


def test_what_the_machine_still_holds_of_a_deleted_request_counts() -> None:
    async def test(world: World) -> None:
        say(world)
        await reserve(world, "old", cpus=3)
        await asyncio.sleep(2)
        world.machine.may_destroy.clear()
        await world.delete("old")
        await reserve(world, "new", cpus=3)
        await asyncio.sleep(3)
        assert await phases(world, "new") == ["Reserved"]
        assert len(await world.running()) == 1

        world.machine.may_destroy.set()
        await asyncio.sleep(3)
        assert await phases(world, "new") == ["Running"]

    in_a_world(test, cpu_millis=64_000)


def test_while_a_list_is_under_way_nothing_is_claimed() -> None:
    async def test(world: World) -> None:
        say(world)
        requests = world.agent.requests
        requests.position.begin_list()
        await reserve(world, "q")
        await asyncio.sleep(5)
        assert await phases(world, "q") == ["Reserved"]

        version = requests.applied_version
        for entry in requests:
            requests.list_one(entry)
        requests.complete(version)
        await asyncio.sleep(2)
        assert await phases(world, "q") == ["Running"]

    in_a_world(test)


def test_an_unreadable_request_on_the_node_counts_as_all_of_it() -> None:
    async def test(world: World) -> None:
        say(world)
        await reserve(world, "odd", confirmation="operator")
        store = world.server.store
        key = next(k for k in store.objects if k.name == "odd")
        odd = store.objects[key]
        store.put(key, {**odd, "status": {**odd["status"], "refusals": "unreadable"}}, "admin")
        await reserve(world, "q")
        await asyncio.sleep(3)
        assert await phases(world, "q") == ["Reserved"]

        store.put(key, odd, "admin")
        await asyncio.sleep(3)
        assert await phases(world, "q") == ["Running"]

    in_a_world(test)


@pytest.mark.parametrize("fault", ["lost", "lost_after", "silent_after", "resent", "late"])
def test_a_claim_with_a_lost_reply_ends_in_one_sandbox(fault: str) -> None:
    async def test(world: World) -> None:
        say(world)
        await reserve(world, "q")
        await asyncio.sleep(300)

        assert await phases(world, "q") == ["Running"]
        assert len(world.machine.created) == 1
        assert world.agent._room.promised == {}

    logging.disable(logging.CRITICAL)
    in_a_world(test, faults=Faults(**{fault: 0.5}))  # type: ignore[arg-type]
    logging.disable(logging.NOTSET)


def test_a_restarted_agent_claims_what_was_reserved_meanwhile() -> None:
    async def test(world: World) -> None:
        await world.stop()
        await reserve(world, "q")
        await world.restart()
        say(world)
        await asyncio.sleep(20)

        assert await phases(world, "q") == ["Running"]

    in_a_world(test)


def test_a_claim_under_way_is_not_reported_as_foreign() -> None:
    async def test(world: World) -> None:
        say(world)
        room = world.agent._room
        room.promised["sbr-uid.id"] = Weight(1000, GIB)
        report = await world.agent.report()

        assert report is not None
        assert (report.foreign_cpu_millis, report.sandboxes) == (0, 0)

    in_a_world(test)


def test_room_is_handed_on_when_the_stream_shows_it_free_and_not_before() -> None:
    async def test(world: World) -> None:
        say(world, createConcurrency=1)
        await reserve(world, "first")
        await asyncio.sleep(0.1)  # it is being created
        await reserve(world, "second")
        waits: list[tuple[int, str]] = []

        def note(obj: dict[str, Any]) -> None:
            phase = obj.get("status", {}).get("phase", "")
            if obj["metadata"]["name"] == "first" and phase == "Running":
                waits.append((world.agent.requests.applied_version, phase))
            if obj["metadata"]["name"] == "second" and phase == "Starting":
                running_at = int(obj["metadata"]["resourceVersion"]) - 1
                assert world.agent.requests.applied_version >= running_at
                waits.append((world.agent.requests.applied_version, phase))

        world.at_each_write(note)
        await asyncio.sleep(3)
        assert [phase for _, phase in waits] == ["Running", "Starting"]

    in_a_world(test)


def test_a_resume_is_claimed_from_its_reservation_with_its_full_weight() -> None:
    async def test(world: World) -> None:
        say(world, pausedResourceReleaseRatio=1.0)
        uid = await reserve(world, "q", cpus=2)
        await asyncio.sleep(1)
        await world.wish("q", paused=True)
        await asyncio.sleep(1)
        assert await phases(world, "q") == ["Paused"]
        await reserve(world, "beside", cpus=3, confirmation="operator")

        stored = (await world.status("q"))["reservation"]
        again = {**stored, "id": id_of("again"), "resume": sandbox_name(uid, id_of("q"))}
        await world.wish("q", paused=False)
        await world.write("q", {"phase": "Reserved", "reservation": again})
        await asyncio.sleep(3)
        assert await phases(world, "q") == ["Reserved"]  # 2 + 3 of 4

        await world.write("beside", {"phase": "Pending", "nodeName": None, "reservation": None})
        await asyncio.sleep(2)
        assert await phases(world, "q") == ["Running"]
        assert await world.running() == {sandbox_name(uid, id_of("q"))}

    in_a_world(test, cpu_millis=64_000)


def test_a_resume_that_the_machine_has_no_room_for_goes_back_to_paused() -> None:
    async def test(world: World) -> None:
        say(world, cpu="64", pausedResourceReleaseRatio=1.0)
        uid = await reserve(world, "q", cpus=3)
        await asyncio.sleep(1)
        await world.wish("q", paused=True)
        await asyncio.sleep(1)
        await reserve(world, "other", cpus=3)
        await asyncio.sleep(1)

        stored = (await world.status("q"))["reservation"]
        again = {**stored, "id": id_of("again"), "resume": sandbox_name(uid, id_of("q"))}
        await world.wish("q", paused=False)
        await world.write("q", {"phase": "Reserved", "reservation": again})
        await asyncio.sleep(2)

        status = await world.status("q")
        assert status["phase"] == "Paused"
        assert [r["node"] for r in status["refusals"]] == [NODE]
        assert await phases(world, "other") == ["Running"]

    in_a_world(test)
