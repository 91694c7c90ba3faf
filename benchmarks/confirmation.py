"""Time who confirms: `python benchmarks/confirmation.py [--requests N] [--nodes N] [--rounds N]`.

One real API server; for each mode of confirmation N requests wait before the operator is started,
and what counts is the time from the first to the last that is placed. With the agents `off` (nodes
are registered and heard of, and nobody acts there) placed means Bound, or Reserved where the agent
would confirm; with simulated agents `on` it means Running. Prints one JSON object a line, the modes
of one round next to each other, and at the end one line for each case with the medians, and the
ratio to `operator` within the same round. Writes are status writes that landed, seen in a watch:
the scheduler's (Reserved, Bound, and back to Pending) and everybody's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "operator"), str(ROOT)]

import msgspec  # noqa: E402
import uvloop  # noqa: E402
from benchmarks.procfs import cpu_ms  # noqa: E402

from cubesched.adapters.cluster.connection import AiohttpTransport, connect  # noqa: E402
from cubesched.adapters.cluster.transport import Transport  # noqa: E402
from cubesched.adapters.cluster.wirelines import decode_event, decode_page  # noqa: E402
from cubesched.adapters.cluster.writes import StatusApplier  # noqa: E402
from cubesched.adapters.nodemetrics.writer import MetricsWriter  # noqa: E402
from cubesched.agent.nodeobject import NodeObject  # noqa: E402
from cubesched.agent.stored import Stored  # noqa: E402
from cubesched.api import API_VERSION, CONFIGS, NODES, REQUESTS  # noqa: E402
from cubesched.fleet.metrics_layout import NodeReport, encode  # noqa: E402
from cubesched.local import LocalControlPlane  # noqa: E402
from cubesched.local.demo.processes import Processes  # noqa: E402

REQUESTS_IN_ALL, NODES_IN_ALL, ROUNDS = 1000, 200, 3
CALLS_AT_ONCE = 32
PATIENCE_SECONDS = 180.0
MODES = ("operator", "agent", "none")
PLACED = {"operator": "Bound", "agent": "Reserved", "none": "Bound"}
"""The phase in which the scheduler has done its part."""
OF_THE_SCHEDULER = frozenset({"Reserved", "Bound", "Pending"})
MEASURES = (
    "placed_per_second",
    "scheduler_writes_per_placement",
    "writes_per_placement",
    "apiserver_cpu_ms_per_placement",
    "operator_cpu_ms_per_placement",
)


@dataclass
class Seen:
    """What one watch shows of all requests."""

    phase: str
    """The phase that counts as placed."""
    number: int
    at: dict[str, float] = field(default_factory=dict)
    """When each request was first seen placed, by name."""
    writes: Counter[str] = field(default_factory=Counter)
    """Status writes by the phase that they left."""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self, lines: AsyncIterator[bytes]) -> None:
        """Take every event until all are placed."""
        async for line in lines:
            event = decode_event(line)
            if event.kind != "MODIFIED":
                continue
            found = msgspec.json.decode(event.raw)
            phase = found["status"].get("phase", "Pending")
            self.writes[phase] += 1
            if phase == self.phase:
                self.at.setdefault(found["metadata"]["name"], time.monotonic())
                self.begun.set()
            if len(self.at) == self.number:
                self.done.set()

    def seconds(self) -> float:
        """Return how long it took from the first to the last."""
        return max(self.at.values()) - min(self.at.values())


@dataclass
class Bench:
    """The servers and the sizes."""

    plane: LocalControlPlane
    processes: Processes
    api: Transport
    requests: int
    nodes: int

    @property
    def apiserver_pid(self) -> int:
        """The API server's process."""
        state = json.loads((self.plane.directory / "state.json").read_text())
        return int(state["processes"]["kube-apiserver"])

    async def measure(self, mode: str, agents: str) -> dict[str, Any]:
        """Measure one mode, from an empty cluster."""
        await self._empty()
        await self._configure(mode)
        async with self._heard_of() if agents == "off" else self._acting():
            version = await self._create_requests()
            seen = Seen(PLACED[mode] if agents == "off" else "Running", self.requests)
            return {"mode": mode, "agents": agents, **await self._place(seen, version)}

    async def _place(self, seen: Seen, version: int) -> dict[str, Any]:
        params = {"watch": "1", "resourceVersion": str(version), "timeoutSeconds": "1800"}
        async with self.api.stream(REQUESTS.path(), params=params, idle_seconds=300) as lines:
            reading = asyncio.create_task(seen.read(lines))
            try:
                before, after = await self._costs(seen)
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
        scheduler = sum(seen.writes[phase] for phase in OF_THE_SCHEDULER)
        number = self.requests
        return {
            "placed_per_second": round(number / seen.seconds(), 1),
            "scheduler_writes_per_placement": round(scheduler / number, 3),
            "writes_per_placement": round(sum(seen.writes.values()) / number, 3),
            "apiserver_cpu_ms_per_placement": round((after[0] - before[0]) / number, 2),
            "operator_cpu_ms_per_placement": round((after[1] - before[1]) / number, 2),
        }

    async def _costs(self, seen: Seen) -> tuple[tuple[float, float], tuple[float, float]]:
        """Run the operator until all are placed; return CPU times at the first and the last."""
        with self._operator() as pid:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await seen.begun.wait()
                before = cpu_ms(self.apiserver_pid), cpu_ms(pid)
                await seen.done.wait()
            after = cpu_ms(self.apiserver_pid), cpu_ms(pid)
            await asyncio.sleep(0.5)  # writes that were still under way
        return before, after

    # The cluster

    @contextmanager
    def _operator(self) -> Iterator[int]:
        kubeconfig = self.plane.client_kubeconfig("cubesched:operator:a", ["cubesched:operators"])
        flags = ["--kubeconfig", str(kubeconfig), "--redis-url", self.plane.redis_url]
        flags += ["--http-host", "127.0.0.1", "--http-port", "0", "--replica", "a"]
        yield self.processes.start("replica", "cubesched", ["run", *flags]).pid
        self.processes.stop("replica")

    @asynccontextmanager
    async def _heard_of(self) -> AsyncIterator[None]:
        """Have nodes that are Ready and report each second, with nobody who acts there."""
        names = [f"node-{number:04}" for number in range(self.nodes)]
        applier = StatusApplier(self.api)
        nodes = [NodeObject(name, self.api, applier=applier) for name in names]
        await self._at_once([self._register(node) for node in nodes])
        beating = asyncio.create_task(self._beat({node.node: node.uid for node in nodes}))
        try:
            yield
        finally:
            beating.cancel()

    async def _register(self, node: NodeObject) -> None:
        await node.ensure({"capacity": {"cpu": "64", "memory": "256Gi"}}, {})
        await node.report_ready(Stored())

    async def _beat(self, uids: dict[str, str]) -> None:
        metrics = MetricsWriter(self.plane.redis_url)
        while True:
            stamp_ms = int(time.time() * 1000)
            reports = {
                name: encode(NodeReport(node_uid=uid, stamp_ms=stamp_ms))
                for name, uid in uids.items()
            }
            await metrics.publish(reports)
            await asyncio.sleep(1.0)

    @asynccontextmanager
    async def _acting(self) -> AsyncIterator[None]:
        """Have simulated agents that start everything at once, all behind one watch."""
        flags = ["--kubeconfig", str(self.plane.kubeconfig), "--redis-url", self.plane.redis_url]
        flags += ["--simulate", str(self.nodes), "--shared-watch", "--create-delay", "0ms"]
        self.processes.start("agents", "cubesched", ["agent", *flags])
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._until_nodes_are_ready()
            yield
        finally:
            await asyncio.to_thread(self.processes.stop, "agents")

    async def _until_nodes_are_ready(self) -> None:
        while await self._ready_nodes() < self.nodes:
            self.processes.check()
            await asyncio.sleep(0.5)

    async def _ready_nodes(self) -> int:
        answer = await self.api.request("GET", NODES.path())
        items = json.loads(answer.body)["items"]
        conditions = (c for item in items for c in item.get("status", {}).get("conditions", ()))
        return sum(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    async def _create_requests(self) -> int:
        """Create all and return the version after the last."""
        await self._at_once([self._create(number) for number in range(self.requests)])
        answer = await self.api.request("GET", REQUESTS.path(), params={"limit": "1"})
        return decode_page(answer.body).version

    async def _create(self, number: int) -> None:
        body = {
            "apiVersion": API_VERSION,
            "kind": REQUESTS.kind,
            "metadata": {"name": f"request-{number:05}", "namespace": "default"},
            "spec": {"resources": {"cpu": "1", "memory": "1Gi"}},
        }
        path = REQUESTS.path(namespace="default")
        answer = await self.api.request("POST", path, body=json.dumps(body).encode())
        assert answer.status == 201, answer.body

    async def _configure(self, mode: str) -> None:
        body = {
            "apiVersion": API_VERSION,
            "kind": CONFIGS.kind,
            "metadata": {"name": "default"},
            "spec": {"confirmation": mode},
        }
        data = json.dumps(body).encode()
        answer = await self.api.request("POST", CONFIGS.path(), body=data)
        assert answer.status == 201, answer.body

    async def _empty(self) -> None:
        for path in (REQUESTS.path(namespace="default"), NODES.path(), CONFIGS.path()):
            answer = await self.api.request("DELETE", path, timeout_seconds=120)
            assert answer.status == 200, answer.body

    async def _at_once(self, calls: Sequence[Any]) -> None:
        gate = asyncio.Semaphore(CALLS_AT_ONCE)

        async def one(call: Any) -> None:
            async with gate:
                await call

        await asyncio.gather(*map(one, calls))


def summary(rounds: Sequence[Sequence[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield one line for each case: medians over the rounds, ratios within each round."""
    for lines in zip(*rounds, strict=True):
        case = {"mode": lines[0]["mode"], "agents": lines[0]["agents"]}
        found = {name: round(statistics.median(line[name] for line in lines), 3)
                 for name in MEASURES}  # fmt: skip
        base = [
            next(x for x in one if (x["mode"], x["agents"]) == ("operator", case["agents"]))
            for one in rounds
        ]
        speed = "placed_per_second"
        ratios = [line[speed] / other[speed] for line, other in zip(lines, base, strict=True)]
        found["speed_ratio_to_operator"] = round(statistics.median(ratios), 2)
        yield {**case, "median_of": len(lines), **found}


async def run(plane: LocalControlPlane, processes: Processes, args: argparse.Namespace) -> None:
    """Measure and print everything."""
    measured = []
    async with AiohttpTransport(await connect(str(plane.kubeconfig))) as api:
        bench = Bench(plane, processes, api, args.requests, args.nodes)
        for number in range(args.rounds):
            lines = []
            for agents in ("off", "on"):
                for mode in MODES:
                    lines.append(await bench.measure(mode, agents))
                    print(json.dumps({"round": number, **lines[-1]}), flush=True)
            measured.append(lines)
    for line in summary(measured):
        print(json.dumps(line), flush=True)


def main() -> None:
    """Measure on a control plane of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=REQUESTS_IN_ALL, metavar="N")
    parser.add_argument("--nodes", type=int, default=NODES_IN_ALL, metavar="N")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    args = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="cubesched-bench-"))
    plane = LocalControlPlane("bench-confirmation", directory / "cluster")
    plane.start(manifests=True)
    try:
        with Processes(directory) as processes:
            uvloop.run(run(plane, processes, args))
    finally:
        plane.stop()
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
