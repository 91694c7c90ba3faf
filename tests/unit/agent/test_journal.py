from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.test_room import an_order
from tests.unit.agent.worlds import NODE, RecordingRuntime

from cubesched.agent.journal import Journal, JournaledRuntime
from cubesched.agent.runtime import StartFailed
from cubesched.agent.simulated import Behaviour
from cubesched.fleet.entries import Weight


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def events(path: Path) -> list[str]:
    return [line["event"] for line in lines(path)]


async def test_a_start_is_in_the_file_before_it_takes_effect(tmp_path: Path) -> None:
    path = tmp_path / "log"
    machine = RecordingRuntime(Behaviour(create_delay_seconds=0))
    seen: list[list[str]] = []
    machine.at_create = lambda _: seen.append(events(path))

    with Journal(path, epoch_seconds=lambda: 5.0) as journal:
        runtime = JournaledRuntime(NODE, machine, journal)
        runtime.boot()
        await runtime.create(an_order())
        await runtime.create(an_order())

    assert seen == [["boot", "start"]]
    start = lines(path)[1]
    assert start == {
        "time": 5.0,
        "event": "start",
        "node": NODE,
        "sandbox": an_order().sandbox,
        "requestUID": "a",
        "reservationID": "r",
        "cpuMillis": 1000,
        "memoryBytes": 1 << 30,
    }


async def test_a_stop_is_written_once_it_is_done_and_only_for_what_ran(tmp_path: Path) -> None:
    path = tmp_path / "log"
    machine = RecordingRuntime(Behaviour(create_delay_seconds=0))
    with Journal(path) as journal:
        runtime = JournaledRuntime(NODE, machine, journal)
        await runtime.create(an_order())
        await runtime.destroy(an_order().sandbox)
        await runtime.destroy(an_order().sandbox)

    assert events(path) == ["start", "stop"]


async def test_what_an_earlier_run_started_is_written_when_it_stops(tmp_path: Path) -> None:
    path = tmp_path / "log"
    machine = RecordingRuntime(Behaviour(create_delay_seconds=0))
    await machine.create(an_order())
    with Journal(path) as journal:
        await JournaledRuntime(NODE, machine, journal).destroy(an_order().sandbox)

    assert lines(path)[0]["requestUID"] == "a"


async def test_a_failed_start_is_followed_by_a_stop(tmp_path: Path) -> None:
    path = tmp_path / "log"
    machine = RecordingRuntime(Behaviour(create_delay_seconds=0, start_fail_rate=1.0))
    with Journal(path) as journal, pytest.raises(StartFailed):
        await JournaledRuntime(NODE, machine, journal).create(an_order())

    assert events(path) == ["start", "stop"]


def test_two_processes_only_ever_add_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with Journal(path) as one, Journal(path) as other:
        one.write("boot", "n1")
        other.write("boot", "n2")
        one.write("boot", "n3")

    assert [line["node"] for line in lines(path)] == ["n1", "n2", "n3"]


async def test_everything_else_is_passed_on(tmp_path: Path) -> None:
    machine = RecordingRuntime(Behaviour(refusing_nodes=frozenset({NODE})))
    with Journal(tmp_path / "log") as journal:
        runtime = JournaledRuntime(NODE, machine, journal)

        assert runtime.limits() == machine.limits()
        assert runtime.templates() == ("here",)
        assert runtime.images() == {"small": 1, "large": 2}
        assert runtime.usage().memory_used_bytes > 0
        assert runtime.refusal(an_order())
        assert await runtime.running() == {}
        assert not (await runtime.wait("nothing")).succeeded


async def test_a_pause_is_written_once_the_rest_is_free_and_a_resume_before_it_is_taken(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log"
    machine = RecordingRuntime(Behaviour(create_delay_seconds=0))
    name = an_order().sandbox
    with Journal(path) as journal:
        runtime = JournaledRuntime(NODE, machine, journal)
        await runtime.create(an_order())
        machine.may_pause.clear()
        pausing = asyncio.create_task(runtime.pause(name, Weight(250, 0)))
        await asyncio.sleep(0.01)
        assert events(path) == ["start"]
        machine.may_pause.set()
        await pausing
        assert events(path) == ["start", "pause"]
        assert lines(path)[1]["cpuMillis"] == 250

        machine.cannot_resume = True
        with pytest.raises(StartFailed):
            await runtime.resume(name)

    assert events(path) == ["start", "pause", "resume", "stop"]
    assert not await machine.running()
