"""Plugin servers in processes of their own, and the plugins that ask them."""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.builders import a_node, a_request, a_snapshot

import cubesched
from cubesched.core.errors import PluginError
from cubesched.core.pipeline import Health, Host, NotApplicable
from cubesched.core.snapshot import Snapshot
from cubesched.plugins.listing import Listing, Surroundings
from cubesched.plugins.rpc.plugins import RpcFilter, RpcScore, build_filter, build_score

FLEET = a_snapshot([a_node(f"n{number}") for number in range(1, 5)], version=17)
ONE_LOOP = pytest.mark.asyncio(loop_scope="session")
"""For tests that use gRPC: it delivers what comes late to the loop that asked, closed or not."""
HERE = Path(__file__).parent
PATIENCE_SECONDS = 10.0


def started(script: str, *args: str) -> subprocess.Popen[str]:
    """Start a script, and return when it says that it is ready."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / script), *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(cubesched.__file__).parents[1])},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def ended(process: subprocess.Popen[str]) -> int:
    """Kill a process if it still runs; return its exit code."""
    process.kill()
    process.communicate()
    return process.returncode


@cache
def wrong_servers() -> Path:
    """Return where the sockets of all wrong servers are; they end with this process."""
    directory = tempfile.mkdtemp(prefix="cubesched-wrong-")
    atexit.register(shutil.rmtree, directory)
    atexit.register(ended, started("faulty.py", directory))
    return Path(directory)


@dataclass
class World:
    """Plugins of one operator, and the sockets that it finds."""

    directory: Path
    around: Surroundings = field(init=False)

    def __post_init__(self) -> None:
        self.around = Surroundings(plugin_directory=str(self.directory))

    def filter(self, socket: str, name: str = "it", **limits: Any) -> RpcFilter:
        """Return a filter behind a socket."""
        return build_filter(self.listing(socket, name, **limits), self.around)

    def score(self, socket: str, name: str = "it", **limits: Any) -> RpcScore:
        """Return a score behind a socket."""
        return build_score(self.listing(socket, name, **limits), self.around)

    def listing(self, socket: str, name: str, **limits: Any) -> Listing:
        """Return an entry of a Profile."""
        path = f"{self.directory}/{socket}.sock"
        return Listing(name, "grpc", socket_path=path, **{"timeout_seconds": 5.0, **limits})

    async def asked(self, plugin: RpcFilter | RpcScore, fleet: Snapshot = FLEET) -> Any:
        """Return the answer about all rows but the last as a list, or the error's message."""
        rows = np.arange(len(fleet) - 1)
        plugin.host.start()
        try:
            if isinstance(plugin, RpcFilter):
                return (await plugin.keep(fleet, a_request(), rows)).tolist()
            answer = await plugin.score(fleet, a_request(), rows)
        except PluginError as error:
            return error.message
        return answer if isinstance(answer, NotApplicable) else answer.tolist()


@asynccontextmanager
async def world(directory: Path) -> AsyncIterator[World]:
    """Give a world, and let go of its connections in the end."""
    it = World(directory)
    try:
        yield it
    finally:
        await it.around.hosts.close()


async def until(is_so: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> float:
    """Return the seconds until something is so."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(seconds):
        while not is_so():  # noqa: ASYNC110 - another process makes it so
            await asyncio.sleep(0.005)
    return loop.time() - began


def is_healthy(host: Host) -> bool:
    """Tell whether a plugin may be asked."""
    return host.health()[0] is Health.HEALTHY
