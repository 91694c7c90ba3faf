from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.model.virtualtime import run_virtual

from cubesched.handlers.pacing import Pace


def seconds_until_due(script: Callable[[Pace], Awaitable[None]]) -> float:
    """Run `script` beside one wait; return how long that wait took."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        pace = Pace(lambda: 0.5)
        started = loop.time()
        waiting = asyncio.create_task(pace.until_due())
        await script(pace)
        await waiting
        return round(loop.time() - started, 3)

    return run_virtual(main)


def test_a_single_poke_is_acted_on_after_a_short_silence() -> None:
    async def script(pace: Pace) -> None:
        pace.poke()

    assert seconds_until_due(script) == 0.05


def test_a_burst_is_one_run_when_it_has_settled() -> None:
    async def script(pace: Pace) -> None:
        for _ in range(3):
            pace.poke()
            await asyncio.sleep(0.04)

    assert seconds_until_due(script) == 0.13


def test_a_burst_without_end_is_not_waited_for() -> None:
    async def script(pace: Pace) -> None:
        for _ in range(20):
            pace.poke()
            await asyncio.sleep(0.04)

    assert 0.19 <= seconds_until_due(script) <= 0.81


def test_without_any_poke_it_is_due_about_once_a_minute() -> None:
    async def script(pace: Pace) -> None:
        await asyncio.sleep(0)

    assert seconds_until_due(script) == 60.0


def test_a_poke_from_before_the_wait_is_not_lost() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        pace = Pace(lambda: 0.5)
        pace.poke()
        await pace.until_due()
        return loop.time()

    assert run_virtual(main) < 1.0


def test_failures_are_retried_slower_and_slower() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        pace = Pace(lambda: 1.0)
        waits = []
        for _ in range(8):
            started = loop.time()
            await pace.after_failure()
            waits.append(round(loop.time() - started, 3))
        return waits

    waits = run_virtual(main)

    assert waits == sorted(waits)
    assert waits[0] <= 0.2
    assert waits[-1] == 10.0


def test_a_poke_does_not_wait_long_for_what_keeps_failing() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        pace = Pace(lambda: 1.0)
        for _ in range(8):
            await pace.after_failure()
        started = loop.time()
        loop.call_later(0.3, pace.poke)
        await pace.after_failure()
        return round(loop.time() - started, 3)

    assert run_virtual(main) == 1.0
