"""Probes tell the truth in words; the server starts and stops cleanly."""

from __future__ import annotations

import aiohttp
import pytest

from cubesched.adapters.telemetry.meter import Meter
from cubesched.adapters.telemetry.server import TelemetryServer
from cubesched.core.errors import UsageError


async def get(server: TelemetryServer, path: str) -> tuple[int, str, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{server.port}{path}") as answer,
    ):
        return answer.status, await answer.text(), answer.headers["Content-Type"]


async def test_metrics_are_served_in_prometheus_form() -> None:
    async with TelemetryServer(Meter(), port=0, host="127.0.0.1") as server:
        status, text, kind = await get(server, "/metrics")

    assert status == 200
    assert kind.startswith("text/plain; version=0.0.4")
    assert "cubesched_build_info{" in text


async def test_a_probe_is_green_while_every_check_is() -> None:
    async with TelemetryServer(Meter(), port=0, host="127.0.0.1") as server:
        server.add_ready("policy", lambda: None)

        assert (await get(server, "/readyz"))[:2] == (200, "[+] policy ok\nok\n")
        assert (await get(server, "/livez"))[:2] == (200, "ok\n")


async def test_a_red_check_says_why_and_turns_only_its_own_probe_red() -> None:
    reason: list[str | None] = ["no list of\nSandboxNodes for 91 s\x1b[2J"]
    async with TelemetryServer(Meter(), port=0, host="127.0.0.1") as server:
        server.add_live("watch sandboxnodes", lambda: reason[0])
        server.add_live("loop", lambda: None)

        status, text, _ = await get(server, "/livez")
        assert status == 503
        assert text == (
            "[-] watch sandboxnodes: no list of SandboxNodes for 91 s?[2J\n[+] loop ok\nfailed\n"
        )
        assert (await get(server, "/readyz"))[0] == 200

        reason[0] = None
        assert (await get(server, "/livez"))[0] == 200


async def test_a_port_that_is_taken_is_one_clear_line() -> None:
    async with TelemetryServer(Meter(), port=0, host="127.0.0.1") as server:
        other = TelemetryServer(Meter(), port=server.port, host="127.0.0.1")

        with pytest.raises(UsageError, match=f"127.0.0.1:{server.port}"):
            await other.start()
        await other.stop()


async def test_a_stopped_server_gives_its_port_back() -> None:
    server = TelemetryServer(Meter(), port=0, host="127.0.0.1")
    await server.start()
    await server.stop()
    await server.stop()

    async with TelemetryServer(Meter(), port=server.port, host="127.0.0.1") as again:
        assert (await get(again, "/livez"))[0] == 200
