"""Deadline, circuit breaker and the one thread: what bounds the time of a plugin in Python."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from typing_extensions import override

from cubesched.core.errors import PluginError
from cubesched.core.pipeline import Circuit, Health
from cubesched.plugins.python.host import Limits, PythonHost, Terms
from cubesched.plugins.python.worker import Wanted, Worker

PATIENT = Limits(timeout_seconds=5.0, failures=3, cooldown_seconds=30.0)
HASTY = Limits(timeout_seconds=0.02, failures=3, cooldown_seconds=30.0)


@dataclass
class World:
    now: float = 100.0
    worker: Worker = field(default_factory=lambda: Worker("plugin-zones"))
    gate: threading.Event = field(default_factory=threading.Event)
    calls: int = 0
    held: dict[Limits, Terms] = field(default_factory=dict)
    host: PythonHost = field(init=False)

    def __post_init__(self) -> None:
        self.host = PythonHost("zones", self.worker, clock=lambda: self.now)

    def hang(self, _: Wanted) -> str:
        self.calls += 1
        assert self.gate.wait(10)
        return "late"

    def answer(self, _: Wanted) -> str:
        self.calls += 1
        return "fine"

    def fail(self, _: Wanted) -> str:
        self.calls += 1
        raise KeyError("zone")

    def terms(self, limits: Limits) -> Terms:
        """Return terms that stay, as an entry of the running policy keeps them."""
        return self.held.setdefault(limits, self.host.terms(limits))

    async def outcome(self, work: Callable[[Wanted], str], limits: Limits = PATIENT) -> str:
        """Return the answer, or the error's message."""
        try:
            return await self.host.ask(work, self.terms(limits))
        except PluginError as error:
            return error.message

    async def until_begun(self) -> None:
        """Wait until the thread is at work."""
        async with asyncio.timeout(5):
            while self.worker.running is None:  # noqa: ASYNC110 - the thread tells nobody
                await asyncio.sleep(0)

    async def until_free(self) -> None:
        self.gate.set()
        await asyncio.to_thread(self.worker.submit(lambda _: None).done.result, 5)


async def test_the_answer_comes_from_the_plugin_s_thread() -> None:
    world = World()

    name = await world.host.ask(lambda _: threading.current_thread().name, world.terms(PATIENT))

    assert name == "plugin-zones"
    assert world.host.health() == (Health.HEALTHY, "")


async def test_the_loop_goes_on_while_the_plugin_thinks() -> None:
    world = World()
    asked = asyncio.create_task(world.outcome(world.hang))
    turns = 0
    while not world.calls:
        await asyncio.sleep(0)
        turns += 1
    world.gate.set()

    assert await asked == "late"
    assert turns


async def test_an_exception_is_the_call_s_failure_in_words() -> None:
    assert await World().outcome(World().fail) == "KeyError: 'zone'"


async def test_an_empty_iterator_is_a_failure_and_no_hanging() -> None:
    def work(_: Wanted) -> str:
        return next(iter(()))

    assert await World().outcome(work) == "StopIteration"


async def test_an_exception_that_cannot_say_what_it_is_ends_nothing() -> None:
    class Mute(Exception):
        @override
        def __str__(self) -> str:
            raise SystemExit(1)

    def work(_: Wanted) -> str:
        raise Mute

    assert await World().outcome(work) == "Mute: without words"


async def test_the_words_of_an_exception_are_made_in_the_plugin_s_thread() -> None:
    class Talks(Exception):
        @override
        def __str__(self) -> str:
            return threading.current_thread().name

    def work(_: Wanted) -> str:
        raise Talks

    assert await World().outcome(work) == "Talks: plugin-zones"


async def test_a_call_that_outlives_its_time_fails_and_so_does_every_other_until_it_returns() -> (
    None
):
    world = World()

    assert await world.outcome(world.hang, HASTY) == "no answer within 20 ms"
    for _ in range(5):
        assert (await world.outcome(world.answer)).startswith("an earlier call has not returned")
    assert world.calls == 1
    health, why = world.host.health()
    assert health is Health.CIRCUIT_OPEN
    assert why == "an earlier call has not returned"  # the same at each look

    await world.until_free()
    assert world.host.health() == (Health.HEALTHY, "")
    assert await world.outcome(world.answer) == "fine"


async def test_there_is_never_a_second_thread() -> None:
    world = World()
    before = threading.active_count()
    await world.outcome(world.hang, HASTY)
    await asyncio.gather(*(world.outcome(world.answer, HASTY) for _ in range(50)))

    assert threading.active_count() == before + 1
    await world.until_free()


async def test_calls_take_turns_and_each_has_its_own_time() -> None:
    world, slow = World(), Limits(timeout_seconds=0.2, failures=1, cooldown_seconds=30.0)
    pause = threading.Event()
    answers = await asyncio.gather(
        *(world.outcome(lambda _: str(pause.wait(0.04)), slow) for _ in range(6))
    )

    assert answers == ["False"] * 6


