"""The API server's protocol for one collection: HTTP in front of the service."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from random import Random
from typing import Final

from aiohttp import web

from cubesched.api import REQUESTS
from cubesched.core.errors import UsageError
from cubesched.relay.asking import Asked, ListAsked, ProbeAsked, WatchAsked, asked_of
from cubesched.relay.door import Caller, Door, check
from cubesched.relay.fanout import Fanout
from cubesched.relay.objects import event_line
from cubesched.relay.refusals import Refusal
from cubesched.relay.service import Service
from cubesched.relay.watches import Watch

log = logging.getLogger(__name__)

BOOKMARK_SECONDS: Final = 5.0
WRITE_SECONDS: Final = 30.0
"""An agent that takes nothing for this long is cut off."""
SHUTDOWN_SECONDS: Final = 2.0
JSON: Final = {"Content-Type": "application/json"}


class RelayServer:
    """Listens for agents; `count` hears verb and status of every answer."""

    def __init__(
        self,
        service: Service,
        fanout: Fanout,
        door: Door,
        *,
        rng: Random,
        count: Callable[[str, int], None] = lambda _verb, _code: None,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._service, self._fanout, self._door = service, fanout, door
        self._rng, self._count, self._lost = rng, count, lost
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, *, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        """Listen; UsageError when the address cannot be had."""
        app = web.Application()
        app.router.add_route("*", "/{anything:.*}", self._answer)
        # A watch ends with its connection, also when there is nothing to write.
        runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS
        )
        await runner.setup()
        self._runner = runner
        try:
            await web.TCPSite(runner, host, port, ssl_context=tls, backlog=2048).start()
        except OSError as error:
            await self.stop()
            raise UsageError(
                f"cannot listen on {host}:{port} for agents: {error.strerror or error}"
            ) from error
        self.port = int(runner.addresses[0][1])

    async def stop(self) -> None:
        """End all watches cleanly and stop listening; harmless when not started."""
        self._fanout.end_all()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        verb = "other"
        try:
            caller = self._caller(request)
            asked = _asked(request)
            verb = VERBS[type(asked)]
            check(caller, node=None if isinstance(asked, ProbeAsked) else asked.node)
            return await self._give(request, asked)
        except Refusal as refusal:
            self._count(verb, refusal.code)
            if refusal.code == 410 and verb == "watch":
                return await _expired_watch(request, refusal)
            return _refused(refusal)

    def _caller(self, request: web.Request) -> Caller | None:
        transport = request.transport
        return self._door.recognise(
            transport.get_extra_info("peercert") if transport is not None else None,
            as_user=request.headers.getall("Impersonate-User", []),
            as_groups=request.headers.getall("Impersonate-Group", []),
        )

    async def _give(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        if isinstance(asked, WatchAsked):
            return await self._stream(request, asked)
        if isinstance(asked, ListAsked):
            body = await self._service.list(asked)
        else:
            body = await self._service.probe()
        self._count(VERBS[type(asked)], 200)
        return web.Response(body=body, headers=JSON)

    async def _stream(self, request: web.Request, asked: WatchAsked) -> web.StreamResponse:
        watch = await self._service.watch(asked)
        response = _line_response()
        try:
            self._count("watch", 200)
            await response.prepare(request)
            await self._pump(response, watch, asked.seconds)
            if watch.is_too_slow:
                _cut(request)
        except TimeoutError:
            self._lost()
            _cut(request)
        finally:
            self._fanout.close(watch)
        return response

    async def _pump(self, response: web.StreamResponse, watch: Watch, seconds: int) -> None:
        """Write what the watch says until it is over, its time is up, or the agent is too slow."""
        now = asyncio.get_running_loop().time
        ends_at = now() + seconds
        while not watch.is_over:
            pause = BOOKMARK_SECONDS * self._rng.uniform(0.8, 1.2)
            lines = await watch.take(wait_seconds=max(0.0, min(pause, ends_at - now())))
            if lines:
                async with asyncio.timeout(WRITE_SECONDS):
                    await response.write(lines)
            else:
                self._fanout.remind(watch)
            if now() >= ends_at:
                self._fanout.finish(watch)


VERBS: Final[dict[type[Asked], str]] = {
    ListAsked: "list",
    WatchAsked: "watch",
    ProbeAsked: "probe",
}


def _asked(request: web.Request) -> Asked:
    """Read the request line; raises Refusal for anything but GET of the one collection."""
    if request.path != REQUESTS.path():
        raise Refusal(404, "NotFound", f"the relay serves {REQUESTS.path()} and nothing else")
    if request.method != "GET":
        raise Refusal(405, "MethodNotAllowed", f"{request.method}: the relay only reads")
    return asked_of(request.query)


def _line_response() -> web.StreamResponse:
    response = web.StreamResponse(headers=JSON)
    response.enable_chunked_encoding()
    return response


async def _expired_watch(request: web.Request, refusal: Refusal) -> web.StreamResponse:
    """Say it as the API server does: 200, and one line of type ERROR."""
    response = _line_response()
    await response.prepare(request)
    await response.write(event_line("ERROR", refusal.body))
    return response


def _refused(refusal: Refusal) -> web.Response:
    headers = dict(JSON)
    if refusal.retry_after_seconds:
        headers["Retry-After"] = str(refusal.retry_after_seconds)
    return web.Response(status=refusal.code, body=refusal.body, headers=headers)


def _cut(request: web.Request) -> None:
    """Break the connection: a stream that ended in good order would look complete."""
    if request.transport is not None:
        request.transport.abort()
