"""Time a filter in another process: `python benchmarks/plugins_grpc.py`, one JSON object a line.

The example server judges every node over its Unix socket; p50_ms is the whole round trip as the
pipeline waits for it. cached: the version is encoded already; counted: it is a new one, in which
something was counted; changed: nodes themselves have changed. held: the server remembers what it
was sent, so only what is new is sent; whole: everything is sent each time. ratio: to one node in
the same run. together_ms: 64 calls at once, for one of them.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "operator"), str(ROOT)]

import numpy as np  # noqa: E402
from tests.unit.builders import NodeFacts, a_node, a_request, a_snapshot  # noqa: E402

from cubesched.core.pipeline import Health  # noqa: E402
from cubesched.core.snapshot import Snapshot  # noqa: E402
from cubesched.plugins.listing import Listing, Surroundings  # noqa: E402
from cubesched.plugins.rpc import plugin_pb2 as pb  # noqa: E402
from cubesched.plugins.rpc.plugins import RpcFilter, build_filter  # noqa: E402

SERVER = ROOT / "deploy" / "examples" / "scheduler-plugin" / "server.py"
SIZES = {5_000: 300, 50_000: 20}
"""Number of nodes, and of calls timed."""
TARGETS_MS = {"cached": 3.0, "counted": 8.0, "changed": 8.0}
"""At 5,000 nodes."""
TOGETHER = 64
REQUEST = a_request(template_id="t-1")


def node(number: int) -> NodeFacts:
    """Return a node with eight labels, one of them its own."""
    shared = {f"example.com/label-{key}": f"value-{number % (key + 2)}" for key in range(6)}
    zone = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
    return a_node(
        f"node-{number:05}",
        address=f"10.0.{number >> 8}.{number & 255}",
        labels={**shared, **zone, "kubernetes.io/hostname": f"node-{number:05}"},
        templates=(f"t-{number % 20}",),
    )


def same(fleet: Snapshot) -> Snapshot:
    """Return the version that was asked about before."""
    return fleet


def counted(fleet: Snapshot) -> Snapshot:
    """Return the next version: a sandbox more."""
    later = copy(fleet)
    later.version, later.sandboxes = fleet.version + 1, fleet.sandboxes.copy()
    return later


def changed(fleet: Snapshot) -> Snapshot:
    """Return the next version: a node has changed."""
    later = counted(fleet)
    later.facts_version = fleet.facts_version + 1
    return later


STEPS: dict[str, Callable[[Snapshot], Snapshot]] = {
    "cached": same,
    "counted": counted,
    "changed": changed,
}


@asynccontextmanager
async def connected() -> AsyncIterator[RpcFilter]:
    """Start the server, and give its filter."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/example.sock"
        command = [sys.executable, str(SERVER), path, f"{folder}/maintenance"]
        process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL)
        around = Surroundings(plugin_directory=folder)
        listing = Listing("not_in_maintenance", "grpc", socket_path=path, timeout_seconds=10.0)
        plugin = build_filter(listing, around)
        plugin.host.start()
        while plugin.host.health()[0] is not Health.HEALTHY:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        try:
            yield plugin
        finally:
            await around.hosts.close()
            process.terminate()
            await process.wait()


def remembering(plugin: RpcFilter, *, held: bool) -> None:
    """Let the server's promise to remember what it was sent count, or not."""
    session = plugin.host._session  # noqa: SLF001 - nothing but a benchmark asks for the worse way
    assert session is not None
    capabilities = {pb.CAPABILITY_FILTER, pb.CAPABILITY_SCORE}
    if held:
        capabilities.add(pb.CAPABILITY_SNAPSHOT_REFERENCES)
    session.offer = replace(session.offer, capabilities=frozenset(capabilities))


async def times_ms(
    plugin: RpcFilter, fleet: Snapshot, step: Callable[[Snapshot], Snapshot], calls: int
) -> list[float]:
    """Return how long each call took, in order of size."""
    rows, times = np.arange(len(fleet)), []
    await plugin.keep(fleet, REQUEST, rows)
    for _ in range(calls):
        fleet = step(fleet)
        began = time.perf_counter()
        await plugin.keep(fleet, REQUEST, rows)
        times.append(1000 * (time.perf_counter() - began))
    return sorted(times)


async def together_ms(plugin: RpcFilter, fleet: Snapshot) -> float:
    """Return the time of one call among many that are made at once."""
    rows = np.arange(len(fleet))
    began = time.perf_counter()
    await asyncio.gather(*(plugin.keep(fleet, REQUEST, rows) for _ in range(TOGETHER)))
    return 1000 * (time.perf_counter() - began) / TOGETHER


async def main() -> None:
    """Print a line for each size, way of sending and kind of change."""
    async with connected() as plugin:
        nothing = a_snapshot([node(0)])
        for size, calls in SIZES.items():
            fleet = a_snapshot([node(number) for number in range(size)])
            for sent in ("held", "whole"):
                remembering(plugin, held=sent == "held")
                for name, step in STEPS.items():
                    empty = statistics.median(await times_ms(plugin, nothing, same, calls))
                    times = await times_ms(plugin, fleet, step, calls)
                    p50 = statistics.median(times)
                    print(json.dumps({
                        "nodes": size,
                        "sent": sent,
                        "version": name,
                        "p50_ms": round(p50, 2),
                        "p99_ms": round(times[int(len(times) * 0.99)], 2),
                        "target_ms": TARGETS_MS[name] if size == 5_000 else None,
                        "ratio": round(p50 / empty, 1),
                        "together_ms": round(await together_ms(plugin, fleet), 2),
                    }), flush=True)  # fmt: skip


if __name__ == "__main__":
    asyncio.run(main())
