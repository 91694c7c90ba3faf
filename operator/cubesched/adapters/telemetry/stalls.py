"""What held the event loop: a thread sees that the loop is late and looks at what it is doing.

Everything in a replica shares one loop, so a stall delays confirmations, probes and Leases alike.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Final

from cubesched.adapters.telemetry.meter import Meter

log = logging.getLogger(__name__)

STALLS: Final = "cubesched_loop_stalls_total"
MAX_FRAMES: Final = 8


class StallDetector:
    """Logs, once a stall, the stack of the loop's thread while it is held up."""

    def __init__(
        self,
        meter: Meter,
        *,
        bound_seconds: float = 0.25,
        quiet_seconds: float = 5.0,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Report stalls longer than `bound_seconds`, in the log at most each `quiet_seconds`."""
        self._meter = meter
        self._bound = bound_seconds
        self._quiet = quiet_seconds
        self._report = report or _log_stall
        self._beat = time.monotonic()
        self._loop_thread = 0
        self._stopped = threading.Event()

    async def run(self) -> None:
        """Watch the running loop until cancelled."""
        self._loop_thread = threading.get_ident()
        self._beat = time.monotonic()
        self._stopped.clear()
        watcher = threading.Thread(target=self._watch, name="stall-detector", daemon=True)
        watcher.start()
        try:
            while True:
                await asyncio.sleep(self._bound / 4)
                self._beat = time.monotonic()
        finally:
            self._stopped.set()

    def _watch(self) -> None:
        """Look at the beat from outside the loop."""
        reported_beat = 0.0
        quiet_until = 0.0
        while not self._stopped.wait(self._bound / 4):
            beat, now = self._beat, time.monotonic()
            if now - beat < self._bound or beat == reported_beat:
                continue
            reported_beat = beat
            self._meter.inc(STALLS)
            if now >= quiet_until:
                quiet_until = now + self._quiet
                self._report(_stack_of(self._loop_thread))


def _stack_of(thread: int) -> str:
    """Return the innermost calls of a thread, innermost first, on one line."""
    frame: FrameType | None = sys._current_frames().get(thread)  # noqa: SLF001 - its only door
    calls = traceback.extract_stack(frame)[-MAX_FRAMES:]
    return " < ".join(f"{call.name} ({call.filename}:{call.lineno})" for call in reversed(calls))


def _log_stall(stack: str) -> None:
    log.warning("the event loop is held up by: %s", stack)
