"""One client's connection to the in-memory API server: a Transport with latencies and faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.model.faults import Fault
from tests.model.resources import Refusal
from tests.model.virtualtime import WORLD, spawn
from tests.model.watches import Watch

from cubesched.adapters.cluster.transport import Response
from cubesched.core.errors import ApiError, Gone, OutcomeUnknown

if TYPE_CHECKING:
    from tests.model.apiserver import ApiServer

Reply = asyncio.Future[Response]


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request as it reaches the server."""

    identity: str
    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"


class ModelTransport:
    """Implements `Transport`; requests run on the server's side whatever becomes of the client."""

    def __init__(self, server: ApiServer, identity: str) -> None:
        self._server = server
        self._identity = identity
        self._is_severed = False
        self._lands_after_crash = 1.0
        self._under_way: set[asyncio.Task[None]] = set()

    def sever(self, *, lands: float) -> None:
        """The client dies: nothing more is sent; each write under way lands with chance `lands`."""
        self._is_severed = True
        self._lands_after_crash = lands

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_seconds: float = 15.0,
    ) -> Response:
        """Send one request; see `Transport.request`."""
        self._check_alive()
        call = Call(self._identity, method, path, dict(params or {}), body, content_type)
        reply: Reply = asyncio.get_running_loop().create_future()
        carrying = spawn(WORLD, self._carry(call, reply))
        self._under_way.add(carrying)
        carrying.add_done_callback(self._under_way.discard)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await reply
        except TimeoutError as error:
            raise OutcomeUnknown(f"no answer within {timeout_seconds:g} s") from error

    def _check_alive(self) -> None:
        if self._is_severed:
            raise ApiError("the process is gone")

    async def _carry(self, call: Call, reply: Reply) -> None:
        """Take the call to the server and its answer back, whatever the client does meanwhile."""
        try:
            answer = await self._travel(call, reply)
        except ApiError as error:
            _fail(reply, error)
        else:
            if answer is not None and not reply.done():
                reply.set_result(answer)

    async def _travel(self, call: Call, reply: Reply) -> Response | None:
        """Return what the client gets; None when it never gets anything."""
        server = self._server
        fault = server.faults.request(server.rng, call.method)
        server.fired[fault] += fault is not Fault.NONE
        incarnation = server.incarnation
        if fault is Fault.UNREACHABLE or not server.is_up:
            raise ApiError("connection refused")
        await asyncio.sleep(server.faults.latency(server.rng))
        if fault is Fault.LATE:
            _fail(reply, _reset())
            await asyncio.sleep(server.rng.expovariate(1 / server.faults.late_seconds))
        self._check_way(incarnation)
        answer = self._serve(call, fault)
        if fault in {Fault.RESENT, Fault.RESENT_NOTICED}:
            await asyncio.sleep(server.faults.latency(server.rng))
            self._check_way(incarnation)
            answer = server.serve(call)
        if fault is Fault.RESENT_NOTICED and answer.status >= 400:
            raise OutcomeUnknown(f"sent twice and answered {answer.status}")
        await asyncio.sleep(server.faults.latency(server.rng))
        self._check_server(incarnation)
        return None if fault in {Fault.SILENT, Fault.SILENT_AFTER} else answer

    def _check_way(self, incarnation: int) -> None:
        """Drop what a crash of either side takes away before it is served."""
        if self._is_severed and self._server.rng.random() >= self._lands_after_crash:
            self._server.fired["lost_in_crash"] += 1
            raise _reset()
        self._server.fired["landed_after_crash"] += self._is_severed
        self._check_server(incarnation)

    def _check_server(self, incarnation: int) -> None:
        if self._server.incarnation != incarnation:
            self._server.fired["reset_by_restart"] += 1
            raise _reset()

    def _serve(self, call: Call, fault: Fault) -> Response:
        """Let the server answer, or the fault."""
        server = self._server
        if fault is Fault.TOO_MANY:
            return Refusal(
                429, "TooManyRequests", "too many requests", retry_after_seconds=1
            ).response()
        if fault in {Fault.ERROR, Fault.SILENT}:
            return _internal_error()
        if fault is Fault.LOST:
            raise _reset()
        answer = server.serve(call)
        if fault is Fault.LOST_AFTER:
            raise _reset()
        return _internal_error() if fault is Fault.ERROR_AFTER else answer

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Mapping[str, str], idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch; see `Transport.stream`."""
        watch = await self._open(path, params)
        lines = watch.lines(idle_seconds=idle_seconds)
        try:
            yield lines
        finally:
            watch.close()
            await lines.aclose()

    async def _open(self, path: str, params: Mapping[str, str]) -> Watch:
        self._check_alive()
        server = self._server
        fault = server.faults.request(server.rng, "GET")
        await asyncio.sleep(server.faults.latency(server.rng))
        if fault is not Fault.NONE or not server.is_up:
            server.fired["watch_not_opened"] += 1
            raise ApiError("connection refused")
        try:
            return server.open_watch(Call(self._identity, "GET", path, dict(params)))
        except Refusal as refusal:
            if refusal.code == 410:
                raise Gone(str(refusal)) from refusal
            raise ApiError(str(refusal), refusal.code) from refusal


def _fail(reply: Reply, error: ApiError) -> None:
    if not reply.done():
        reply.set_exception(error)


def _reset() -> OutcomeUnknown:
    return OutcomeUnknown("connection reset by peer")


def _internal_error() -> Response:
    return Refusal(500, "InternalError", "etcdserver: request timed out").response()
