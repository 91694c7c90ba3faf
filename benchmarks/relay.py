"""Time what watching agents cost the API server: `python benchmarks/relay.py [--agents N ...]`.

A real API server; requests bound to nodes, whose status is written at a steady rate while N raw
watches are open, one a node: each at the API server itself with a field selector (`direct`), or all
at one relay with TLS (`relay`). Prints one JSON object a line, the modes of one size next to each
other, and at the end one line a size and mode with the medians, and the ratio to a write that
nobody watches. A write's CPU is what the API server used meanwhile, less what it uses when idle;
delays are from sending a write to its line's arrival at the agent; opening is the list and watch of
all agents, 100 at once.
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
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "operator"), str(ROOT)]

import uvloop  # noqa: E402
from benchmarks.procfs import cpu_ms, rss_mib  # noqa: E402

from cubesched.adapters.cluster.connection import (  # noqa: E402
    AiohttpTransport,
    connect,
    find_relay,
)
from cubesched.adapters.cluster.transport import Transport  # noqa: E402
from cubesched.adapters.cluster.wirelines import decode_event, decode_page  # noqa: E402
from cubesched.agent.simulation import NODE_GROUPS, node_user  # noqa: E402
from cubesched.api import API_VERSION, REQUESTS  # noqa: E402
from cubesched.core.errors import ApiError  # noqa: E402
from cubesched.local import LocalControlPlane  # noqa: E402
from cubesched.local.demo.processes import Processes  # noqa: E402
from cubesched.local.waiting import free_port  # noqa: E402

SIZES = (100, 250, 500, 1000)
REQUESTS_IN_ALL = 1000
WRITES = 500
WRITES_PER_SECOND = 100.0
ROUNDS = 5
MOST_WRITES_IN_FLIGHT = 16
OPENING_AT_ONCE = 100
IDLE_SECONDS = 2.0
MEASURES = (
    "apiserver_cpu_ms_per_write",
    "relay_cpu_ms_per_second",
    "apiserver_idle_cpu_ms_per_second",
    "relay_idle_cpu_ms_per_second",
    "relay_rss_mib",
    "delay_ms_p50",
    "delay_ms_p99",
    "opening_seconds",
)


def node_name(number: int) -> str:
    """Return one of the nodes' names."""
    return f"node-{number:04}"


@dataclass
class Requests:
    """Requests whose status is written in turn; each names the node of its own number."""

    api: Transport
    stored: list[dict[str, Any]] = field(default_factory=list)
    locks: list[asyncio.Lock] = field(default_factory=list)
    """One write of a request at a time: each needs the version that the last one made."""
    turn: int = 0

    async def create(self, number: int) -> None:
        """Create one and bind it."""
        body = {
            "apiVersion": API_VERSION,
            "kind": REQUESTS.kind,
            "metadata": {"name": f"request-{number:04}", "namespace": "default"},
            "spec": {"resources": {"cpu": "1", "memory": "1Gi"}},
        }
        path = REQUESTS.path(namespace="default")
        answer = await self.api.request("POST", path, body=json.dumps(body).encode())
        assert answer.status == 201, answer.body
        found = json.loads(answer.body)
        weight = {"id": f"{number:032}", "replica": "bench", "cpuMillis": 1000}
        found["status"] = {
            "phase": "Running",
            "nodeName": node_name(number),
            "reservation": {**weight, "memoryBytes": 1 << 30},
            "explanation": "score 71.25 (real_time_weighted_average 71.25); 990 nodes feasible",
        }
        self.stored.append(found)
        self.locks.append(asyncio.Lock())
        await self.write(number)

    async def write(self, number: int) -> int:
        """Write a status that differs; return the version that it became."""
        found = self.stored[number]
        found["status"]["attempts"] = found["status"].get("attempts", 0) + 1
        path = REQUESTS.path(found["metadata"]["name"], namespace="default", subresource="status")
        answer = await self.api.request("PUT", path, body=json.dumps(found).encode())
        assert answer.status == 200, answer.body
        version = json.loads(answer.body)["metadata"]["resourceVersion"]
        found["metadata"]["resourceVersion"] = version
        return int(version)


@dataclass
class Delays:
    """When each version was sent and when its line arrived."""

    sent: dict[int, float] = field(default_factory=dict)
    arrived: dict[int, float] = field(default_factory=dict)

    def in_ms(self) -> list[float]:
        """Return the delays of all that arrived."""
        return sorted(
            1000.0 * (self.arrived[version] - at)
            for version, at in self.sent.items()
            if version in self.arrived
        )


