from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.unit.agent.worlds import GIB, RecordingRuntime
from typing_extensions import override

from cubesched.agent.room import Room, shortage, total, unexplained
from cubesched.agent.runtime import Limits, Order
from cubesched.agent.simulated import Behaviour
from cubesched.fleet.entries import Weight
from cubesched.fleet.sandboxes import sandbox_name

ONE = Weight(1000, GIB, GIB)


def an_order(uid: str = "a", weight: Weight = ONE) -> Order:
    return Order(
        sandbox=sandbox_name(uid, "r"),
        uid=uid,
        reservation_id="r",
        namespace="ns",
        name=uid,
        template_id="",
        weight=weight,
    )


def test_a_total_of_nothing_is_nothing() -> None:
    assert total([]) == Weight(0, 0, 0)
    assert total([ONE, ONE]) == Weight(2000, 2 * GIB, 2 * GIB)


@pytest.mark.parametrize(
    ("limits", "what"),
    [
        (Limits(2000, 4 * GIB, 4 * GIB), ""),
        (Limits(1999, 4 * GIB, 4 * GIB), "cpu"),
        (Limits(2000, 2 * GIB - 1, 4 * GIB), "memory"),
        (Limits(2000, 4 * GIB, 2 * GIB - 1), "disk"),
        (Limits(2000, 4 * GIB, None), ""),
        (Limits(2000, 4 * GIB, None, sandboxes=1), "sandboxes"),
    ],
)
def test_an_exact_fit_is_let_in_and_one_more_is_not(limits: Limits, what: str) -> None:
    short = shortage(limits, {"x": ONE}, ONE)

    assert (what in short) if what else not short


async def test_what_the_agent_did_not_start_takes_room_too() -> None:
    machine = RecordingRuntime(Behaviour(create_delay_seconds=0), cpu_millis=1500)
    await machine.create(replace(an_order("other"), sandbox="dockerd"))
    room = Room(machine)

    assert await room.admit(an_order())
    await room.find()
    assert not room.held


async def test_the_same_order_is_admitted_again_without_counting_twice() -> None:
    room = Room(RecordingRuntime(Behaviour(), cpu_millis=1500))

    assert not await room.admit(an_order())
    assert not await room.admit(an_order())


class SlowToList(RecordingRuntime):
    """Takes a while to say what runs, and says what ran when it was asked."""

    @override
    async def running(self) -> Mapping[str, Weight]:
        found = await super().running()
        await asyncio.sleep(0.01)
        return found


async def test_of_many_at_once_only_those_that_fit_are_admitted() -> None:
    room = Room(SlowToList(Behaviour(), cpu_millis=3500))

    answers = await asyncio.gather(*(room.admit(an_order(f"u{i}")) for i in range(10)))

    assert sum(not answer for answer in answers) == 3


async def test_what_is_destroyed_or_created_while_the_machine_answers_is_counted() -> None:
    room = Room(SlowToList(Behaviour(create_delay_seconds=0), cpu_millis=9000))
    await room.admit(an_order("a"))

    asking = asyncio.create_task(room.taken())
    await asyncio.sleep(0)
    room.held[an_order("b").sandbox] = ONE
    taken = await asking

    assert set(taken) == {an_order("a").sandbox, an_order("b").sandbox}


async def test_released_room_is_free() -> None:
    room = Room(RecordingRuntime(Behaviour(), cpu_millis=1000))
    await room.admit(an_order("a"))

    await room.release(an_order("a").sandbox)

    assert not room.of("a")
    assert not await room.admit(an_order("b"))


def test_what_no_request_explains_is_summed() -> None:
    assert unexplained({"a": ONE, "b": ONE}, {"a"}) == (ONE, 1)
    assert unexplained({"a": ONE}, {"a"}) == (Weight(), 0)


async def test_what_is_paused_needs_room_for_the_rest_to_be_resumed() -> None:
    room = Room(RecordingRuntime(Behaviour(), cpu_millis=1500))
    await room.admit(an_order("a"))
    room.count(an_order("a").sandbox, replace(ONE, cpu_millis=500))
    await room.admit(an_order("b"))

    assert "1000 cpu millis, 500 free" in await room.admit(an_order("a"), resumes=True)
    assert room.held[an_order("a").sandbox].cpu_millis == 500

    await room.release(an_order("b").sandbox)
    assert not await room.admit(an_order("a"), resumes=True)
    assert room.held[an_order("a").sandbox] == ONE


async def test_only_what_is_held_can_be_counted_anew() -> None:
    room = Room(RecordingRuntime(Behaviour()))
    await room.admit(an_order("a"))

    room.count("unknown", ONE)
    room.count_at_least("unknown", ONE)
    room.count_at_least(an_order("a").sandbox, replace(ONE, cpu_millis=1, memory_bytes=2 << 30))

    assert room.held == {an_order("a").sandbox: replace(ONE, memory_bytes=2 << 30)}
