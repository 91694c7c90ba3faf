"""Where a plugin in Python runs: in its own thread, one call at a time, each for only so long."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from typing_extensions import override

from cubesched.core.errors import PluginError
from cubesched.core.pipeline import Circuit, Health, Host
from cubesched.plugins.breaker import Breaker
from cubesched.plugins.listing import Listing
from cubesched.plugins.python.told import told
from cubesched.plugins.python.worker import Wanted, Worker

T = TypeVar("T")
STUCK = "an earlier call has not returned"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one entry of a Profile allows its plugin."""

    timeout_seconds: float
    failures: int
    """So many in a row open the circuit breaker."""
    cooldown_seconds: float

    @classmethod
    def of(cls, listing: Listing) -> Limits:
        """Return what an entry says."""
        return cls(
            listing.timeout_seconds,
            listing.circuit_breaker_failures,
            listing.circuit_breaker_cooldown_seconds,
        )


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Terms:
    """On which terms entries that are alike ask their plugin; they share a circuit breaker."""

    limits: Limits
    breaker: Breaker

    @property
    def circuit(self) -> Circuit:
        """The state of the circuit breaker."""
        if self.breaker.is_trying:
            return Circuit.TRYING
        return Circuit.OPEN if self.breaker.is_open else Circuit.CLOSED


class PythonHost(Host):
    """One plugin's thread. The time of a call counts from its turn, so a queue fails nobody.

    A call that outlives its time cannot be ended: until it returns, every other one fails at once.
    """

    def __init__(
        self, plugin: str, worker: Worker, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._plugin, self._worker, self._clock = plugin, worker, clock
        self._turn = asyncio.Lock()
        self._terms: WeakValueDictionary[Limits, Terms] = WeakValueDictionary()
        self._lock = threading.Lock()
        self._asked: asyncio.Future[Any] | None = None
        self._is_closed = False

    @override
    def start(self) -> None:
        """Begin nothing: the thread is there from the time that the plugin was imported."""

    @override
    async def close(self) -> None:
        """Take no more calls, and let the one under way fail."""
        self._is_closed = True
        if self._asked is not None:
            self._asked.cancel()

    @override
    def health(self) -> tuple[Health, str]:
        """Return how it is doing, and in words why it is not healthy."""
        if self._worker.is_stuck:
            # Without the time, which would make a new status of every look.
            return Health.CIRCUIT_OPEN, STUCK
        for terms in self._listed():
            if terms.breaker.is_open:
                return Health.CIRCUIT_OPEN, terms.breaker.why
        return Health.HEALTHY, ""

    @override
    def circuit(self, plugin: str) -> Circuit:
        """Return the state of its circuit breakers, the worst of them; open while it is stuck."""
        if self._worker.is_stuck:
            return Circuit.OPEN
        return max((terms.circuit for terms in self._listed()), default=Circuit.CLOSED)

    def terms(self, limits: Limits) -> Terms:
        """Return the terms with these limits, the same as long as anybody holds them."""
        with self._lock:
            found = self._terms.get(limits)
            if found is None:
                breaker = Breaker(limits.failures, limits.cooldown_seconds, clock=self._clock)
                found = self._terms[limits] = Terms(limits, breaker)
            return found

    async def ask(self, work: Callable[[Wanted], T], terms: Terms) -> T:
        """Return what `work` answers in the plugin's thread.

        Raises PluginError when it fails, takes too long, or is not to be asked now.
        """
        async with self._turn:
            await self._until_free(terms.limits.timeout_seconds)
            with terms.breaker.guarding(self._plugin):
                return await self._answer(work, terms.limits.timeout_seconds)

    async def _until_free(self, seconds: float) -> None:
        """Wait for what may still be in time: the making of an instance, or a call given up."""
        running = self._worker.running
        if running is not None and not running.is_overdue:
            done = asyncio.wrap_future(running.done)
            await asyncio.wait((done,), timeout=seconds)
            done.cancel()
        if self._is_closed:
            raise PluginError(self._plugin, "no Profile lists it any more")
        running = self._worker.running
        if running is not None and not running.done.done():
            running.is_overdue = not running.is_wanted
            raise PluginError(self._plugin, self._stuck())

    async def _answer(self, work: Callable[[Wanted], T], seconds: float) -> T:
        job = self._worker.submit(self._telling(work))
        answer = asyncio.wrap_future(job.done)
        self._asked = answer
        try:
            await asyncio.wait((answer,), timeout=seconds)
            if not answer.done():
                job.is_overdue = True
                raise PluginError(self._plugin, f"no answer within {seconds * 1000:g} ms")
            if answer.cancelled():
                raise PluginError(self._plugin, "no Profile lists it any more")
            if isinstance(failure := answer.exception(), PluginError):
                # Raised anew: the thread may hold its own for a while, and with it this frame.
                raise type(failure)(failure.plugin, failure.message)
            return answer.result()
        finally:
            answer.cancel()
            job.give_up()
            self._asked = None

    def _telling(self, work: Callable[[Wanted], T]) -> Callable[[Wanted], T]:
        """Put what goes wrong in words in the plugin's thread: those are its own code as well."""

        def telling(wanted: Wanted) -> T:
            try:
                return work(wanted)
            except PluginError:
                raise
            except BaseException as error:  # anybody's code
                raise PluginError(self._plugin, told(error)) from error

        return telling

    def _listed(self) -> list[Terms]:
        with self._lock:
            return list(self._terms.values())

    def _stuck(self) -> str:
        return f"{STUCK} for {self._worker.running_seconds:.1f} s"
