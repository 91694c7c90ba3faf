"""shutdownTime on the node: stopped in time, whatever the phase and the agent's fate; then told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.model.faults import Faults
from tests.model.virtualtime import run_virtual
from tests.unit.agent.worlds import World, in_a_world, placed, sandbox
from tests.unit.fleet.objects import a_request_object

from cubesched.agent.shutdowns import Shutdowns
from cubesched.agent.simulated import Behaviour
from cubesched.api.timestamps import timestamp
from cubesched.fleet.entries import read_entry

AT_START = 1_800_000_000


def until(seconds: float) -> str:
    return timestamp(AT_START + seconds)


def ready(status: dict[str, Any]) -> tuple[str, str, str]:
    (found,) = (c for c in status["conditions"] if c["type"] == "Ready")
    return found["status"], found["reason"], found["message"]


async def phases_of(world: World) -> list[str]:
    found: list[str] = []
    world.at_each_write(lambda obj: found.append(obj["status"]["phase"]))
    return found


def test_a_running_sandbox_is_stopped_when_its_time_comes() -> None:
    async def test(world: World) -> None:
        uid = await world.bind("q", shutdownTime=until(30))
        await asyncio.sleep(29)
        assert (await world.status("q"))["phase"] == "Running"
        assert await world.running() == {sandbox(uid)}

        await asyncio.sleep(2)
        status = await world.status("q")
        assert status["phase"] == "Succeeded"
        assert ready(status) == ("False", "Finished", "shutdownTime reached")
        assert status["finishedTime"] in {until(30), until(31)}
        assert status["nodeName"] == "node-1"
        assert await world.running() == set()
        assert len(world.agent._shutdowns) == 0

    in_a_world(test)


def test_the_end_is_told_only_after_the_machine_let_go() -> None:
    async def test(world: World) -> None:
        await world.bind("q", shutdownTime=until(10))
        await asyncio.sleep(5)
        world.machine.may_destroy.clear()
        await asyncio.sleep(30)
        assert (await world.status("q"))["phase"] == "Running"

        world.machine.may_destroy.set()
        await asyncio.sleep(1)
        assert (await world.status("q"))["phase"] == "Succeeded"

    in_a_world(test)


def test_a_paused_sandbox_is_stopped_too() -> None:
    async def test(world: World) -> None:
        await world.bind("q", shutdownTime=until(30), paused=True)
        await asyncio.sleep(10)
        assert (await world.status("q"))["phase"] == "Paused"

        await asyncio.sleep(25)
        assert (await world.status("q"))["phase"] == "Succeeded"
        assert await world.running() == set()

    in_a_world(test)


def test_what_is_to_be_evicted_when_its_time_has_come_has_ended_and_goes_nowhere() -> None:
    async def test(world: World) -> None:
        await world.bind("q", shutdownTime=until(30))
        await asyncio.sleep(20)
        await world.stop()
        await world.write("q", {"phase": "Evicting"})
        await asyncio.sleep(15)
        await world.restart()
        await asyncio.sleep(1)

        assert (await world.status("q"))["phase"] == "Succeeded"
        assert await world.running() == set()

    in_a_world(test)


@pytest.mark.parametrize("phase", ["Bound", "Starting"])
def test_what_has_not_begun_is_never_started(phase: str) -> None:
    async def test(world: World) -> None:
        phases = await phases_of(world)
        await world.bind("q", phase=phase, shutdownTime=until(-5))
        await asyncio.sleep(2)

        status = await world.status("q")
        assert status["phase"] == "Failed"
        assert ready(status) == ("False", "Finished", "shutdownTime reached before it ran")
        assert "finishedTime" in status
        assert world.machine.created == []
        assert phases == list(dict.fromkeys(["Pending", phase, "Starting", "Failed"]))

    in_a_world(test)


def test_a_resume_whose_time_has_come_is_no_failure() -> None:
    async def test(world: World) -> None:
        uid = await world.bind("q", shutdownTime=until(30), paused=True)
        await asyncio.sleep(10)
        stored = (await world.status("q"))["reservation"]
        reservation = {**stored, "id": "f" * 32, "resume": sandbox(uid)}
        await world.stop()
        await asyncio.sleep(25)
        await world.write("q", {"phase": "Bound", "reservation": reservation})
        await world.restart()
        await asyncio.sleep(2)

        assert (await world.status("q"))["phase"] == "Succeeded"
        assert await world.running() == set()

    in_a_world(test)


def test_a_sandbox_whose_time_comes_while_it_is_created_is_stopped_after_that() -> None:
    async def test(world: World) -> None:
        await world.bind("q", shutdownTime=until(10))
        await asyncio.sleep(40)

        assert (await world.status("q"))["phase"] == "Succeeded"
        assert await world.running() == set()

    in_a_world(test, behaviour=Behaviour(create_delay_seconds=20.0))


def test_an_agent_that_was_away_when_the_time_came_stops_it_at_its_return() -> None:
    async def test(world: World) -> None:
        uid = await world.bind("q", shutdownTime=until(30))
        await asyncio.sleep(10)
        await world.stop()
        await asyncio.sleep(60)
        assert await world.running() == {sandbox(uid)}

        await world.restart()
        await asyncio.sleep(2)
        assert (await world.status("q"))["phase"] == "Succeeded"
        assert await world.running() == set()

    in_a_world(test)


def test_one_that_ended_by_itself_before_is_told_as_it_ended() -> None:
    async def test(world: World) -> None:
        await world.bind("q", shutdownTime=until(30))
        await asyncio.sleep(20)
        world.server.faults = Faults(error=1.0)
        await asyncio.sleep(20)  # it has failed meanwhile, and cannot say so
        world.server.faults = Faults()
        await asyncio.sleep(20)

        status = await world.status("q")
        assert (status["phase"], ready(status)[2]) == ("Failed", "the sandbox ended with an error")

    in_a_world(test, behaviour=Behaviour(lifetime_seconds=(25.0, 25.0), run_fail_rate=1.0))


def test_the_end_is_written_in_the_end_though_writes_fail() -> None:
    async def test(world: World) -> None:
        await world.bind("q", shutdownTime=until(20))
        await asyncio.sleep(60)

        status = await world.status("q")
        assert (status["phase"], ready(status)[2]) == ("Succeeded", "shutdownTime reached")

    in_a_world(test, faults=Faults(error=0.5))


@pytest.mark.parametrize("stamp", ["soon", "", "0000-01-01T00:00:00Z", 7])
def test_a_time_that_is_none_stops_nothing(stamp: Any) -> None:
    async def test(world: World) -> None:
        raw = a_request_object(
            "q", uid="u", phase="Running", node="node-1", spec={"shutdownTime": stamp}
        )
        assert not world.agent._shutdowns.has_come(read_entry(raw))
        assert len(world.agent._shutdowns) == 0

    in_a_world(test)


def test_nobody_is_woken_for_what_has_left_the_node() -> None:
    async def test(world: World) -> None:
        await world.bind("q", shutdownTime=until(30))
        await asyncio.sleep(5)
        assert len(world.agent._shutdowns) == 1

        await world.delete("q")
        await asyncio.sleep(1)
        assert len(world.agent._shutdowns) == 0

    in_a_world(test)


def test_a_clock_that_is_set_right_counts_within_a_minute() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ahead: list[float] = [0.0]
        woken: list[str] = []
        shutdowns = Shutdowns(lambda: AT_START + loop.time() + ahead[0], woken.append)
        far = read_entry(a_request_object("q", uid="u", spec={"shutdownTime": until(36_000)}))
        assert not shutdowns.has_come(far)

        ahead[0] = 36_000.0
        await asyncio.sleep(61)
        assert woken == ["u"]
        assert shutdowns.has_come(far)

    run_virtual(main)


def test_what_is_claimed_by_nobody_is_not_the_agents_to_end() -> None:
    async def test(world: World) -> None:
        await world.bind("q", phase="Reserved", shutdownTime=until(-5))
        await asyncio.sleep(5)

        assert (await world.status("q")) == {**placed("Reserved"), "attempts": 0}

    in_a_world(test)
