"""A thread of a plugin's own: whatever hangs there holds up nothing else, and there is only one.

A thread cannot be ended from outside, so what outlives its time goes on and is waited for no more;
until it returns nothing else runs there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")
Wanted = Callable[[], bool]
"""Tells whether anybody still waits for the answer: long work may stop when nobody does."""


class Job(Generic[T]):
    """One piece of work: `done` holds its answer, or whatever it raised."""

    def __init__(self, work: Callable[[Wanted], T]) -> None:
        self.done: Future[T] = Future()
        self.is_wanted = True
        self.is_overdue = False
        """It was given up because its time was over, and not for want of a need."""
        self._work = work

    def give_up(self) -> None:
        """Wait no more: work that has not begun never will."""
        self.is_wanted = False
        self.done.cancel()

    def run(self) -> None:
        """Do it, unless it was given up; called in the worker's thread."""
        if not self.done.set_running_or_notify_cancel():
            return
        try:
            answer = self._work(lambda: self.is_wanted)
        except StopIteration as error:  # what awaits a future cannot be told this one
            self.done.set_exception(RuntimeError(f"StopIteration {error}".strip()))
        except BaseException as error:  # anybody's code: SystemExit must not end it either
            self.done.set_exception(error)
        else:
            self.done.set_result(answer)


class Worker:
    """One daemon thread, begun when it is first needed and then kept; work waits for its turn.

    May be used from any thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Job[object]] = SimpleQueue()
        self._is_alive = False
        self._running: Job[object] | None = None
        self._since = 0.0

    @property
    def running(self) -> Job[object] | None:
        """What runs now."""
        return self._running

    @property
    def is_stuck(self) -> bool:
        """Tell whether something runs whose time is over."""
        running = self._running
        return running is not None and running.is_overdue and not running.done.done()

    @property
    def running_seconds(self) -> float:
        """How long it has been at what it does; 0 when it is idle."""
        return time.monotonic() - self._since if self._running is not None else 0.0

    def submit(self, work: Callable[[Wanted], T]) -> Job[T]:
        """Put work at the end of the queue."""
        job = Job(work)
        with self._lock:
            if not self._is_alive:
                self._is_alive = True
                threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        self._jobs.put(job)  # type: ignore[arg-type]  # what it answers concerns its asker only
        return job

    def _serve(self) -> None:
        while True:
            job = self._jobs.get()
            self._since, self._running = time.monotonic(), job
            job.run()
            self._running = None
            del job  # it holds a version of the fleet
