"""The virtual clock: time jumps, order is asyncio's, processes stop and go on."""

import asyncio
import random
import time

import pytest
from tests.model.virtualtime import DeadlockError, run_virtual, running_loop, spawn


def test_a_day_passes_without_waiting() -> None:
    async def main() -> float:
        await asyncio.sleep(86_400)
        return running_loop().time()

    began = time.monotonic()

    assert run_virtual(main) == pytest.approx(86_400)
    assert time.monotonic() - began < 1


def test_timers_fire_in_the_order_of_their_time() -> None:
    async def main() -> list[float]:
        seen: list[float] = []

        async def note(after: float) -> None:
            await asyncio.sleep(after)
            seen.append(after)

        await asyncio.gather(note(3), note(1), note(2))
        return seen

    assert run_virtual(main) == [1, 2, 3]


def test_a_program_that_waits_for_nothing_is_a_deadlock() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(DeadlockError):
        run_virtual(main)


def test_a_stopped_process_does_nothing_until_it_is_continued() -> None:
    async def main() -> tuple[list[float], list[float]]:
        loop = running_loop()
        ticks: list[float] = []

        async def tick() -> None:
            while True:
                await asyncio.sleep(1)
                ticks.append(loop.time())

        task = spawn("p", tick())
        await asyncio.sleep(2.5)
        loop.stop_process("p")
        await asyncio.sleep(10)
        before = list(ticks)
        loop.continue_process("p")
        await asyncio.sleep(1.2)
        task.cancel()
        return before, ticks

    before, after = run_virtual(main)

    assert before == [1, 2]
    assert after == [1, 2, 12.5, 13.5]


def test_a_stopped_process_keeps_what_others_sent_it() -> None:
    async def main() -> list[int]:
        loop = running_loop()
        box: asyncio.Queue[int] = asyncio.Queue()
        got: list[int] = []

        async def receive() -> None:
            while True:
                got.append(await box.get())

        task = spawn("p", receive())
        await asyncio.sleep(1)
        loop.stop_process("p")
        for number in (1, 2, 3):
            box.put_nowait(number)
        await asyncio.sleep(1)
        assert got == []
        loop.continue_process("p")
        await asyncio.sleep(1)
        task.cancel()
        return got

    assert run_virtual(main) == [1, 2, 3]


def test_a_killed_process_ends_with_all_its_tasks() -> None:
    async def main() -> list[str]:
        ended: list[str] = []

        async def child() -> None:
            try:
                await asyncio.sleep(1_000)
            finally:
                ended.append("child")

        async def parent() -> None:
            child_task = asyncio.ensure_future(child())
            try:
                await asyncio.sleep(1_000)
            finally:
                ended.append("parent")
                assert not child_task.done()

        task = spawn("p", parent())
        await asyncio.sleep(1)
        running_loop().stop_process("p")
        running_loop().kill_process("p")
        await asyncio.sleep(1)
        assert task.cancelled()
        return ended

    assert sorted(run_virtual(main)) == ["child", "parent"]


def test_the_same_seed_gives_the_same_steps() -> None:
    def steps(seed: int) -> list[tuple[float, int]]:
        async def main() -> list[tuple[float, int]]:
            rng = random.Random(seed)
            log: list[tuple[float, int]] = []

            async def walk(number: int) -> None:
                for _ in range(20):
                    await asyncio.sleep(rng.expovariate(1))
                    log.append((running_loop().time(), number))

            await asyncio.gather(*(walk(number) for number in range(5)))
            return log

        return run_virtual(main)

    assert steps(7) == steps(7)
    assert steps(7) != steps(8)
