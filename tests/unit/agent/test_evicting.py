"""Eviction on a node: stop, then give back; what has ended by itself has ended."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

import pytest
from tests.model.faults import Faults
from tests.unit.agent.worlds import World, in_a_world, sandbox

from cubesched.agent.simulated import Behaviour
from cubesched.core.errors import CubeschedError

DRAINED = {
    "type": "Scheduled",
    "status": "False",
    "reason": "Drained",
    "message": "node-1 is being drained",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-11-30T10:00:00Z",
}
UNCLEAR = [
    Faults(lost=0.6),
    Faults(lost_after=0.6),
    Faults(silent_after=0.6),
    Faults(resent=0.6),
    Faults(error=0.6),
    Faults(error_after=0.6),
    Faults(unreachable=0.6),
]


def name_of(faults: Faults) -> str:
    return next(k for k, v in asdict(faults).items() if v == 0.6)


async def evict(world: World, name: str = "q") -> None:
    status = await world.status(name)
    ready = [c for c in status.get("conditions", ()) if c["type"] == "Ready"]
    await world.write(name, {"phase": "Evicting", "conditions": [*ready, DRAINED]})


def test_what_is_evicted_is_stopped_and_only_then_given_back() -> None:
    async def test(world: World) -> None:
        left: list[Any] = []

        def look(obj: dict[str, Any]) -> None:
            if obj["status"]["phase"] == "Pending":
                left.append(dict(world.machine._sandboxes))

        uid = await world.bind("q")
        await asyncio.sleep(2)
        world.at_each_write(look)
        world.machine.may_destroy.clear()
        await evict(world)
        await asyncio.sleep(5)
        assert (await world.status("q"))["phase"] == "Evicting"
        world.machine.may_destroy.set()
        await asyncio.sleep(1)

        assert left == [{}]
        assert world.machine.destroyed == [sandbox(uid)]
        status = await world.status("q")
        assert (status["phase"], status["conditions"]) == ("Pending", [DRAINED])
        assert not {"nodeName", "reservation", "sandboxID", "endpoint", "refusals"} & set(status)

    in_a_world(test)


@pytest.mark.parametrize(("rate", "phase"), [(0.0, "Succeeded"), (1.0, "Failed")])
def test_what_has_ended_by_itself_before_it_could_be_evicted_has_ended(
    rate: float, phase: str
) -> None:
    async def test(world: World) -> None:
        await world.bind("q")
        await asyncio.sleep(2)
        world.machine.may_destroy.clear()
        await asyncio.sleep(4)  # its end is known; the machine has not let go yet
        await evict(world)
        world.machine.may_destroy.set()
        await asyncio.sleep(5)

        assert (await world.status("q"))["phase"] == phase

    in_a_world(test, behaviour=Behaviour(lifetime_seconds=(5.0, 5.0), run_fail_rate=rate))


@pytest.mark.parametrize("is_stopped", [False, True], ids=["before", "after it was stopped"])
def test_a_restarted_agent_goes_on_with_an_eviction(is_stopped: bool) -> None:
    async def test(world: World) -> None:
        uid = await world.bind("q")
        await asyncio.sleep(2)
        await world.stop()
        await evict(world)
        if is_stopped:
            await world.machine.destroy(sandbox(uid))
        await world.restart()
        await asyncio.sleep(2)

        assert (await world.status("q"))["phase"] == "Pending"
        assert world.machine.destroyed == [sandbox(uid)]

    in_a_world(test)


@pytest.mark.parametrize("does_it", [False, True], ids=["undone", "done all the same"])
def test_a_machine_that_fails_to_stop_it_is_asked_again(does_it: bool) -> None:
    async def test(world: World) -> None:
        await world.bind("q")
        await asyncio.sleep(2)
        destroy, failures = world.machine.destroy, [CubeschedError("busy")] * 3

        async def refuse(sandbox: str) -> None:
            if does_it or not failures:
                await destroy(sandbox)
            if failures:
                await asyncio.sleep(0.1)
                raise failures.pop()

        world.machine.destroy = refuse  # type: ignore[method-assign]
        await evict(world)
        await asyncio.sleep(10)

        assert (await world.status("q"))["phase"] == "Pending"
        assert not await world.running()

    in_a_world(test)


@pytest.mark.parametrize("faults", UNCLEAR, ids=name_of)
def test_an_eviction_whose_write_is_unclear_is_given_back_once(faults: Faults) -> None:
    async def test(world: World) -> None:
        uids = [await world.bind(f"q{number}") for number in range(4)]
        await asyncio.sleep(2)
        world.server.faults = faults
        for number in range(4):
            await evict(world, f"q{number}")
        await asyncio.sleep(60)
        world.server.faults = Faults()
        await asyncio.sleep(60)

        assert sorted(world.machine.destroyed) == sorted(sandbox(uid) for uid in uids)
        assert {(await world.status(f"q{number}"))["phase"] for number in range(4)} == {"Pending"}

    in_a_world(test)


@pytest.mark.parametrize("faults", UNCLEAR, ids=name_of)
def test_an_end_is_written_as_it_was_however_often_it_must_be_tried(faults: Faults) -> None:
    async def test(world: World) -> None:
        for number in range(4):
            await world.bind(f"q{number}")
        await asyncio.sleep(2)
        world.server.faults = faults
        await asyncio.sleep(60)
        world.server.faults = Faults()
        await asyncio.sleep(60)

        phases = {(await world.status(f"q{number}"))["phase"] for number in range(4)}
        assert phases == {"Succeeded"}
        assert not len(world.agent._ends)

    in_a_world(test, behaviour=Behaviour(lifetime_seconds=(5.0, 5.0)))


def test_an_end_that_meets_an_eviction_on_its_way_stays_the_end_it_was() -> None:
    async def test(world: World) -> None:
        await world.bind("q")
        await asyncio.sleep(2)
        store = world.server.store
        written: list[str] = []

        def evict_first(obj: dict[str, Any]) -> None:
            written.append(obj["status"]["phase"])

        world.at_each_write(evict_first)
        world.server.faults = Faults(error=1.0)  # the end cannot be written yet
        await asyncio.sleep(10)
        ((key, stored),) = store.objects.items()
        store.put(key, {**stored, "status": {**stored["status"], "phase": "Evicting"}}, "operator")
        world.server.faults = Faults()
        await asyncio.sleep(20)

        assert written == ["Evicting", "Succeeded"]

    in_a_world(test, behaviour=Behaviour(lifetime_seconds=(5.0, 5.0)))
