"""The reader hands over whole passes only, and says what keeps it from any."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from tests.unit.fleet.objects import hashes, reports
from typing_extensions import override

from cubesched.adapters.nodemetrics.reader import MetricsReader, Source
from cubesched.adapters.telemetry.meter import Meter
from cubesched.core.errors import StoreUnavailable
from cubesched.fleet.metrics_layout import Decoded


class Scripted(Source):
    """Reads what it is told to, in the thread it is called in."""

    def __init__(self, answer: Callable[[], Decoded]) -> None:
        self.answer = answer
        self.asked: list[Sequence[str]] = []
        self.threads: set[int] = set()
        self.closed = threading.Event()

    @override
    def read(self, names: Sequence[str]) -> Decoded:
        self.asked.append(names)
        self.threads.add(threading.get_ident())
        return self.answer()

    @override
    def close(self) -> None:
        self.closed.set()


def no_store() -> Decoded:
    raise StoreUnavailable("Redis: gone")


async def one_pass(*sources: Source, deadline_seconds: float = 5.0) -> tuple[list[list[str]], str]:
    """Run until the first pass has ended; return what was handed over, and why nothing was."""
    passes: list[list[str]] = []
    meter = Meter()
    reader = MetricsReader(
        sources,
        lambda *readings: passes.append([name for r in readings for name in r.names]),
        meter,
        names=lambda: ["n1", "n2"],
        deadline_seconds=deadline_seconds,
    )
    task = asyncio.create_task(reader.run())
    while reader.why_down == "not read yet":  # noqa: ASYNC110 - a thread sets it
        await asyncio.sleep(0.001)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return passes, reader.why_down or meter.exposition().decode()


async def test_all_sources_are_read_off_the_loop_with_the_names_of_the_fleet() -> None:
    ours = Scripted(lambda: reports(1000, "n1"))
    theirs = Scripted(lambda: hashes({"n2": {"update_at": "1"}}))

    passes, told = await one_pass(ours, theirs)

    assert passes == [["n1", "n2"]]
    assert "cubesched_redis_up 1.0" in told
    assert ours.asked == theirs.asked == [["n1", "n2"]]
    assert threading.get_ident() not in ours.threads | theirs.threads
    assert ours.closed.is_set()


async def test_one_source_that_fails_means_no_pass_at_all() -> None:
    passes, why = await one_pass(Scripted(lambda: reports(1000, "n1")), Scripted(no_store))

    assert (passes, why) == ([], "Redis: gone")


async def test_problems_of_all_sources_are_counted_together() -> None:
    bad = {"update_at": "never"}
    first, second = Scripted(lambda: hashes({"a": bad})), Scripted(lambda: hashes({"b": bad}))

    _, told = await one_pass(first, second)

    assert 'cubesched_node_reports_unusable{problem="stamp"} 2.0' in told


async def test_a_server_that_never_answers_is_hung_up_on() -> None:
    stuck = Scripted(no_store)

    def wait_for_the_hangup() -> Decoded:
        stuck.closed.wait(5.0)
        raise StoreUnavailable("Redis: hung up")

    stuck.answer = wait_for_the_hangup

    _, why = await one_pass(stuck, deadline_seconds=0.02)

    assert why == "Redis did not answer within 0.02 s"
    assert stuck.closed.is_set()
