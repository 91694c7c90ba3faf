"""Pause and resume on one node: the machine lets go first, and takes back only what is reserved."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from typing import Any

import pytest
from tests.model.faults import Faults
from tests.unit.agent.worlds import GIB, World, in_a_world, placed, sandbox

from cubesched.agent.pausing import kept
from cubesched.agent.runtime import RuntimeUnavailable
from cubesched.agent.simulated import Behaviour
from cubesched.fleet.entries import Weight

NEW_ID = "fedcba9876543210fedcba9876543210"


async def run_and_pause(world: World, name: str = "q", **spec: Any) -> str:
    """Bind a request of 1000 millis, let it run, and pause it."""
    uid = await world.bind(name, **spec)
    await asyncio.sleep(1)
    await world.wish(name, paused=True)
    await asyncio.sleep(1)
    return uid


async def to_resume(world: World, uid: str, name: str = "q", phase: str = "Bound") -> None:
    """Write what the operator does when a resume is confirmed."""
    stored = (await world.status(name))["reservation"]
    reservation = {**stored, "id": NEW_ID, "resume": sandbox(uid)}
    await world.wish(name, paused=False)
    await world.write(name, {"phase": phase, "reservation": reservation})


def condition(status: dict[str, Any], kind: str) -> tuple[str, str]:
    return next(
        ((c["status"], c["reason"]) for c in status["conditions"] if c["type"] == kind), ("", "")
    )


def held(world: World) -> dict[str, int]:
    return {name: weight.cpu_millis for name, weight in world.agent._room.held.items()}


# Pause


def test_a_paused_sandbox_is_stamped_with_what_it_keeps() -> None:
    async def test(world: World) -> None:
        world.release(0.75)
        uid = await run_and_pause(world)

        status = await world.status("q")
        assert status["phase"] == "Paused"
        assert status["reservation"] == {
            **placed("Bound")["reservation"],
            "paused": {"cpuMillis": 250, "memoryBytes": GIB // 4},
        }
        assert condition(status, "Ready") == ("False", "Paused")
        assert status["sandboxID"] == sandbox(uid)
        assert held(world) == {sandbox(uid): 250}
        assert await world.running() == {sandbox(uid)}

    in_a_world(test)


def test_paused_is_written_only_after_the_machine_let_go() -> None:
    async def test(world: World) -> None:
        world.release(0.5)
        phases: list[tuple[str, int]] = []

        def look(obj: dict[str, Any]) -> None:
            (taken,) = world.machine._sandboxes.values()
            phases.append((obj["status"]["phase"], taken.takes.cpu_millis))

        await world.bind("q")
        await asyncio.sleep(1)
        world.at_each_write(look)
        world.machine.may_pause.clear()
        await world.wish("q", paused=True)
        await asyncio.sleep(5)
        assert phases == [("Running", 1000)]

        world.machine.may_pause.set()
        await asyncio.sleep(1)
        assert phases == [("Running", 1000), ("Paused", 500)]

    in_a_world(test)


def test_what_the_machine_was_told_is_stamped_though_the_ratio_changes_meanwhile() -> None:
    async def test(world: World) -> None:
        world.release(0.25)
        await world.bind("q")
        await asyncio.sleep(1)
        world.machine.may_pause.clear()
        await world.wish("q", paused=True)
        await asyncio.sleep(1)
        world.release(1.0)
        world.machine.may_pause.set()
        await asyncio.sleep(1)

        assert (await world.status("q"))["reservation"]["paused"]["cpuMillis"] == 750

    in_a_world(test)


def test_nothing_is_released_where_no_ratio_is_known() -> None:
    async def test(world: World) -> None:
        await run_and_pause(world)

        assert (await world.status("q"))["reservation"]["paused"]["cpuMillis"] == 1000

    in_a_world(test)


def test_a_request_paused_before_it_runs_is_paused_once_it_does() -> None:
    async def test(world: World) -> None:
        phases: list[str] = []
        world.at_each_write(lambda obj: phases.append(obj.get("status", {}).get("phase", "")))
        await world.bind("q", paused=True)
        await asyncio.sleep(2)

        assert phases[-3:] == ["Starting", "Running", "Paused"]

    in_a_world(test)


def test_a_machine_that_cannot_pause_now_is_asked_again() -> None:
    async def test(world: World) -> None:
        pause, failures = world.machine.pause, [RuntimeUnavailable("busy")] * 3

        async def refuse(sandbox: str, keeping: Weight) -> None:
            if failures:
                raise failures.pop()
            await pause(sandbox, keeping)

        world.machine.pause = refuse  # type: ignore[method-assign]
        await run_and_pause(world)
        assert (await world.status("q"))["phase"] == "Running"
        await asyncio.sleep(10)

        assert (await world.status("q"))["phase"] == "Paused"

    in_a_world(test)


def test_a_pause_taken_back_before_it_was_written_runs_on() -> None:
    async def test(world: World) -> None:
        world.release(0.5)
        uid = await world.bind("q")
        await asyncio.sleep(1)
        world.server.faults = Faults(error=1.0)  # nothing that the agent writes arrives
        await world.wish("q", paused=True)
        await asyncio.sleep(1)
        await world.wish("q", paused=False)
        world.server.faults = Faults()
        await asyncio.sleep(10)

        status = await world.status("q")
        assert status["phase"] == "Running"
        assert "paused" not in status["reservation"]
        assert world.machine.asked[-1] == (sandbox(uid), 0)
        assert held(world) == {sandbox(uid): 1000}

    in_a_world(test)


def test_an_end_that_is_known_when_a_pause_is_asked_for_is_the_end() -> None:
    async def test(world: World) -> None:
        await world.bind("q")
        world.machine.may_destroy.clear()
        await asyncio.sleep(6)
        await world.wish("q", paused=True)
        world.machine.may_destroy.set()
        await asyncio.sleep(2)

        assert (await world.status("q"))["phase"] == "Succeeded"
        assert not world.machine.asked

    in_a_world(test, behaviour=Behaviour(lifetime_seconds=(5.0, 5.0)))


# While it is paused


def test_its_time_stands_still_and_it_ends_once_resumed() -> None:
    async def test(world: World) -> None:
        uid = await run_and_pause(world)
        await asyncio.sleep(100)
        assert (await world.status("q"))["phase"] == "Paused"

        await to_resume(world, uid)
        await asyncio.sleep(2)
        assert (await world.status("q"))["phase"] == "Running"
        await asyncio.sleep(4)
        assert (await world.status("q"))["phase"] == "Succeeded"

    in_a_world(test, behaviour=Behaviour(lifetime_seconds=(5.0, 5.0)))


def test_a_paused_sandbox_that_is_gone_has_failed() -> None:
    async def test(world: World) -> None:
        uid = await run_and_pause(world)
        await world.machine.destroy(sandbox(uid))
        await asyncio.sleep(1)

        status = await world.status("q")
        assert status["phase"] == "Failed"
        assert condition(status, "Ready") == ("False", "Finished")
        assert not held(world)

    in_a_world(test)


def test_a_paused_sandbox_of_a_deleted_request_is_destroyed() -> None:
    async def test(world: World) -> None:
        uid = await run_and_pause(world)
        await world.delete("q")
        await asyncio.sleep(1)

        assert world.machine.destroyed == [sandbox(uid)]
        assert not held(world)

    in_a_world(test)


@pytest.mark.parametrize("forgets", [False, True], ids=["machine pauses", "machine runs it"])
def test_a_restarted_agent_keeps_what_is_paused(forgets: bool) -> None:
    async def test(world: World) -> None:
        world.release(0.5)
        uid = await run_and_pause(world)
        await world.stop()
        if forgets:
            await world.machine.resume(sandbox(uid))
        world.machine.asked.clear()
        await world.restart()
        await asyncio.sleep(1)

        assert (await world.status("q"))["phase"] == "Paused"
        assert not world.machine.destroyed
        assert world.machine.asked == [(sandbox(uid), 500)]
        assert held(world) == {sandbox(uid): 500}
        assert world.machine._sandboxes[sandbox(uid)].takes.cpu_millis == 500

    in_a_world(test)


def test_the_room_that_a_pause_freed_is_used_and_not_more() -> None:
    async def test(world: World) -> None:
        world.release(0.5)
        await run_and_pause(world, "paused")
        await world.bind("fits", cpu_millis=3500)
        await asyncio.sleep(1)
        await world.bind("too-much", cpu_millis=1)
        await asyncio.sleep(1)

        assert (await world.status("fits"))["phase"] == "Running"
        assert (await world.status("too-much"))["phase"] == "Pending"

    in_a_world(test)


# Resume


def test_a_confirmed_resume_runs_the_same_sandbox_and_drops_the_stamp() -> None:
    async def test(world: World) -> None:
        world.release(0.5)
        uid = await run_and_pause(world)
        phases: list[str] = []
        world.at_each_write(lambda obj: phases.append(obj["status"]["phase"]))
        await to_resume(world, uid)
        await asyncio.sleep(1)

        status = await world.status("q")
        assert phases == ["Paused", "Bound", "Starting", "Running"]
        assert status["reservation"] == {
            **placed("Bound")["reservation"],
            "id": NEW_ID,
            "resume": sandbox(uid),
        }
        assert condition(status, "Ready") == ("True", "Running")
        assert status["sandboxID"] == sandbox(uid)
        assert world.machine.created == [sandbox(uid)]
        assert held(world) == {sandbox(uid): 1000}

    in_a_world(test)


def test_one_reserved_to_resume_stays_paused_on_the_machine() -> None:
    async def test(world: World) -> None:
        uid = await run_and_pause(world)
        await to_resume(world, uid, phase="Reserved")
        await asyncio.sleep(5)

        assert await world.running() == {sandbox(uid)}
        assert world.machine.asked == [(sandbox(uid), 1000)]
        assert not world.machine.destroyed

    in_a_world(test)


def test_a_machine_without_the_room_gives_it_back_paused() -> None:
    async def test(world: World) -> None:
        world.release(0.5)
        uid = await run_and_pause(world)
        await world.bind("other", cpu_millis=3500)
        await asyncio.sleep(1)
        await to_resume(world, uid)
        await asyncio.sleep(1)

        status = await world.status("q")
        assert status["phase"] == "Paused"
        assert status["reservation"]["paused"]["cpuMillis"] == 500
        assert [r["node"] for r in status["refusals"]] == ["node-1"]
        assert condition(status, "ResumeBlocked") == ("True", "InsufficientCapacity")
        assert condition(status, "Ready") == ("False", "Paused")
        assert world.machine._sandboxes[sandbox(uid)].takes.cpu_millis == 500
        assert sum(held(world).values()) == 4000

    in_a_world(test)


def test_a_sandbox_that_cannot_be_resumed_fails_and_leaves_nothing() -> None:
    async def test(world: World) -> None:
        uid = await run_and_pause(world)
        world.machine.cannot_resume = True
        await to_resume(world, uid)
        await asyncio.sleep(1)

        status = await world.status("q")
        assert status["phase"] == "Failed"
        assert condition(status, "Ready") == ("False", "StartFailed")
        assert not await world.running()

    in_a_world(test)


def test_a_resume_of_what_is_gone_has_failed() -> None:
    async def test(world: World) -> None:
        uid = await run_and_pause(world)
        await world.stop()
        await world.machine.destroy(sandbox(uid))
        await to_resume(world, uid)
        await world.restart()
        await asyncio.sleep(1)

        status = await world.status("q")
        assert status["phase"] == "Failed"
        assert condition(status, "Ready") == ("False", "Finished")

    in_a_world(test)


@pytest.mark.parametrize("is_resumed", [False, True], ids=["before", "after it was resumed"])
def test_a_restarted_agent_goes_on_with_a_resume(is_resumed: bool) -> None:
    async def test(world: World) -> None:
        world.release(0.5)
        uid = await run_and_pause(world)
        await world.stop()
        await to_resume(world, uid, phase="Starting")
        if is_resumed:
            await world.machine.resume(sandbox(uid))
        await world.restart()
        await asyncio.sleep(1)

        assert (await world.status("q"))["phase"] == "Running"
        assert held(world) == {sandbox(uid): 1000}
        assert world.machine._sandboxes[sandbox(uid)].takes.cpu_millis == 1000

    in_a_world(test)


def test_a_restarted_agent_checks_the_room_before_it_goes_on_with_a_resume() -> None:
    async def test(world: World) -> None:
        world.release(0.5)
        uid = await run_and_pause(world)
        await world.bind("other", cpu_millis=3500)
        await asyncio.sleep(1)
        await world.stop()
        await to_resume(world, uid, phase="Starting")
        await world.restart()
        await asyncio.sleep(1)

        assert (await world.status("q"))["phase"] == "Paused"
        assert (sandbox(uid), 0) not in world.machine.asked

    in_a_world(test)


@pytest.mark.parametrize(
    "faults",
    [Faults(lost=0.6), Faults(lost_after=0.6), Faults(resent=0.6), Faults(error_after=0.6)],
    ids=["lost", "lost_after", "resent", "error_after"],
)
def test_pause_and_resume_survive_writes_whose_outcome_is_unclear(faults: Faults) -> None:
    async def test(world: World) -> None:
        world.release(0.5)
        uid = await world.bind("q")
        await asyncio.sleep(1)
        world.server.faults = faults
        await world.wish("q", paused=True)
        await asyncio.sleep(60)
        assert (await world.status("q"))["phase"] == "Paused"
        await to_resume(world, uid)
        await asyncio.sleep(60)
        world.server.faults = Faults()
        await asyncio.sleep(30)

        assert (await world.status("q"))["phase"] == "Running"
        assert world.machine.created == [sandbox(uid)]
        assert held(world) == {sandbox(uid): 1000}

    in_a_world(test)


def test_flipped_ten_times_a_second_it_settles_as_last_asked() -> None:
    async def test(world: World) -> None:
        world.release(0.5)
        uid = await world.bind("q")
        await asyncio.sleep(1)
        writes: list[str] = []
        world.at_each_write(lambda obj: writes.append(obj["status"]["phase"]))
        for number in range(41):
            await world.wish("q", paused=number % 2 == 0)
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)

        assert (await world.status("q"))["phase"] == "Paused"
        assert len(writes) == 41 + 1, "one pause; the operator alone resumes"
        assert held(world) == {sandbox(uid): 500}

    in_a_world(test)


@pytest.mark.parametrize(
    ("cpu_millis", "ratio", "keeps"), [(1000, "0.1", 900), (3, "0.5", 2), (3, "1", 0), (3, "0", 3)]
)
def test_what_is_kept_is_rounded_up(cpu_millis: int, ratio: str, keeps: int) -> None:
    found = kept(Weight(cpu_millis, cpu_millis, 7), Fraction(ratio))

    assert found == Weight(keeps, keeps, 7)