@asynccontextmanager
async def watched(sides: Sequence[tuple[str, Transport]], delays: Delays) -> AsyncIterator[None]:
    """Have one watch open for each node until the end."""
    gate = asyncio.Semaphore(OPENING_AT_ONCE)
    async with AsyncExitStack() as stack:
        opening = (_open(node, side, gate, stack) for node, side in sides)
        streams = await asyncio.gather(*opening)
        reading = [asyncio.create_task(_read(lines, delays)) for lines in streams]
        try:
            yield
            ended = [task for task in reading if task.done()]
            assert not ended, f"{len(ended)} watches ended: {ended[0]}"
        finally:
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)


async def _open(
    node: str, side: Transport, gate: asyncio.Semaphore, stack: AsyncExitStack
) -> AsyncIterator[bytes]:
    """List and watch one node, as often as it takes: a thousand handshakes starve each other."""
    path, selector = REQUESTS.path(), {"fieldSelector": f"status.nodeName={node}"}
    async with gate:
        while True:
            try:
                answer = await side.request("GET", path, params=selector, timeout_seconds=60)
                version = str(decode_page(answer.body).version)
                params = {**selector, "watch": "1", "resourceVersion": version}
                params |= {"allowWatchBookmarks": "true", "timeoutSeconds": "1800"}
                stream = side.stream(path, params=params, idle_seconds=120)
                return await stack.enter_async_context(stream)
            except ApiError as error:
                print(f"{node}: {error}", file=sys.stderr)
                await asyncio.sleep(1.0)


async def _read(lines: AsyncIterator[bytes], delays: Delays) -> None:
    async for line in lines:
        event = decode_event(line)
        if event.kind != "BOOKMARK":
            delays.arrived[event.version] = time.monotonic()


async def write_steadily(requests: Requests, delays: Delays, *, nodes: int) -> None:
    """Write WRITES statuses at the rate, each of a node that is watched where any is."""
    began, under_way = time.monotonic(), []
    gate = asyncio.Semaphore(MOST_WRITES_IN_FLIGHT)

    async def one(number: int) -> None:
        async with gate, requests.locks[number]:
            sent = time.monotonic()
            delays.sent[await requests.write(number)] = sent

    for count in range(WRITES):
        await asyncio.sleep(max(0.0, began + count / WRITES_PER_SECOND - time.monotonic()))
        number = requests.turn % (nodes or REQUESTS_IN_ALL)
        requests.turn += 1
        under_way.append(asyncio.create_task(one(number)))
    await asyncio.gather(*under_way)
    await asyncio.sleep(1.0)


