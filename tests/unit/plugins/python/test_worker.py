"""One thread of a plugin's own: in turn, answers and errors alike, and nothing ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import wait

import pytest

from cubesched.plugins.python.worker import Wanted, Worker


def _numbered(
    number: Callable[[int], threading.Thread], i: int
) -> Callable[[Wanted], threading.Thread]:
    return lambda _: number(i)


def test_work_is_done_in_turn_in_one_thread_of_its_own() -> None:
    worker, order = Worker("plugin-zones"), list[int]()

    def number(this: int) -> threading.Thread:
        order.append(this)
        return threading.current_thread()

    jobs = [worker.submit(_numbered(number, i)) for i in range(20)]
    threads = {job.done.result(5) for job in jobs}

    assert order == list(range(20))
    assert [thread.name for thread in threads] == ["plugin-zones"]
    assert threads != {threading.current_thread()}


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), KeyboardInterrupt()])
def test_whatever_is_raised_goes_to_the_asker_and_the_thread_goes_on(error: BaseException) -> None:
    worker = Worker("plugin-zones")

    def fail(_: Wanted) -> None:
        raise error

    job = worker.submit(fail)
    wait((job.done,), timeout=5)

    assert job.done.exception() is error
    assert worker.submit(lambda _: "fine").done.result(5) == "fine"


def test_work_given_up_before_its_turn_is_never_begun() -> None:
    worker, gate, begun = Worker("plugin-zones"), threading.Event(), list[str]()
    first = worker.submit(lambda _: gate.wait(5))
    second = worker.submit(lambda _: begun.append("second"))
    second.give_up()
    gate.set()
    worker.submit(lambda _: None).done.result(5)

    assert first.done.result(5)
    assert begun == []


def test_work_that_runs_over_its_time_is_told_and_holds_the_thread() -> None:
    worker, gate, seen = Worker("plugin-zones"), threading.Event(), list[bool]()
    begun = threading.Event()

    def work(wanted: Wanted) -> None:
        begun.set()
        gate.wait(5)
        seen.append(wanted())

    job = worker.submit(work)
    assert begun.wait(5)
    assert not worker.is_stuck
    job.give_up()
    assert not worker.is_stuck
    job.is_overdue = True
    assert worker.is_stuck
    assert worker.running_seconds >= 0
    gate.set()
    worker.submit(lambda _: None).done.result(5)

    assert seen == [False]
    assert not worker.is_stuck
