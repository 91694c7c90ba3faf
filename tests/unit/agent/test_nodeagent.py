from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

import pytest
from tests.model.faults import Faults
from tests.unit.agent.worlds import NODE, World, in_a_world, placed, sandbox

from cubesched.agent.runtime import Order
from cubesched.agent.simulated import Behaviour

SHORT_LIVED = Behaviour(lifetime_seconds=(5.0, 5.0))


def test_a_bound_request_is_claimed_and_runs() -> None:
    async def test(world: World) -> None:
        uid = await world.bind("q")
        await asyncio.sleep(2)

        status = await world.status("q")
        assert status["phase"] == "Running"
        assert status["sandboxID"] == sandbox(uid)
        assert status["endpoint"].startswith(f"{NODE}:")
        assert status["profile"] == "p"
        assert status["reservation"] == placed("Bound")["reservation"]
        (ready,) = status["conditions"]
        assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "True", "Running")
        assert await world.running() == {sandbox(uid)}

    in_a_world(test)


def test_nothing_is_created_before_the_claim_is_stored() -> None:
    async def test(world: World) -> None:
        phases: list[str] = []

        def note(order: Order) -> None:
            (obj,) = [
                o for o in world.server.store.objects.values() if o["metadata"]["uid"] == order.uid
            ]
            phases.append(obj["status"]["phase"])

        world.machine.at_create = note
        await world.bind("q")
        await asyncio.sleep(2)

        assert phases == ["Starting"]

    in_a_world(test)


def test_a_reservation_is_not_acted_on() -> None:
    async def test(world: World) -> None:
        await world.bind("q", phase="Reserved")
        await asyncio.sleep(5)

        assert (await world.status("q"))["phase"] == "Reserved"
        assert not world.machine.created

    in_a_world(test)


@pytest.mark.parametrize(
    "faults",
    [
        Faults(lost=0.5),
        Faults(lost_after=0.5),
        Faults(late=0.5),
        Faults(silent=0.5),
        Faults(silent_after=0.5),
        Faults(resent=0.5),
        Faults(resent_noticed=0.5),
        Faults(error=0.5),
        Faults(error_after=0.5),
        Faults(unreachable=0.5),
    ],
    ids=lambda faults: next(k for k, v in asdict(faults).items() if v == 0.5),
)
@pytest.mark.parametrize("seed", range(3))
def test_a_write_whose_outcome_is_unclear_still_starts_exactly_one(
    faults: Faults, seed: int
) -> None:
    async def test(world: World) -> None:
        uids = [await world.bind(f"q{i}") for i in range(4)]
        world.server.faults = faults
        await asyncio.sleep(60)
        world.server.faults = Faults()
        await asyncio.sleep(60)

        assert sorted(world.machine.created) == sorted(sandbox(uid) for uid in uids)
        assert not world.machine.destroyed
        assert {(await world.status(f"q{i}"))["phase"] for i in range(4)} == {"Running"}

    in_a_world(test, seed=seed)


def test_what_does_not_fit_the_machine_is_given_back_with_the_reason() -> None:
    async def test(world: World) -> None:
        await world.bind("q", cpu_millis=4001)
        await asyncio.sleep(2)

        status = await world.status("q")
        assert status["phase"] == "Pending"
        assert "nodeName" not in status
        assert "reservation" not in status
        (refusal,) = status["refusals"]
        assert refusal["node"] == NODE
        assert "4001" in refusal["reason"]
        assert not world.machine.created

    in_a_world(test)


def test_two_that_fit_only_singly_do_not_both_start() -> None:
    async def test(world: World) -> None:
        await asyncio.gather(world.bind("a", cpu_millis=3000), world.bind("b", cpu_millis=3000))
        await asyncio.sleep(2)

        phases = sorted([(await world.status(name))["phase"] for name in ("a", "b")])
        assert phases == ["Pending", "Running"]
        assert len(world.machine.created) == 1

    in_a_world(test)


def test_a_node_told_to_refuse_gives_back_without_a_claim() -> None:
    async def test(world: World) -> None:
        seen: list[str] = []
        world.at_each_write(lambda obj: seen.append(obj.get("status", {}).get("phase", "")))
        await world.bind("q")
        await asyncio.sleep(2)

        assert "Starting" not in seen
        status = await world.status("q")
        assert status["phase"] == "Pending"
        assert [c["reason"] for c in status["conditions"]] == ["Refused"]

    in_a_world(test, behaviour=Behaviour(refusing_nodes=frozenset({NODE})))


