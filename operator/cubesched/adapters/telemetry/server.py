"""One small HTTP server for Prometheus and the kubelet: /metrics, /livez, /readyz.

It shares the event loop with the work, so a stopped loop fails the probe by itself; what else
may have stopped is told by the checks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from cubesched.adapters.telemetry.escaping import printable
from cubesched.adapters.telemetry.meter import CONTENT_TYPE, Meter
from cubesched.core.errors import UsageError

log = logging.getLogger(__name__)

REASON_BYTES: Final = 1024
SHUTDOWN_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must be true; `why_red` returns None while it is, else the reason."""

    name: str
    why_red: Callable[[], str | None]


class TelemetryServer:
    """Serves metrics and probes on one port; port 0 takes a free one, see `port`."""

    def __init__(
        self,
        meter: Meter,
        *,
        port: int,
        host: str = "0.0.0.0",  # noqa: S104 - the kubelet and Prometheus come from outside the pod
        live: Sequence[Check] = (),
        ready: Sequence[Check] = (),
    ) -> None:
        self._meter = meter
        self._host = host
        self.port = port
        self._live = list(live)
        self._ready = list(ready)
        self._runner: web.AppRunner | None = None

    def add_live(self, name: str, why_red: Callable[[], str | None]) -> None:
        """Add a check to /livez: red asks the kubelet for a restart."""
        self._live.append(Check(name, why_red))

    def add_ready(self, name: str, why_red: Callable[[], str | None]) -> None:
        """Add a check to /readyz: red tells people, and rollouts, to wait."""
        self._ready.append(Check(name, why_red))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; UsageError when the port is taken."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/metrics", self._metrics),
                web.get("/livez", self._livez),
                web.get("/readyz", self._readyz),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        self._runner = runner
        try:
            await web.TCPSite(runner, self._host, self.port).start()
        except OSError as error:
            await self.stop()
            raise UsageError(
                f"cannot listen on {self._host}:{self.port} for metrics and probes: "
                f"{error.strerror or error}"
            ) from error
        self.port = int(runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening and close what is open; harmless when not started."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._meter.exposition(), headers={"Content-Type": CONTENT_TYPE})

    async def _livez(self, _request: web.Request) -> web.Response:
        return _answer(self._live)

    async def _readyz(self, _request: web.Request) -> web.Response:
        return _answer(self._ready)


def _answer(checks: Sequence[Check]) -> web.Response:
    """Run all checks and say of each how it is; 503 when any is red."""
    reasons = [(check.name, check.why_red()) for check in checks]
    lines = [
        f"[+] {name} ok" if reason is None else f"[-] {name}: {_shown(reason)}"
        for name, reason in reasons
    ]
    is_red = any(reason is not None for _, reason in reasons)
    lines.append("failed" if is_red else "ok")
    return web.Response(status=503 if is_red else 200, text="\n".join(lines) + "\n")


def _shown(reason: str) -> str:
    return printable(reason, max_bytes=REASON_BYTES)
