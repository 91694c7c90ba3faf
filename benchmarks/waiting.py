"""Memory and waiting on a real API server: `python benchmarks/waiting.py [--nodes N ...]`.

One replica, simulated nodes, RUNNING requests on them; then HOPELESS requests that no node can ever
take, and while they wait, small ones created one by one, each timed from its creation to the first
event that shows it bound. Prints one JSON object a line: `rss_mib` of the replica once everything
runs and once the hopeless ones wait as well, and the times of the placeable ones before and with
the hopeless ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "operator"), str(ROOT)]

from benchmarks.procfs import rss_mib  # noqa: E402

from cubesched.adapters.cluster.connection import AiohttpTransport, connect  # noqa: E402
from cubesched.adapters.cluster.listwatch import ListWatch  # noqa: E402
from cubesched.adapters.cluster.transport import Transport  # noqa: E402
from cubesched.api import API_VERSION, REQUESTS  # noqa: E402
from cubesched.fleet.entries import read_entry  # noqa: E402
from cubesched.local.demo.cluster import (  # noqa: E402
    OPERATORS,
    SIMULATORS,
    Cluster,
    own_cluster,
)
from cubesched.local.demo.processes import Processes  # noqa: E402

TIMED = 60
PAUSE_SECONDS = 0.25
CREATORS = 8
SETTLE_SECONDS = 20.0
PLACED = frozenset({"Bound", "Starting", "Running"})


class Seen:
    """The phase of every request, and when each was first seen placed; a sink."""

    def __init__(self) -> None:
        self.phase: dict[str, str] = {}
        self.placed_at: dict[str, float] = {}
        self._placed = asyncio.Event()

    async def wait_for(self, name: str) -> None:
        """Return once a request is placed."""
        while name not in self.placed_at:
            self._placed.clear()
            await self._placed.wait()

    def reset(self) -> None:
        """Begin a list."""

    def seen(self, raw: bytes) -> None:
        """Take one object of the list."""
        self.event("ADDED", raw, 0)

    def complete(self, version: int) -> None:
        """End the list."""

    def event(self, kind: str, raw: bytes, version: int) -> None:  # noqa: ARG002 - a sink's
        """Note the phase of one request."""
        entry = read_entry(raw)
        self.phase[entry.name] = entry.phase
        if entry.phase in PLACED:
            self.placed_at.setdefault(entry.name, time.monotonic())
            self._placed.set()

    def progress(self, version: int) -> None:
        """Take a bookmark."""


def a_request(name: str, cpu: str) -> dict[str, Any]:
    """Return a request for so much cpu and 64 MiB."""
    return {
        "apiVersion": API_VERSION,
        "kind": REQUESTS.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"resources": {"cpu": cpu, "memory": "64Mi"}},
    }


async def create(transport: Transport, name: str, cpu: str) -> None:
    """Create one request."""
    body = json.dumps(a_request(name, cpu)).encode()
    answer = await transport.request("POST", REQUESTS.path(namespace="default"), body=body)
    if answer.status != 201:
        raise SystemExit(f"cannot create {name}: {answer.status} {answer.body[:300]!r}")


async def create_all(transport: Transport, names: Iterable[str], cpu: str) -> None:
    """Create many, a few at once."""
    left = iter(list(names))

    async def work() -> None:
        for name in left:
            await create(transport, name, cpu)

    await asyncio.gather(*(work() for _ in range(CREATORS)))


async def until(true: Callable[[], bool], what: str, seconds: float = 600.0) -> None:
    """Wait for it, saying on stderr what for."""
    print(f"waiting until {what} ...", file=sys.stderr, flush=True)
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {seconds:g} s: {what}")
        await asyncio.sleep(0.1)


async def timed(transport: Transport, seen: Seen, prefix: str) -> dict[str, float]:
    """Return how long small requests take from their creation until they are seen placed."""
    times = []
    for number in range(TIMED):
        name, began = f"{prefix}-{number}", time.monotonic()
        await create(transport, name, "100m")
        await seen.wait_for(name)
        times.append(1000 * (seen.placed_at[name] - began))
        await asyncio.sleep(PAUSE_SECONDS)
    times.sort()
    return {
        "bound_ms_p50": round(statistics.median(times), 1),
        "bound_ms_p95": round(times[int(0.95 * len(times))], 1),
        "bound_ms_max": round(times[-1], 1),
    }


def tell(case: str, **figures: float) -> None:
    """Print one result."""
    print(json.dumps({"case": case, **figures}), flush=True)


async def measure(cluster: Cluster, pid: int, *, running: int, hopeless: int) -> None:
    """Take every figure on a cluster whose processes are up."""
    connection, seen = await connect(str(cluster.kubeconfig)), Seen()
    async with AiohttpTransport(connection) as transport:
        watch = ListWatch(transport, REQUESTS.path(), seen, rng=Random().random)
        following = asyncio.create_task(watch.run())
        await create_all(transport, (f"run-{n}" for n in range(running)), "100m")
        await until(
            lambda: sum(phase == "Running" for phase in seen.phase.values()) == running,
            f"{running} requests run",
        )
        await asyncio.sleep(SETTLE_SECONDS)
        tell("running", requests=running, rss_mib=round(rss_mib(pid), 1))
        tell("alone", **await timed(transport, seen, "alone"))
        await create_all(transport, (f"hopeless-{n}" for n in range(hopeless)), "900")
        tell("as the hopeless arrive", **await timed(transport, seen, "early"))
        await asyncio.sleep(SETTLE_SECONDS)
        tell("beside the hopeless", hopeless=hopeless, **await timed(transport, seen, "late"))
        tell("all", requests=len(seen.phase), rss_mib=round(rss_mib(pid), 1))
        following.cancel()


def run(*, nodes: int, running: int, hopeless: int) -> None:
    """Start everything, measure, stop everything."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = own_cluster(stack, directory, report=lambda line: print(line, file=sys.stderr))
        processes = stack.enter_context(Processes(directory))
        redis = ["--redis-url", cluster.redis_url]
        access = cluster.access("cubesched:simulator", SIMULATORS)
        many = ["--simulate", str(nodes), "--shared-watch"]
        processes.start("nodes", "cubesched", ["agent", *access, *redis, *many])
        access = cluster.access("cubesched:operator:bench", OPERATORS)
        flags = ["--http-host", "127.0.0.1", "--http-port", "0", "--replica", "bench"]
        replica = processes.start("replica", "cubesched", ["run", *access, *redis, *flags])
        asyncio.run(measure(cluster, replica.pid, running=running, hopeless=hopeless))
        processes.check()


def main() -> None:
    """Read how many of each are wanted."""
    parser = argparse.ArgumentParser(description="Measure memory, and placing beside the hopeless.")
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--running", type=int, default=5_000, help="requests that run")
    parser.add_argument("--hopeless", type=int, default=2_000, help="requests that fit nowhere")
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