def test_only_the_last_eight_refusals_are_kept() -> None:
    async def test(world: World) -> None:
        await world.bind("q", phase="Reserved")
        old = [{"node": f"n{i}", "reason": "", "time": "2026-01-01T00:00:00Z"} for i in range(8)]
        await world.write("q", {**placed("Bound"), "refusals": old})
        await asyncio.sleep(2)

        nodes = [refusal["node"] for refusal in (await world.status("q"))["refusals"]]
        assert nodes == [*(f"n{i}" for i in range(1, 8)), NODE]

    in_a_world(test, behaviour=Behaviour(refusing_nodes=frozenset({NODE})))


def test_a_sandbox_that_cannot_start_fails_its_request_and_leaves_nothing() -> None:
    async def test(world: World) -> None:
        await world.bind("q")
        await asyncio.sleep(2)

        status = await world.status("q")
        assert status["phase"] == "Failed"
        assert status["finishedTime"]
        assert status["conditions"][0]["reason"] == "StartFailed"
        assert not await world.running()

    in_a_world(test, behaviour=Behaviour(start_fail_rate=1.0))


@pytest.mark.parametrize(("rate", "phase"), [(0.0, "Succeeded"), (1.0, "Failed")])
def test_an_end_is_reported_only_after_the_machine_let_go(rate: float, phase: str) -> None:
    async def test(world: World) -> None:
        left: list[Any] = []

        def look(obj: dict[str, Any]) -> None:
            if obj["status"]["phase"] == phase:
                left.append(dict(world.machine._sandboxes))

        await world.bind("q")
        world.at_each_write(look)
        await asyncio.sleep(10)

        assert left == [{}]
        status = await world.status("q")
        assert status["nodeName"] == NODE
        assert status["conditions"][0]["reason"] == "Finished"
        assert status["finishedTime"]

    in_a_world(test, behaviour=Behaviour(lifetime_seconds=(5.0, 5.0), run_fail_rate=rate))


@pytest.mark.parametrize("after_seconds", [0.1, 3.0], ids=["while creating", "while running"])
def test_the_sandbox_of_a_deleted_request_is_destroyed(after_seconds: float) -> None:
    async def test(world: World) -> None:
        uid = await world.bind("q")
        await asyncio.sleep(after_seconds)
        await world.delete("q")
        await asyncio.sleep(3)

        assert world.machine.destroyed == [sandbox(uid)]

    in_a_world(test, behaviour=Behaviour(create_delay_seconds=1.0))


def test_a_bound_request_taken_back_by_the_operator_never_starts() -> None:
    async def test(world: World) -> None:
        store = world.server.store

        def take_back(_: Order) -> None:
            ((key, stored),) = store.objects.items()
            store.put(key, {**stored, "status": {"phase": "Pending"}}, "operator")

        world.machine.at_claim = take_back
        await world.bind("q")
        await asyncio.sleep(30)

        assert not world.machine.created
        assert (await world.status("q")) == {"phase": "Pending"}

    in_a_world(test)


def test_a_request_declared_lost_is_stopped_when_the_agent_sees_it() -> None:
    async def test(world: World) -> None:
        uid = await world.bind("q")
        await asyncio.sleep(2)
        await world.write("q", {"phase": "Failed"})
        await asyncio.sleep(1)

        assert world.machine.destroyed == [sandbox(uid)]
        assert (await world.status("q"))["phase"] == "Failed"

    in_a_world(test)


def test_a_phase_that_is_not_the_agents_business_leaves_the_sandbox_alone() -> None:
    async def test(world: World) -> None:
        await world.bind("q")
        await asyncio.sleep(2)
        store = world.server.store
        ((key, stored),) = store.objects.items()
        store.put(key, {**stored, "status": {**stored["status"], "phase": "Unheard"}}, "operator")
        await asyncio.sleep(30)

        assert not world.machine.destroyed
        assert (await world.status("q"))["phase"] == "Unheard"

    in_a_world(test)


def test_a_restarted_agent_goes_on_with_what_runs() -> None:
    async def test(world: World) -> None:
        uid = await world.bind("q")
        await asyncio.sleep(2)
        await world.restart()
        await asyncio.sleep(2)

        assert world.machine.created == [sandbox(uid)]
        assert not world.machine.destroyed
        await asyncio.sleep(5)
        assert (await world.status("q"))["phase"] == "Succeeded"

    in_a_world(test, behaviour=SHORT_LIVED)


