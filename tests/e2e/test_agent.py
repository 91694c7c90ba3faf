"""A node's agent on a real API server: claims, refusals, deletions, restarts, and its limits."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.e2e.operating import Kubectl, wait_until

from cubesched.adapters.cluster.connection import connect
from cubesched.adapters.cluster.wire import AiohttpTransport
from cubesched.adapters.nodemetrics.writer import MetricsWriter
from cubesched.agent.runtime import Limits, Runtime
from cubesched.agent.serving import NodeSetup, serve
from cubesched.agent.simulated import Behaviour, SimulatedRuntime
from cubesched.agent.simulation import NODE_GROUPS, node_user
from cubesched.api import REQUESTS
from cubesched.fleet.entries import Weight
from cubesched.fleet.sandboxes import sandbox_name
from cubesched.local import LocalControlPlane

GIB = 1 << 30
SIMULATOR_ROLE = Path(__file__).parents[2] / "deploy/local/simulator.yaml"
CAPACITY = Weight(4000, 8 * GIB)


@dataclass
class Case:
    """One namespace of requests, bound by hand as the operator would."""

    kubectl: Kubectl
    namespace: str
    node: str = field(default_factory=lambda: f"n-{uuid.uuid4().hex[:8]}")

    def bind(self, name: str, *, node: str = "", cpu_millis: int = 1000) -> str:
        """Create a request and bind it; return its uid."""
        request = {
            "apiVersion": "cubesched.io/v1alpha1",
            "kind": "SandboxRequest",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"resources": {"cpu": f"{cpu_millis}m", "memory": "1Gi"}},
        }
        self.kubectl("create", "-f", "-", input=json.dumps(request))
        self.rebind(name, node=node, cpu_millis=cpu_millis)
        uid: str = self.get(name)["metadata"]["uid"]
        return uid

    def rebind(self, name: str, *, node: str = "", cpu_millis: int = 1000) -> None:
        reservation = {"id": uuid.uuid4().hex, "replica": "by-hand", "cpuMillis": cpu_millis}
        status = {
            "phase": "Bound",
            "nodeName": node or self.node,
            "reservation": {**reservation, "memoryBytes": GIB},
        }
        patch = json.dumps({"status": status})
        self.call("patch", "sbr", name, "--subresource=status", "--type=merge", "-p", patch)

    def call(self, *args: str) -> str:
        return self.kubectl("-n", self.namespace, *args).stdout

    def get(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.call("get", "sbr", name, "-o", "json"))
        return found

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(name).get("status", {})
        return found

    def sandbox(self, name: str) -> str:
        found = self.get(name)
        return sandbox_name(found["metadata"]["uid"], found["status"]["reservation"]["id"])

    async def reaches(self, name: str, phase: str) -> dict[str, Any]:
        """Return the status once the request is in `phase`, read without blocking the agent."""
        deadline = time.monotonic() + 30
        while (status := await asyncio.to_thread(self.status, name)).get("phase") != phase:
            assert time.monotonic() < deadline, f"{name} stays {status}"
            await asyncio.sleep(0.1)
        return status

    async def is_ready(self, value: str = "True") -> None:
        path = "-o=jsonpath={.status.conditions[?(@.type=='Ready')].status}"

        def ready() -> str:
            return self.kubectl("get", "sbn", self.node, path, check=False).stdout

        deadline = time.monotonic() + 30
        while await asyncio.to_thread(ready) != value:
            assert time.monotonic() < deadline, "the node does not become ready"
            await asyncio.sleep(0.1)


@pytest.fixture
def case(kubectl: Kubectl, fresh_namespace: str) -> Iterator[Case]:
    found = Case(kubectl, fresh_namespace)
    yield found
    kubectl("delete", "sbn", found.node, "--ignore-not-found")


@asynccontextmanager
async def served(
    control_plane: LocalControlPlane, case: Case, machine: Runtime
) -> AsyncIterator[None]:
    """Run the agent of the case's node, under that node's own certificate."""
    kubeconfig = control_plane.client_kubeconfig(node_user(case.node), [NODE_GROUPS[0]])
    metrics = MetricsWriter(control_plane.redis_url)
    stop = asyncio.Event()
    async with AiohttpTransport(await connect(str(kubeconfig))) as transport:
        setup = NodeSetup({"capacity": {"cpu": "4", "memory": "8Gi"}})
        serving = asyncio.create_task(
            serve(
                case.node,
                setup,
                transport=transport,
                metrics=metrics,
                runtime=machine,
                stop=stop,
            )
        )
        try:
            await case.is_ready()
            yield
        finally:
            stop.set()
            await serving
            await metrics.close()


def a_machine(case: Case, behaviour: Behaviour | None = None) -> SimulatedRuntime:
    return SimulatedRuntime(
        case.node,
        limits=Limits(CAPACITY.cpu_millis, CAPACITY.memory_bytes),
        capacity=CAPACITY,
        behaviour=behaviour,
    )


async def until_empty(machine: SimulatedRuntime) -> None:
    deadline = time.monotonic() + 20
    while left := await machine.running():
        assert time.monotonic() < deadline, f"still there: {left}"
        await asyncio.sleep(0.05)


async def test_a_bound_request_runs_ends_and_is_reported(
    control_plane: LocalControlPlane, case: Case
) -> None:
    machine = a_machine(case, Behaviour(lifetime_seconds=(3.0, 3.0)))
    async with served(control_plane, case, machine):
        case.bind("q")
        running = await case.reaches("q", "Running")
        assert running["sandboxID"] == case.sandbox("q")
        assert running["endpoint"].startswith(case.node)
        ended = await case.reaches("q", "Succeeded")
        assert ended["finishedTime"]
        assert not await machine.running()
        columns = case.call("get", "sbr", "q").splitlines()[1].split()
        assert columns[:2] == ["q", "Succeeded"]


async def test_what_does_not_fit_comes_back_with_a_refusal(
    control_plane: LocalControlPlane, case: Case
) -> None:
    async with served(control_plane, case, a_machine(case)):
        case.bind("big", cpu_millis=4001)
        status = await case.reaches("big", "Pending")

        assert [r["node"] for r in status["refusals"]] == [case.node]
        assert "nodeName" not in status
        case.rebind("big", cpu_millis=4000)
        await case.reaches("big", "Running")


async def test_a_node_told_to_refuse_gives_everything_back(
    control_plane: LocalControlPlane, case: Case
) -> None:
    refusing = Behaviour(refusing_nodes=frozenset({case.node}))
    async with served(control_plane, case, a_machine(case, refusing)):
        case.bind("q")
        status = await case.reaches("q", "Pending")

        assert status["refusals"][0]["reason"] == "told to refuse"


async def test_a_start_that_fails_ends_the_request(
    control_plane: LocalControlPlane, case: Case
) -> None:
    machine = a_machine(case, Behaviour(start_fail_rate=1.0))
    async with served(control_plane, case, machine):
        case.bind("q")
        status = await case.reaches("q", "Failed")

        assert status["conditions"][-1]["reason"] == "StartFailed"
        assert not await machine.running()


@pytest.mark.parametrize("phase", ["Starting", "Running"])
async def test_the_sandbox_of_a_deleted_request_is_destroyed(
    control_plane: LocalControlPlane, case: Case, phase: str
) -> None:
    machine = a_machine(case, Behaviour(create_delay_seconds=2.0))
    async with served(control_plane, case, machine):
        case.bind("q")
        await case.reaches("q", phase)
        assert await machine.running()
        case.call("delete", "sbr", "q")
        await until_empty(machine)


async def test_a_restarted_agent_keeps_what_is_wanted_and_removes_the_rest(
    control_plane: LocalControlPlane, case: Case
) -> None:
    machine = a_machine(case)
    async with served(control_plane, case, machine):
        case.bind("kept")
        case.bind("gone")
        await case.reaches("kept", "Running")
        await case.reaches("gone", "Running")
    await case.is_ready("False")
    case.call("delete", "sbr", "gone")
    kept = case.sandbox("kept")

    async with served(control_plane, case, machine):
        assert set(await machine.running()) == {kept}
        assert case.status("kept")["phase"] == "Running"


async def test_a_restart_of_the_api_server_is_survived(
    control_plane: LocalControlPlane, case: Case
) -> None:
    async with served(control_plane, case, a_machine(case)):
        case.bind("before")
        await case.reaches("before", "Running")
        await asyncio.to_thread(control_plane.restart_apiserver)
        case.bind("after")
        await case.reaches("after", "Running")
        assert case.status("before")["phase"] == "Running"


async def test_an_agent_is_refused_on_another_nodes_request(
    control_plane: LocalControlPlane, case: Case
) -> None:
    case.bind("q", node="somewhere-else")
    kubeconfig = control_plane.client_kubeconfig(node_user(case.node), [NODE_GROUPS[0]])
    stored = case.get("q")
    body = {
        "apiVersion": stored["apiVersion"],
        "kind": stored["kind"],
        "metadata": {
            key: stored["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")
        },
        "status": {**stored["status"], "phase": "Starting"},
    }

    async with AiohttpTransport(await connect(str(kubeconfig))) as transport:
        answer = await transport.request(
            "PUT",
            REQUESTS.path("q", namespace=case.namespace, subresource="status"),
            body=msgspec.json.encode(body),
        )

    assert answer.status == 422
    assert b"may write only requests that are on its node" in answer.body
    assert case.status("q")["phase"] == "Bound"


@dataclass
class Program:
    """`cubesched agent --simulate`, as a process of its own."""

    process: subprocess.Popen[str]
    log: Path

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out + err

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


def simulate(control_plane: LocalControlPlane, prefix: str, log: Path, *flags: str) -> Program:
    argv = [sys.executable, "-m", "cubesched", "agent", "--prefix", prefix, "--log", str(log)]
    argv += ["--kubeconfig", str(control_plane.kubeconfig), "--redis-url", control_plane.redis_url]
    process = subprocess.Popen(
        [*argv, *flags],
        cwd=Path(__file__).parents[2] / "operator",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Program(process, log)


@pytest.mark.parametrize("watch", [[], ["--shared-watch"]], ids=["own watches", "shared watch"])
def test_simulated_nodes_act_as_their_own_users(
    control_plane: LocalControlPlane, case: Case, tmp_path: Path, watch: list[str]
) -> None:
    prefix = f"{case.node}-"
    case.kubectl("apply", "-f", str(SIMULATOR_ROLE))
    only_impersonates = control_plane.client_kubeconfig("simulator", ["cubesched:simulators"])
    flags = ["--simulate", "20", "--kubeconfig", str(only_impersonates), *watch]
    program = simulate(control_plane, prefix, tmp_path / "log", *flags)
    try:
        assert program.process.stdout is not None
        assert program.process.stdout.readline().startswith("20 nodes ready in ")
        names = [case.bind(f"q{i}", node=f"{prefix}{i:03}") for i in range(3)]
        wait_until(
            lambda: all(case.status(f"q{i}")["phase"] == "Running" for i in range(3)),
            what="running",
        )
    finally:
        code, said = program.stop()

    assert code == 0, said
    assert "Traceback" not in said
    starts = [event for event in program.events() if event["event"] == "start"]
    assert sorted(event["requestUID"] for event in starts) == sorted(names)
    node = json.loads(case.kubectl("get", "sbn", f"{prefix}019", "-o", "json").stdout)
    assert node["status"]["conditions"][0]["reason"] == "AgentStopped"
    case.kubectl("delete", "sbn", *(f"{prefix}{i:03}" for i in range(20)))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--kubeconfig", "/nowhere"], "kubeconfig /nowhere does not exist"),
        (["--redis-url", "redis://127.0.0.1:1/0"], "Redis"),
        (["--context", "nobody"], "nobody"),
    ],
)
def test_what_cannot_be_reached_is_one_line_and_exit_2(
    control_plane: LocalControlPlane, tmp_path: Path, flags: list[str], words: str
) -> None:
    program = simulate(control_plane, "x-", tmp_path / "log", "--simulate", "1", *flags)
    _, error = program.process.communicate(timeout=30)

    assert program.process.returncode == 2
    assert words in error
    assert error.count("\n") == 1


def test_an_identity_that_may_not_impersonate_is_told_so(
    control_plane: LocalControlPlane, tmp_path: Path
) -> None:
    viewer = control_plane.client_kubeconfig("viewer", ["cubesched:viewers"])
    program = simulate(
        control_plane, "x-", tmp_path / "log", "--simulate", "1", "--kubeconfig", str(viewer)
    )
    _, error = program.process.communicate(timeout=30)

    assert program.process.returncode == 2
    assert "impersonate" in error
