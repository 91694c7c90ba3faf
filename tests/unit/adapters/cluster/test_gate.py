"""The gate never loses a place and never lends one twice."""

from __future__ import annotations

import asyncio

from tests.model.virtualtime import run_virtual

from cubesched.adapters.cluster.gate import WriteGate


def test_no_more_than_the_limit_are_inside_at_once() -> None:
    inside = most = 0

    async def visit(gate: WriteGate) -> None:
        nonlocal inside, most
        async with gate.slot(1):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(1)
            inside -= 1

    async def main() -> None:
        gate = WriteGate(3)
        await asyncio.gather(*(visit(gate) for _ in range(20)))

    run_virtual(main)

    assert most == 3


def test_places_survive_those_that_give_up_while_waiting_or_inside() -> None:
    async def hold(gate: WriteGate) -> None:
        async with gate.slot(1):
            await asyncio.sleep(5)

    async def main() -> int:
        gate = WriteGate(2)
        tasks = [asyncio.create_task(hold(gate)) for _ in range(10)]
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with gate.slot(1), gate.slot(1):
            return gate.waiting

    assert run_virtual(main) == 0


def test_a_place_handed_over_to_one_that_gives_up_at_that_moment_is_passed_on() -> None:
    async def main() -> bool:
        gate = WriteGate(1)
        first = gate.slot(1)
        await first.__aenter__()
        waiter = asyncio.create_task(_enter_and_leave(gate))
        await asyncio.sleep(0)
        await first.__aexit__(None, None, None)
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
        await asyncio.wait_for(_enter_and_leave(gate), 1)
        return True

    assert run_virtual(main)


async def _enter_and_leave(gate: WriteGate) -> None:
    async with gate.slot(1):
        await asyncio.sleep(0)
