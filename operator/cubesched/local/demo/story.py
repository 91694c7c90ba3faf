"""The demo's steps, in the order in which they are told."""

from __future__ import annotations

import asyncio
import json
import random
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec

from cubesched.adapters.cluster.connection import AiohttpTransport, connect
from cubesched.adapters.cluster.listwatch import ListWatch
from cubesched.adapters.cluster.transport import Transport
from cubesched.api import NODES, REQUESTS
from cubesched.core.errors import UsageError
from cubesched.local.demo import workload
from cubesched.local.demo.cluster import (
    OPERATORS,
    SIMULATORS,
    Cluster,
    other_cluster,
    own_cluster,
)
from cubesched.local.demo.placements import Placements
from cubesched.local.demo.processes import Processes
from cubesched.local.toolchain import Report

CREATES_AT_ONCE = 8
SAY_SECONDS = 3.0
READY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How big the demo is."""

    nodes: int = 200
    requests: int = 1000
    replicas: int = 2
    seed: int = 1
    timeout_seconds: float = 240.0
    context: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the demo has to show at its end."""

    placements: Placements
    audit: dict[str, object]
    audit_code: int
    described: str
    described_name: str
    bound_seconds: float


class Demo:
    """Runs the steps one after another; everything it starts ends with its stack."""

    def __init__(self, plan: Plan, directory: Path, *, report: Report) -> None:
        """Keep logs and the control plane under `directory`."""
        self.plan, self.directory, self._report = plan, directory, report
        self._began = time.monotonic()
        self.cluster: Cluster
        self.processes: Processes

    def say(self, text: str) -> None:
        """Tell one step, with the time since the start."""
        self._report(f"[{time.monotonic() - self._began:5.1f} s] {text}")

    def start(self, stack: ExitStack) -> None:
        """Start the cluster, then every process beside it."""
        self.processes = stack.enter_context(Processes(self.directory))
        if self.plan.context is None:
            self.cluster = own_cluster(stack, self.directory, report=self._report)
            self.say("kube-apiserver, etcd, kube-controller-manager and Redis run")
        else:
            self.cluster = other_cluster(self.processes, context=self.plan.context)
            self.say(f"CRDs, roles and admission rules are installed in {self.plan.context}")
        self._start_replicas()
        self._start_nodes()
        viewer = self.cluster.access("cubesched:auditor", "cubesched:viewers")
        journal = ["--agent-log", str(self.directory / "journal.jsonl")]
        (self.directory / "journal.jsonl").touch()
        self.processes.start(
            "auditor", "cubesched.local.auditor", [*viewer, *journal, "--until-stopped"]
        )

    def _start_replicas(self) -> None:
        for number in range(1, self.plan.replicas + 1):
            access = self.cluster.access(f"cubesched:operator:{number}", OPERATORS)
            flags = ["--redis-url", self.cluster.redis_url, "--http-host", "127.0.0.1"]
            flags += ["--http-port", "0", "--replica", f"replica-{number}"]
            self.processes.start(f"replica-{number}", "cubesched", ["run", *access, *flags])
        self.say(f"{self.plan.replicas} operator replicas start")

    def _start_nodes(self) -> None:
        flags = ["--simulate", str(self.plan.nodes), "--redis-url", self.cluster.redis_url]
        flags += ["--cpu", "16", "--memory", "32Gi", "--zones", "z1,z2,z3"]
        flags += ["--templates", ",".join(workload.TEMPLATES), "--template-share", "0.3"]
        flags += ["--log", str(self.directory / "journal.jsonl"), "--seed", str(self.plan.seed)]
        access = self.cluster.access("cubesched:simulator", SIMULATORS)
        self.processes.start("nodes", "cubesched", ["agent", *access, *flags])
        self.say(f"{self.plan.nodes} simulated nodes register, each under its own user")

    async def play(self) -> Outcome:
        """Create the requests, follow them until all is said, and collect the evidence."""
        kubeconfig = str(self.cluster.kubeconfig) if self.cluster.kubeconfig else None
        connection = await connect(kubeconfig, self.cluster.context)
        async with AiohttpTransport(connection) as transport:
            await self._wait_for_nodes(transport)
            placements = Placements()
            watch = ListWatch(
                transport,
                REQUESTS.path(namespace=workload.NAMESPACE),
                placements,
                rng=random.random,
            )
            await self._create_namespace(transport)
            follower = asyncio.create_task(watch.run())
            try:
                started = time.monotonic()
                await self._create_requests(transport)
                await self._follow(placements, started)
            finally:
                follower.cancel()
        return await asyncio.to_thread(self._collect, placements, time.monotonic() - started)

    async def _wait_for_nodes(self, transport: Transport) -> None:
        deadline = time.monotonic() + READY_SECONDS
        ready = 0
        while ready < self.plan.nodes:
            self.processes.check()
            if time.monotonic() > deadline:
                raise UsageError(
                    f"only {ready} of {self.plan.nodes} nodes are ready; see "
                    f"{self.directory}/nodes.log"
                )
            await asyncio.sleep(0.5)
            ready = await _ready_nodes(transport)
        self.say(f"{ready} nodes are Ready")

    async def _create_namespace(self, transport: Transport) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": workload.NAMESPACE}}
        await transport.request("POST", "/api/v1/namespaces", body=msgspec.json.encode(body))

    async def _create_requests(self, transport: Transport) -> None:
        """Create all requests as fast as the server takes them."""
        self.say(f"{self.plan.requests} SandboxRequests are created")
        bodies = iter(list(workload.requests(self.plan.requests, seed=self.plan.seed)))

        async def create() -> None:
            for body in bodies:
                path = REQUESTS.path(namespace=workload.NAMESPACE)
                response = await transport.request("POST", path, body=msgspec.json.encode(body))
                if response.status not in {201, 409}:
                    raise UsageError(f"a request was refused: {response.body.decode()[:300]}")

        await asyncio.gather(*(create() for _ in range(CREATES_AT_ONCE)))

    async def _follow(self, placements: Placements, started: float) -> None:
        """Return when every request runs or was told why it waits."""
        said = 0.0
        while placements.settled() < self.plan.requests:
            self.processes.check()
            now = time.monotonic()
            if now - started > self.plan.timeout_seconds:
                raise UsageError(f"not settled in time: {dict(placements.phases())}")
            if now - said > SAY_SECONDS:
                phases = ", ".join(f"{n} {phase}" for phase, n in placements.phases().most_common())
                self.say(phases or "none seen yet")
                said = now
            await asyncio.sleep(0.1)
        self.say("every request runs or says why it waits")

    def _collect(self, placements: Placements, seconds: float) -> Outcome:
        name = placements.one_waiting(prefix=workload.PICKY) or ""
        described = ""
        if name:
            described = self.cluster.run_kubectl(
                "describe", REQUESTS.plural, name, "--namespace", workload.NAMESPACE
            )
        code, printed = self.processes.stop("auditor")
        audit = json.loads(printed or "{}")
        return Outcome(placements, audit, code, described, name, seconds)


async def _ready_nodes(transport: Transport) -> int:
    response = await transport.request("GET", NODES.path())
    nodes = json.loads(response.body).get("items", ())
    return sum(
        any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in node.get("status", {}).get("conditions", ())
        )
        for node in nodes
    )