async def test_calls_that_fail_in_a_row_open_the_breaker_and_one_try_closes_it() -> None:
    world = World()
    for _ in range(3):
        await world.outcome(world.fail)

    why = "3 calls in a row failed, the last: KeyError: 'zone'"
    assert world.host.health() == (Health.CIRCUIT_OPEN, why)
    assert await world.outcome(world.answer) == f"not asked for another 30.0 s: {why}"
    assert world.calls == 3
    world.now += 30
    assert await world.outcome(world.answer) == "fine"
    assert world.host.health() == (Health.HEALTHY, "")


async def test_the_state_of_the_circuit_is_told_open_trying_and_closed() -> None:
    world, seen = World(), list[Circuit]()
    once = Limits(5.0, failures=1, cooldown_seconds=30.0)
    assert world.host.circuit("zones") is Circuit.CLOSED
    await world.outcome(world.fail, once)
    assert world.host.circuit("zones") is Circuit.OPEN
    world.now += 30

    def look(_: Wanted) -> str:
        seen.append(world.host.circuit("zones"))
        return "fine"

    assert await world.outcome(look, once) == "fine"
    assert seen == [Circuit.TRYING]
    assert world.host.circuit("zones") is Circuit.CLOSED
    await world.outcome(world.hang, HASTY)
    assert world.host.circuit("zones") is Circuit.OPEN
    await world.until_free()


async def test_entries_with_other_limits_have_breakers_of_their_own() -> None:
    world = World()
    await world.outcome(world.fail, Limits(5.0, failures=1, cooldown_seconds=30.0))

    assert world.host.health()[0] is Health.CIRCUIT_OPEN
    assert await world.outcome(world.answer, PATIENT) == "fine"


async def test_a_breaker_that_no_entry_uses_any_more_says_nothing() -> None:
    world = World()
    await world.outcome(world.fail, Limits(5.0, failures=1, cooldown_seconds=30.0))
    assert world.host.health()[0] is Health.CIRCUIT_OPEN

    world.held.clear()

    assert world.host.health() == (Health.HEALTHY, "")


async def test_a_call_that_is_given_up_counts_as_no_failure() -> None:
    world = World()
    once = Limits(5.0, failures=1, cooldown_seconds=30.0)
    asked = asyncio.create_task(world.outcome(world.hang, once))
    await world.until_begun()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked

    assert world.host.health() == (Health.HEALTHY, "")
    await world.until_free()
    assert await world.outcome(world.answer, once) == "fine"


async def test_a_call_waits_for_one_that_was_given_up_before_its_time_was_over() -> None:
    world = World()
    given_up = asyncio.create_task(world.outcome(world.hang))
    await world.until_begun()
    given_up.cancel()
    await asyncio.wait((given_up,))
    asked = asyncio.create_task(world.outcome(world.answer))
    await asyncio.sleep(0)
    world.gate.set()

    assert await asked == "fine"


async def test_a_call_that_was_given_up_and_never_returns_is_waited_for_once() -> None:
    world = World()
    given_up = asyncio.create_task(world.outcome(world.hang))
    await world.until_begun()
    given_up.cancel()
    await asyncio.wait((given_up,))

    assert (await world.outcome(world.answer, HASTY)).startswith("an earlier call has not returned")
    assert world.host.health()[0] is Health.CIRCUIT_OPEN
    assert (await world.outcome(world.answer)).startswith("an earlier call has not returned")
    await world.until_free()


async def test_a_call_waits_while_an_instance_is_being_made() -> None:
    world, gate = World(), threading.Event()
    world.worker.submit(lambda _: gate.wait(5))
    await world.until_begun()
    asked = asyncio.create_task(world.outcome(world.answer))
    await asyncio.sleep(0)
    gate.set()

    assert await asked == "fine"


async def test_a_call_waits_for_an_instance_that_cannot_be_made() -> None:
    world = World()

    def make(_: Wanted) -> str:
        assert world.gate.wait(10)
        raise StopIteration

    world.worker.submit(make)
    await world.until_begun()
    asked = asyncio.create_task(world.outcome(world.answer))
    await asyncio.sleep(0)
    world.gate.set()

    async with asyncio.timeout(2):
        assert await asked == "fine"


async def test_an_instance_that_takes_too_long_to_be_made_fails_the_call() -> None:
    world = World()
    making = world.worker.submit(world.hang)
    await world.until_begun()

    assert (await world.outcome(world.answer, HASTY)).startswith("an earlier call")
    world.gate.set()
    assert making.done.result(5) == "late"


async def test_closing_fails_the_call_under_way_and_those_that_follow() -> None:
    world = World()
    asked = asyncio.create_task(world.outcome(world.hang))
    await world.until_begun()
    await world.host.close()

    assert await asked == "no Profile lists it any more"
    await world.until_free()
    assert await world.outcome(world.answer) == "no Profile lists it any more"