@dataclass
class Bench:
    """The servers, and who talks to them."""

    plane: LocalControlPlane
    processes: Processes
    relay_port: int = field(default_factory=free_port)
    probe_port: int = field(default_factory=free_port)
    relay_pid: int = 0

    @property
    def apiserver_pid(self) -> int:
        """The API server's process."""
        state = json.loads((self.plane.directory / "state.json").read_text())
        return int(state["processes"]["kube-apiserver"])

    @contextmanager
    def relay(self) -> Iterator[str]:
        """Have a relay run; yields its URL."""
        certificate = self.plane.relay_certificate
        flags = ["--kubeconfig", str(self.plane.client_kubeconfig("relay", ["cubesched:viewers"]))]
        flags += ["--tls-cert", str(certificate), "--tls-key", str(certificate.with_suffix(".key"))]
        flags += ["--client-ca", str(self.plane.ca_file), "--impersonators", "system:masters"]
        flags += ["--host", "127.0.0.1", "--port", str(self.relay_port)]
        flags += ["--http-host", "127.0.0.1", "--http-port", str(self.probe_port)]
        process = self.processes.start("relay", "cubesched", ["relay", *flags])
        self.relay_pid = process.pid
        try:
            yield f"https://127.0.0.1:{self.relay_port}"
        finally:
            self.relay_pid = 0
            self.processes.stop("relay")

    async def sides(
        self, stack: AsyncExitStack, mode: str, agents: int, url: str
    ) -> list[tuple[str, Transport]]:
        """Return a transport for each node's agent."""
        kubeconfig = str(self.plane.kubeconfig)
        found = await (find_relay(url, kubeconfig) if mode == "relay" else connect(kubeconfig))
        shared = await stack.enter_async_context(AiohttpTransport(found))
        if mode == "relay":
            await _until_it_answers(shared)
        return [
            (node, shared.acting_as(node_user(node), groups=NODE_GROUPS))
            for node in map(node_name, range(agents))
        ]

    async def measure(self, mode: str, agents: int, requests: Requests) -> dict[str, Any]:
        """Measure one mode at one size."""
        with self.relay() if mode == "relay" else _nothing() as url:
            async with AsyncExitStack() as stack:
                sides = await self.sides(stack, mode, agents, url)
                delays, began = Delays(), time.monotonic()
                async with watched(sides, delays):
                    opening = {"opening_seconds": round(time.monotonic() - began, 2)}
                    found = await self._while_written(requests, delays, agents)
                for _, side in sides:
                    assert isinstance(side, AiohttpTransport)
                    await side.close()
        missing = len(delays.sent) - len(delays.in_ms()) if agents else 0
        assert not missing, f"{missing} of {len(delays.sent)} lines never came"
        return {"agents": agents, "mode": mode, **found, **opening}

    async def _while_written(
        self, requests: Requests, delays: Delays, agents: int
    ) -> dict[str, Any]:
        pids = {"apiserver": self.apiserver_pid} | (
            {"relay": self.relay_pid} if self.relay_pid else {}
        )
        await asyncio.sleep(1.0)
        start, at = {name: cpu_ms(pid) for name, pid in pids.items()}, time.monotonic()
        await asyncio.sleep(IDLE_SECONDS)
        middle, middle_at = {name: cpu_ms(pid) for name, pid in pids.items()}, time.monotonic()
        await write_steadily(requests, delays, nodes=agents)
        seconds = time.monotonic() - middle_at
        found: dict[str, Any] = {}
        for name, pid in pids.items():
            idle = (middle[name] - start[name]) / (middle_at - at)
            busy = cpu_ms(pid) - middle[name]
            found[f"{name}_idle_cpu_ms_per_second"] = round(idle, 1)
            found[f"{name}_cpu_ms_per_second"] = round(busy / seconds, 1)
            if name == "apiserver":
                found[f"{name}_cpu_ms_per_write"] = round((busy - idle * seconds) / WRITES, 3)
        if self.relay_pid:
            found["relay_rss_mib"] = round(rss_mib(self.relay_pid), 1)
        in_ms = delays.in_ms()
        if in_ms:
            found["delay_ms_p50"] = round(statistics.median(in_ms), 1)
            found["delay_ms_p99"] = round(in_ms[int(len(in_ms) * 0.99)], 1)
        return found


@contextmanager
def _nothing() -> Iterator[str]:
    yield ""


async def _until_it_answers(relay: Transport) -> None:
    for _ in range(200):
        try:
            await relay.request("GET", REQUESTS.path())
        except ApiError:
            await asyncio.sleep(0.1)
        else:
            return
    raise SystemExit("the relay does not answer")


def summary(rounds: Sequence[Sequence[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield one line for each size and mode: medians over the rounds, ratios within each round."""
    for lines in zip(*rounds, strict=True):
        found = {
            name: round(statistics.median(line[name] for line in lines), 3)
            for name in MEASURES
            if name in lines[0]
        }
        cost = "apiserver_cpu_ms_per_write"
        ratios = [line[cost] / first[0][cost] for line, first in zip(lines, rounds, strict=True)]
        found["apiserver_ratio"] = round(statistics.median(ratios), 2)
        case = {"agents": lines[0]["agents"], "mode": lines[0]["mode"]}
        yield {**case, "median_of": len(lines), **found}


def cases(sizes: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield what one round measures; nobody watching comes first, for the ratios."""
    yield 0, "none"
    for agents in sizes:
        yield from ((agents, "direct"), (agents, "relay"))


async def run(bench: Bench, sizes: Sequence[int], rounds: int) -> None:
    """Measure and print everything."""
    measured = []
    async with AiohttpTransport(await connect(str(bench.plane.kubeconfig))) as api:
        requests = Requests(api)
        for number in range(max(REQUESTS_IN_ALL, *sizes)):
            await requests.create(number)
        for number in range(rounds):
            lines = []
            for agents, mode in cases(sizes):
                lines.append(await bench.measure(mode, agents, requests))
                print(json.dumps({"round": number, **lines[-1]}), flush=True)
            measured.append(lines)
    for line in summary(measured):
        print(json.dumps(line), flush=True)


def main() -> None:
    """Measure on a control plane of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, nargs="+", default=list(SIZES), metavar="N")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="cubesched-bench-"))
    plane = LocalControlPlane("bench-relay", directory / "cluster")
    plane.start(manifests=True)
    try:
        with Processes(directory) as processes:
            uvloop.run(run(Bench(plane, processes), args.agents, args.rounds))
    finally:
        plane.stop()
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
