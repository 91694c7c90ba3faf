"""The relay as a process: one list-watch, its fan-out, the server for agents, and probes."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
from collections.abc import Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from cubesched.adapters.cluster.connection import AiohttpTransport, Connection, connect
from cubesched.adapters.cluster.listwatch import ListWatch
from cubesched.adapters.cluster.probing import Right, missing_rights, wait_for_api
from cubesched.adapters.telemetry.meter import Meter
from cubesched.adapters.telemetry.server import TelemetryServer
from cubesched.adapters.telemetry.stalls import StallDetector
from cubesched.adapters.telemetry.table import Program
from cubesched.api import GROUP, REQUESTS
from cubesched.core.errors import CubeschedError
from cubesched.relay.door import Door
from cubesched.relay.fanout import Fanout
from cubesched.relay.freshness import Freshness
from cubesched.relay.server import RelayServer
from cubesched.relay.service import Service
from cubesched.relay.tls import Tls, TlsFiles
from cubesched.relay.window import Window

log = logging.getLogger(__name__)

WATCH_SECONDS: Final = (3, 4)
"""The upstream watch is opened anew every 3 s, for the bookmarks that come 1 and 2 s before its
end: an agent's list waits for one where nothing else happens.
"""
IDLE_SECONDS: Final = 10.0
SILENT_SECONDS: Final = 120.0
BEHIND_SECONDS: Final = 30.0
RIGHTS_SECONDS: Final = 2.0
RIGHTS: Final = tuple(Right(verb, REQUESTS.plural, group=GROUP) for verb in ("list", "watch"))


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """Flags of `cubesched relay`."""

    kubeconfig: str | None
    context: str | None
    host: str
    port: int
    tls: TlsFiles | None
    """None: plain HTTP, for whoever reaches the address."""
    impersonators: str
    """A group whose certificates may name another user; empty: nobody may."""
    history_bytes: int
    http_host: str
    http_port: int


class RelayProcess:
    """Wires every part; `run` until told to stop or a part of it dies."""

    def __init__(self, settings: RelaySettings, connection: Connection) -> None:
        """Wire; nothing is sent or listened to yet. UsageError when a TLS file is unusable."""
        self._settings = settings
        self._transport = AiohttpTransport(connection)
        rng = Random()  # noqa: S311 - spreads load, guards nothing
        self._meter = Meter(program=Program.RELAY)
        self._fanout = Fanout(
            Window(most_bytes=settings.history_bytes), count=self._count_line, lost=self._count_slow
        )
        self._watch = ListWatch(
            self._transport,
            REQUESTS.path(),
            self._fanout,
            rng=rng.random,
            idle_seconds=IDLE_SECONDS,
            watch_seconds=WATCH_SECONDS,
            on_restart=self._count_restart,
        )
        freshness = Freshness(self._transport, REQUESTS.path(), self._fanout)
        self._tls = None if settings.tls is None else Tls(settings.tls)
        self._server = RelayServer(
            Service(self._fanout, freshness),
            self._fanout,
            Door(impersonators=settings.impersonators, is_open=settings.tls is None),
            rng=rng,
            count=self._count_answer,
            lost=self._count_slow,
        )
        self._telemetry = TelemetryServer(
            self._meter, host=settings.http_host, port=settings.http_port
        )
        self._stop = asyncio.Event()
        self._fault: BaseException | None = None
        self._waiting_for = "starting"
        self._register_checks()

    def _register_checks(self) -> None:
        self._telemetry.add_live("watch-sandboxrequests", lambda: self._silent(SILENT_SECONDS))
        self._telemetry.add_ready("cluster", lambda: self._waiting_for or None)
        self._telemetry.add_ready("list-sandboxrequests", self._unlisted)
        self._telemetry.add_ready("watch-sandboxrequests", lambda: self._silent(BEHIND_SECONDS))
        self._meter.before_scrape(self._refresh_gauges)

    def _silent(self, bound_seconds: float) -> str | None:
        age = self._watch.age_seconds(asyncio.get_running_loop().time())
        return f"nothing heard for {age:.0f} s" if age > bound_seconds else None

    def _unlisted(self) -> str | None:
        return None if self._fanout.applied is not None else "the list is not complete"

    async def run(self) -> int:
        """Serve until SIGTERM or a fault; return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop.set)
        async with self._transport, self._telemetry:
            log.info("the relay serves probes on port %d", self._telemetry.port)
            working = self._start("relay", self._work())
            stopping = asyncio.create_task(self._stop.wait())
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            await self._server.stop()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        return self._verdict()

    def _verdict(self) -> int:
        """Return the exit code; raises what a person can act on."""
        if isinstance(self._fault, CubeschedError):
            raise self._fault
        if self._fault is not None:
            log.critical("the relay ends", exc_info=self._fault)
        return 1 if self._fault else 0

    async def _work(self) -> None:
        """Listen at once, so that agents are told to wait; follow when the cluster lets us."""
        settings = self._settings
        context = None if self._tls is None else self._tls.context
        await self._server.start(host=settings.host, port=settings.port, tls=context)
        how = "TLS" if self._tls else "plain HTTP, without asking who they are"
        log.info("the relay serves agents on port %d (%s)", self._server.port, how)
        async with asyncio.TaskGroup() as group:
            group.create_task(StallDetector(self._meter).run())
            if self._tls is not None:
                group.create_task(self._tls.follow_files())
            await self._wait_for_the_cluster()
            group.create_task(self._watch.run())

    def _start(self, name: str, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(job, name=name)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """End the process when a part of it dies: half a relay must not look alive."""
        if not task.cancelled() and not self._stop.is_set():
            self._fault = task.exception()
            self._stop.set()

    async def _wait_for_the_cluster(self) -> None:
        await wait_for_api(
            self._transport, [REQUESTS], timeout_seconds=math.inf, on_wait=self._say_waiting
        )
        while missing := await missing_rights(self._transport, RIGHTS):
            self._say_waiting(f"not allowed to {', '.join(missing)}; apply deploy/rbac.yaml")
            await asyncio.sleep(RIGHTS_SECONDS)
        self._waiting_for = ""

    def _say_waiting(self, what: str) -> None:
        if what != self._waiting_for:
            log.warning("waiting: %s", what)
        self._waiting_for = what

    # Counting

    def _count_line(self, kind: str) -> None:
        self._meter.inc("cubesched_relay_events_total", kind=kind)

    def _count_slow(self) -> None:
        self._meter.inc("cubesched_relay_slow_watches_total")

    def _count_answer(self, verb: str, code: int) -> None:
        self._meter.inc("cubesched_relay_answers_total", verb=verb, code=str(code))

    def _count_restart(self, _reason: str) -> None:
        self._meter.inc("cubesched_watch_restarts_total", resource=REQUESTS.plural)

    def _refresh_gauges(self) -> None:
        self._meter.set("cubesched_relay_watches", self._fanout.number_of_watches)
        self._meter.set("cubesched_relay_requests", len(self._fanout))
        self._meter.set("cubesched_relay_history_bytes", self._fanout.window.size_bytes)
        age = self._watch.age_seconds(asyncio.get_running_loop().time())
        self._meter.set("cubesched_watch_age_seconds", age, resource=REQUESTS.plural)


async def run_relay(settings: RelaySettings) -> int:
    """Connect and run; raises CubeschedError when the server cannot be reached at the start."""
    connection = await connect(settings.kubeconfig, settings.context)
    return await RelayProcess(settings, connection).run()
