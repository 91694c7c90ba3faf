"""The connection to one plugin server: made in the background, and made again when it is lost."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from weakref import WeakValueDictionary

from typing_extensions import override

from cubesched.core.errors import PluginError
from cubesched.core.pipeline import Circuit, Health, Host
from cubesched.plugins.python.host import Limits
from cubesched.plugins.rpc.encoding import Encoder
from cubesched.plugins.rpc.line import Line
from cubesched.plugins.rpc.offer import HandshakeFailed, Kind
from cubesched.plugins.rpc.session import PARTING_SECONDS, Session
from cubesched.plugins.rpc.sockets import Socket

_LOG = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS: Final = 0.05
LONGEST_PAUSE_SECONDS: Final = 0.5
"""Between attempts to connect: a server that comes back is used within a second."""
STEADY_SECONDS: Final = 5.0
"""A connection that held so long was a good one: the next attempt follows soon."""


class RpcHost(Host):
    """All that is asked over one socket. Made in any thread, then owned by the event loop."""

    def __init__(
        self, socket: Socket, encoder: Encoder, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.encoder = encoder
        self._socket, self._clock = socket, clock
        self._lines: WeakValueDictionary[tuple[Kind, str, Limits], Line] = WeakValueDictionary()
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._why = "not connected yet"
        self._connecting: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._leaving: dict[asyncio.Task[None], Session] = {}

    def line(self, kind: Kind, name: str, limits: Limits) -> Line:
        """Return the line to one plugin, the same as long as anybody holds it."""
        with self._lock:
            line = self._lines.get((kind, name, limits))
            if line is None:
                line = self._lines[kind, name, limits] = Line(self, kind, name, limits, self._clock)
            return line

    @override
    def start(self) -> None:
        """Begin to connect, in the background; called on the event loop, more than once."""
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._stay_connected())

    @override
    async def close(self) -> None:
        """Let go of the connection; calls under way end as failed."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait((self._connecting,))
        self._why = "no Profile lists it any more"
        self._part()
        leaving = dict(self._leaving)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*(session.close() for session in leaving.values()))

    @override
    def health(self) -> tuple[Health, str]:
        """Return how it is doing, and in words why it is not healthy."""
        if self._session is None:
            return Health.UNREACHABLE, self._why
        lines = self._listed()
        for line in lines:
            if missing := self._session.offer.missing(line.kind, line.name):
                return Health.CAPABILITY_MISSING, missing
        for line in lines:
            if line.breaker.is_open:
                return Health.CIRCUIT_OPEN, f"{line.name} is left alone, {line.breaker.why}"
        return Health.HEALTHY, ""

    @override
    def circuit(self, plugin: str) -> Circuit:
        """Return the state of a plugin's circuit breakers, the worst of them."""
        circuits = (line.circuit for line in self._listed() if line.name == plugin)
        return max(circuits, default=Circuit.CLOSED)

    async def session(self, plugin: str, patience_seconds: float) -> Session:
        """Return the connection; raises PluginError when there is none.

        Waits only for the very first attempt to connect, and no longer than `patience_seconds`.
        """
        if self._connecting is not None and not self._tried.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_seconds):
                    await self._tried.wait()
        if self._session is None:
            raise PluginError(plugin, f"unreachable: {self._why}")
        return self._session

    def _listed(self) -> list[Line]:
        with self._lock:
            return list(self._lines.values())

    async def _stay_connected(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            began = self._clock()
            try:
                await self._connect_and_hold()
            except HandshakeFailed as error:
                self._lost(f"{self._socket.path}: {error}")
            except Exception:
                _LOG.exception("connecting to %s failed", self._socket.path)
                self._part()
                self._lost("connecting failed; the operator's log says more")
            if self._clock() - began >= STEADY_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _connect_and_hold(self) -> None:
        """Connect, and return when the connection is lost."""
        if trouble := self._socket.trouble():
            self._lost(trouble)
            return
        session = await Session.open(self._socket, self.encoder.client)
        _LOG.info("plugin server %s answers at %s", session.offer.name, self._socket.path)
        for line in self._listed():
            line.begin_anew()
        self._session, self._why = session, ""
        self._tried.set()
        await session.until_lost()
        self._part()
        self._lost(f"{self._socket.path}: the connection was lost")

    def _lost(self, why: str) -> None:
        """Note, and say once, why there is no connection."""
        if why != self._why:
            _LOG.warning("plugin server unreachable: %s", why)
        self._why = why
        self._tried.set()

    def _part(self) -> None:
        """Use the connection no more; what is under way may end: a server that stops may answer."""
        session, self._session = self._session, None
        if session is not None:
            task = asyncio.get_running_loop().create_task(session.close(PARTING_SECONDS))
            self._leaving[task] = session
            task.add_done_callback(self._leaving.pop)
