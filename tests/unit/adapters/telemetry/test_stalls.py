"""A stalled loop is seen from outside, with what held it."""

from __future__ import annotations

import asyncio
import contextlib
import time

from cubesched.adapters.telemetry.meter import Meter
from cubesched.adapters.telemetry.stalls import StallDetector


def hold_the_loop() -> None:
    time.sleep(0.05)


async def test_what_held_the_loop_is_named() -> None:
    reports: list[str] = []
    meter = Meter()
    detector = StallDetector(meter, bound_seconds=0.02, quiet_seconds=0.0, report=reports.append)
    task = asyncio.create_task(detector.run())

    # On a busy machine the watching thread may sleep through a stall.
    for _ in range(20):
        await asyncio.sleep(0.01)
        hold_the_loop()
        if any("hold_the_loop" in report for report in reports):
            break

    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert any("hold_the_loop" in report for report in reports)
    assert b"cubesched_loop_stalls_total 0.0" not in meter.exposition()
