"""Time `cubesched explain` on a real API server: `python benchmarks/explain.py [NODES] [REQUESTS]`.

Starts a control plane and Redis, creates SandboxNodes that are Ready and report, and requests that
run on them, then explains one that fits nowhere and one that fits, each as a process of its own.
Prints one JSON object a line: seconds = the whole process with its imports, cpu = its cpu time
(which another program on the machine does not lengthen), told = what it says of itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "operator"), str(ROOT)]

from cubesched.adapters.cluster.connection import AiohttpTransport, connect  # noqa: E402
from cubesched.adapters.cluster.transport import Transport  # noqa: E402
from cubesched.adapters.nodemetrics.writer import MetricsWriter  # noqa: E402
from cubesched.api import API_VERSION, NODES, REQUESTS  # noqa: E402
from cubesched.fleet.metrics_layout import NodeReport, encode  # noqa: E402
from cubesched.local import LocalControlPlane  # noqa: E402

WRITERS = 16
RUNS = 5
ASKED = {
    "nowhere": ["bench/nowhere"],
    "fits": ["bench/fits"],
    "fits, as json": ["bench/fits", "-o", "json"],
    "nowhere, one node": ["bench/nowhere", "--node", "node-00007"],
}


def a_node(number: int) -> dict[str, Any]:
    """Return one of the nodes, all alike but for their zone."""
    return {
        "apiVersion": API_VERSION,
        "kind": NODES.kind,
        "metadata": {
            "name": f"node-{number:05}",
            "labels": {"topology.kubernetes.io/zone": f"z{number % 3}"},
        },
        "spec": {"capacity": {"cpu": "64", "memory": "256Gi"}},
    }


def a_request(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    """Return a request for so much cpu and 1 GiB."""
    return {
        "apiVersion": API_VERSION,
        "kind": REQUESTS.kind,
        "metadata": {"name": name, "namespace": "bench"},
        "spec": {"resources": {"cpu": cpu, "memory": "1Gi"}, **spec},
    }


async def post(transport: Transport, path: str, body: dict[str, Any], method: str) -> Any:
    """Send one object and return it as it is stored."""
    raw = json.dumps(body).encode()
    response = await transport.request(method, path, body=raw)
    if response.status not in {200, 201}:
        raise SystemExit(f"{method} {path}: {response.status} {response.body[:300]!r}")
    return json.loads(response.body)


async def each(items: Iterable[Any], do: Callable[[Any], Awaitable[None]]) -> None:
    """Do it for all of them, a few at once."""
    left = iter(list(items))

    async def work() -> None:
        for item in left:
            await do(item)

    await asyncio.gather(*(work() for _ in range(WRITERS)))


async def fill(transport: Transport, redis_url: str, nodes: int, requests: int) -> None:
    """Create everything, and let every node report."""
    uids: dict[str, str] = {}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}}
    await post(transport, "/api/v1/namespaces", namespace, "POST")

    async def create_node(number: int) -> None:
        stored = await post(transport, NODES.path(), a_node(number), "POST")
        name = stored["metadata"]["name"]
        uids[name] = stored["metadata"]["uid"]
        ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "",
                 "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
        templates = [f"t-{k}" for k in range(5) if (number + k) % 3 == 0]
        stored["status"] = {"conditions": [ready], "templates": templates}
        await post(transport, NODES.path(name, subresource="status"), stored, "PUT")

    async def create_request(number: int) -> None:
        path = REQUESTS.path(namespace="bench")
        stored = await post(transport, path, a_request(f"old-{number}", "1"), "POST")
        node = f"node-{number % nodes:05}"
        reservation = {"id": f"{number:032x}", "replica": "bench", "nodeUID": uids[node],
                       "time": "2026-01-01T00:00:00Z", "cpuMillis": 1000,
                       "memoryBytes": 1 << 30, "diskBytes": 0}  # fmt: skip
        stored["status"] = {"phase": "Running", "nodeName": node, "reservation": reservation}
        name = stored["metadata"]["name"]
        path = REQUESTS.path(name, namespace="bench", subresource="status")
        await post(transport, path, stored, "PUT")

    await each(range(nodes), create_node)
    await each(range(requests), create_request)
    for body in (a_request("nowhere", "99"), a_request("fits", "2", templateID="t-1")):
        await post(transport, REQUESTS.path(namespace="bench"), body, "POST")
    writer, stamp = MetricsWriter(redis_url), int(time.time() * 1000)
    reports = {name: encode(NodeReport(uid, stamp, cpu_util_percent=float(number % 100)))
               for number, (name, uid) in enumerate(uids.items())}  # fmt: skip
    await writer.publish(reports)
    await writer.close()


def explained(plane: LocalControlPlane, arguments: list[str]) -> tuple[float, float, float]:
    """Return the seconds of the whole process, its cpu time, and what it says of itself."""
    command = [sys.executable, "-m", "cubesched", "explain", *arguments]
    command += ["--kubeconfig", str(plane.kubeconfig), "--redis-url", plane.redis_url]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "operator")}
    began, cpu_before = time.monotonic(), cpu_of_children()
    answer = subprocess.run(command, capture_output=True, text=True, env=environ, check=True)
    seconds, cpu = time.monotonic() - began, cpu_of_children() - cpu_before
    told = re.search(r'read in ([0-9.]+) s|"seconds": ([0-9.]+)', answer.stdout)
    assert told is not None, answer.stdout
    return seconds, cpu, float(told[1] or told[2])


def cpu_of_children() -> float:
    """Return the cpu seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def prepare(plane: LocalControlPlane, nodes: int, requests: int) -> None:
    """Fill the control plane as its administrator."""
    connection = await connect(str(plane.kubeconfig))
    async with AiohttpTransport(connection) as transport:
        await fill(transport, plane.redis_url, nodes, requests)


def main(nodes: int = 5_000, requests: int = 5_000) -> None:
    """Measure every case."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        plane = LocalControlPlane("bench-explain", Path(directory)).start(manifests=True)
        stack.callback(plane.stop)
        asyncio.run(prepare(plane, nodes, requests))
        for case, arguments in ASKED.items():
            runs = [explained(plane, arguments) for _ in range(RUNS)]
            medians = [round(statistics.median(run[k] for run in runs), 2) for k in range(3)]
            figures = dict(zip(("seconds", "cpu", "told"), medians, strict=True))
            print(json.dumps({"case": case, "nodes": nodes, "requests": requests, **figures}))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:3]))