def test_a_restarted_agent_removes_what_no_request_names_before_it_is_ready() -> None:
    async def test(world: World) -> None:
        uid = await world.bind("q")
        await asyncio.sleep(2)
        await world.stop()
        await world.delete("q")
        await world.restart()

        assert world.machine.destroyed == [sandbox(uid)]

    in_a_world(test)


def test_a_restarted_agent_finishes_a_start_it_had_claimed() -> None:
    async def test(world: World) -> None:
        uid = await world.bind("q")
        await asyncio.sleep(0.3)
        assert (await world.status("q"))["phase"] == "Starting"
        await world.restart()
        await asyncio.sleep(3)

        assert (await world.status("q"))["phase"] == "Running"
        assert await world.running() == {sandbox(uid)}

    in_a_world(test, behaviour=Behaviour(create_delay_seconds=1.0))


def test_a_running_request_whose_sandbox_is_not_on_the_machine_fails() -> None:
    async def test(world: World) -> None:
        uid = await world.bind("q")
        await asyncio.sleep(2)
        await world.stop()
        await world.machine.destroy(sandbox(uid))
        await world.restart()
        await asyncio.sleep(2)

        status = await world.status("q")
        assert status["phase"] == "Failed"
        assert "not on the machine" in status["conditions"][0]["message"]

    in_a_world(test)


def test_what_runs_without_a_request_is_reported_as_foreign_until_it_is_gone() -> None:
    async def test(world: World) -> None:
        await world.bind("q")
        await asyncio.sleep(2)
        before = await world.agent.report()
        world.machine.may_destroy.clear()
        await world.delete("q")
        deleted_at = world.server.store.revision
        await asyncio.sleep(1)
        during = await world.agent.report()
        world.machine.may_destroy.set()
        await asyncio.sleep(1)
        after = await world.agent.report()

        assert before is not None
        assert during is not None
        assert after is not None
        assert (before.foreign_cpu_millis, before.foreign_sandboxes, before.sandboxes) == (0, 0, 1)
        assert during.applied_version >= deleted_at
        assert (during.foreign_cpu_millis, during.foreign_sandboxes) == (1000, 1)
        assert (after.foreign_cpu_millis, after.sandboxes) == (0, 0)

    in_a_world(test)


def test_creates_under_way_are_reported() -> None:
    async def test(world: World) -> None:
        await world.bind("q")
        await asyncio.sleep(0.5)
        during = await world.agent.report()
        await asyncio.sleep(2)
        after = await world.agent.report()

        assert during is not None
        assert after is not None
        assert (during.creating, after.creating) == (1, 0)

    in_a_world(test, behaviour=Behaviour(create_delay_seconds=1.0))


def test_a_missing_template_takes_longer() -> None:
    async def test(world: World) -> None:
        await world.bind("a", templateID="here")
        await world.bind("b", templateID="elsewhere")
        await asyncio.sleep(0.5)

        assert (await world.status("a"))["phase"] == "Running"
        assert (await world.status("b"))["phase"] == "Starting"

    in_a_world(test)


@pytest.mark.parametrize("seed", range(8))
def test_under_any_faults_a_sandbox_starts_only_for_a_stored_claim(seed: int) -> None:
    async def test(world: World) -> None:
        wrong: list[str] = []

        def look(order: Order) -> None:
            objects = world.server.store.objects.values()
            stored = [o for o in objects if o["metadata"]["uid"] == order.uid]
            if [o["status"]["phase"] for o in stored] not in ([], ["Starting"]):
                wrong.append(order.name)

        world.machine.at_create = look
        dice = world.server.rng
        world.server.faults = Faults(
            lost=0.1, lost_after=0.1, late=0.1, silent=0.05, resent=0.1, too_many=0.1
        )
        for number in range(12):
            await world.bind(f"q{number}", cpu_millis=500)
            await asyncio.sleep(dice.random())
            if dice.random() < 0.3:
                await world.delete(f"q{dice.randrange(number + 1)}")
            if dice.random() < 0.2:
                await world.restart()
        world.server.faults = Faults()
        await asyncio.sleep(120)

        assert not wrong
        stored = [o["status"] for o in world.server.store.objects.values()]
        running = [s["sandboxID"] for s in stored if s["phase"] == "Running"]
        assert await world.running() == set(running)
        assert {s["phase"] for s in stored} <= {"Running", "Succeeded", "Failed", "Pending"}

    in_a_world(test, seed=seed, behaviour=Behaviour(lifetime_seconds=(5.0, 60.0)))
