"""Plugins in another process that are wrong: one real server, told by each request how to fail."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.unit.plugins.failing.cells import Fault

from cubesched.core.pipeline import Health, WaitingFilter, WaitingScore
from cubesched.plugins.kinds import AnyFilter, AnyScore, build_filter, build_score
from cubesched.plugins.listing import Listing, Surroundings

PROGRAM = Path(__file__).with_name("server.py")
HASTE_SECONDS = 0.05


@dataclass(frozen=True)
class WrongServer:
    """A server process, by its socket."""

    socket: Path

    @asynccontextmanager
    async def plugin(self, where: str, fault: Fault) -> AsyncIterator[AnyFilter | AnyScore]:
        """Give a plugin that fails as the request's label `fault` says, connected."""
        build = build_filter if where == "filter" else build_score
        seconds = HASTE_SECONDS if fault is Fault.TIMEOUT else 10.0
        listing = Listing("wrong", "grpc", socket_path=str(self.socket), timeout_seconds=seconds)
        built = build(listing, Surroundings(plugin_directory=str(self.socket.parent)))
        assert isinstance(built, WaitingFilter | WaitingScore)
        built.host.start()
        async with asyncio.timeout(10):
            while built.host.health()[0] is not Health.HEALTHY:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.002)
        yield built
        await built.host.close()


@contextmanager
def wrong_server() -> Iterator[WrongServer]:
    """Run the server; its socket stands where few characters lead to."""
    with tempfile.TemporaryDirectory(prefix="wrong-") as folder:
        socket = Path(folder).resolve() / "wrong.sock"
        command = [sys.executable, str(PROGRAM), str(socket)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
                yield WrongServer(socket)
            finally:
                process.terminate()
