"""An asyncio event loop whose clock jumps: nobody waits, and the same program always takes the
same steps.

Callbacks run in the order in which asyncio promises to run them; whatever shall vary between
schedules (latencies, faults, crashes) is drawn from a seeded generator by the simulated world.
A *process* is everything started by `spawn(name, ...)`, with all its tasks, futures and timers;
it can be stopped in mid-flight and continued, as SIGSTOP and SIGCONT do.
"""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import Context, ContextVar
from typing import Any, TypeVar, cast

from typing_extensions import override

T = TypeVar("T")

WORLD = ""
"""The process that is nobody's: the simulated world itself, never stopped."""

_process: ContextVar[str] = ContextVar("process", default=WORLD)
MAX_STEPS_AT_ONE_INSTANT = 200_000


class DeadlockError(AssertionError):
    """Nothing is ready, no timer is set, and the program has not ended."""


class LivelockError(AssertionError):
    """The program keeps itself busy without letting time pass."""


class _JumpingSelector(selectors.BaseSelector):
    """Stands where the loop waits for sockets; waiting means setting the clock forward."""

    def __init__(self) -> None:
        self.now_seconds = 0.0
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._still = 0

    @override
    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        self._keys[number] = selectors.SelectorKey(fileobj, number, events, data)
        return self._keys[number]

    @override
    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj if isinstance(fileobj, int) else fileobj.fileno())

    @override
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise DeadlockError("nothing is ready and no timer is set")
        if timeout > 0:
            self.now_seconds += timeout
            self._still = 0
        self._still += 1
        if self._still > MAX_STEPS_AT_ONE_INSTANT:
            raise LivelockError(f"time stands still at {self.now_seconds:.3f} s")
        return []

    @override
    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class _ReadyQueue(deque[asyncio.Handle]):
    """What the loop runs next, without the callbacks of stopped processes."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, list[asyncio.Handle]] = {}

    @override
    def append(self, handle: asyncio.Handle, /) -> None:
        waiting = self.held.get(_process_of(handle))
        if waiting is None:
            super().append(handle)
        else:
            waiting.append(handle)


def _process_of(handle: asyncio.Handle) -> str:
    context = cast("Context", handle._context)  # type: ignore[attr-defined]
    return context.get(_process, WORLD)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with its own clock, starting at 0 s, and processes that can be stopped."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        self._ready = _ReadyQueue()
        self._tasks_of: dict[str, dict[asyncio.Task[Any], None]] = {}
        self.set_task_factory(_recording_task_factory)

    @override
    def time(self) -> float:
        return self._jumping.now_seconds

    def stop_process(self, name: str) -> None:
        """Hold back everything this process would do, its timers too."""
        held = self._ready.held.setdefault(name, [])
        running = [handle for handle in self._ready if _process_of(handle) == name]
        for handle in running:
            self._ready.remove(handle)
        held.extend(running)

    def continue_process(self, name: str) -> None:
        """Let a stopped process go on: what was held back runs now, in its order."""
        for handle in self._ready.held.pop(name, []):
            self._ready.append(handle)

    def kill_process(self, name: str) -> None:
        """Cancel every task of a process, stopped or not."""
        self.continue_process(name)
        for task in list(self._tasks_of.get(name, ())):
            task.cancel()

    def _record(self, task: asyncio.Task[Any], process: str) -> None:
        tasks = self._tasks_of.setdefault(process, {})
        tasks[task] = None
        task.add_done_callback(tasks.pop)


def _recording_task_factory(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, T] | Generator[Any, None, T],
    *,
    context: Context | None = None,
) -> asyncio.Task[T]:
    task = asyncio.Task(cast("Coroutine[Any, Any, T]", work), loop=loop, context=context)
    process = _process.get() if context is None else context.get(_process, WORLD)
    cast("VirtualLoop", loop)._record(task, process)
    return task


def running_loop() -> VirtualLoop:
    """Return the virtual loop the caller runs on."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def spawn(name: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start `work` as a part of the process `name`; tasks it starts belong there too."""
    context = Context()
    context.run(_process.set, name)
    return asyncio.get_running_loop().create_task(work, context=context)


def run_virtual(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `main()` to its end on a loop of its own and close that loop."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(_as_world(main))
    finally:
        _cancel_rest(loop)
        loop.close()


async def _as_world(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return await spawn(WORLD, main())


def _cancel_rest(loop: VirtualLoop) -> None:
    for name in list(loop._ready.held):
        loop.continue_process(name)
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    if rest:
        loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
