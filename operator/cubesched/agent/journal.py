"""The append-only log of starts and stops, from which others prove that no sandbox ran twice.

A start stands in the log before it takes effect and a stop after it did, and so do a resume and a
pause, so the log shows at least what ran.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from cubesched.agent.runtime import (
    Ended,
    Limits,
    MachineUsage,
    Order,
    Runtime,
    StartFailed,
)
from cubesched.fleet.entries import NOTHING, Weight
from cubesched.fleet.sandboxes import parts_of


class Journal:
    """A file that lines are only ever added to; several processes may share it."""

    def __init__(self, path: Path, *, epoch_seconds: Callable[[], float] = time.time) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._now = epoch_seconds

    def __enter__(self) -> Self:
        """Use as a context manager that closes the file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        os.close(self._file)

    def write(self, event: str, node: str, **facts: Any) -> None:
        """Add one line; it is in the file when this returns."""
        line = {"time": round(self._now(), 6), "event": event, "node": node, **facts}
        # One write of one line: lines of processes that share the file never mix.
        os.write(self._file, msgspec.json.encode(line) + b"\n")


class JournaledRuntime:
    """A runtime whose starts, pauses, resumes and stops are logged; the rest is passed on."""

    def __init__(self, node: str, runtime: Runtime, journal: Journal) -> None:
        self._node = node
        self._runtime = runtime
        self._journal = journal
        self._started: set[str] = set()

    def boot(self) -> None:
        """Log that the machine starts empty: what ran before is gone."""
        self._journal.write("boot", self._node)

    async def create(self, order: Order) -> str:
        """Log the start, then start."""
        if order.sandbox not in self._started:
            self._started.add(order.sandbox)
            self._log("start", order.sandbox, order.weight)
        try:
            return await self._runtime.create(order)
        except StartFailed:
            await self.destroy(order.sandbox)
            raise

    async def destroy(self, sandbox: str) -> None:
        """Stop, then log the stop, also of what an earlier run of the agent started."""
        was_there = sandbox in self._started or sandbox in await self._runtime.running()
        await self._runtime.destroy(sandbox)
        self._started.discard(sandbox)
        if was_there:
            self._log("stop", sandbox, NOTHING)

    async def pause(self, sandbox: str, keeping: Weight) -> None:
        """Pause, then log that the rest is free."""
        await self._runtime.pause(sandbox, keeping)
        self._log("pause", sandbox, keeping)

    async def resume(self, sandbox: str) -> None:
        """Log that it takes all its room again, then resume."""
        self._started.add(sandbox)
        self._log("resume", sandbox, NOTHING)
        try:
            await self._runtime.resume(sandbox)
        except StartFailed:
            await self.destroy(sandbox)
            raise

    def _log(self, event: str, sandbox: str, weight: Weight) -> None:
        uid, reservation_id = parts_of(sandbox)
        self._journal.write(
            event,
            self._node,
            sandbox=sandbox,
            requestUID=uid,
            reservationID=reservation_id,
            cpuMillis=weight.cpu_millis,
            memoryBytes=weight.memory_bytes,
        )

    def limits(self) -> Limits:
        """Pass on."""
        return self._runtime.limits()

    def templates(self) -> tuple[str, ...]:
        """Pass on."""
        return self._runtime.templates()

    def images(self) -> Mapping[str, int]:
        """Pass on."""
        return self._runtime.images()

    def usage(self) -> MachineUsage:
        """Pass on."""
        return self._runtime.usage()

    def refusal(self, order: Order) -> str:
        """Pass on."""
        return self._runtime.refusal(order)

    async def running(self) -> Mapping[str, Weight]:
        """Pass on."""
        return await self._runtime.running()

    async def wait(self, sandbox: str) -> Ended:
        """Pass on."""
        return await self._runtime.wait(sandbox)
