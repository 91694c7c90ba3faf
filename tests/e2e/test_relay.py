"""`cubesched relay` on a real API server: as exact as a watch of one's own, and as safe."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.e2e.operating import NAMESPACE, Operating, a_request, wait_until

from cubesched.adapters.cluster.connection import AiohttpTransport, connect, find_relay
from cubesched.adapters.cluster.transport import Transport
from cubesched.agent.simulation import NODE_GROUPS, node_user
from cubesched.api import REQUESTS
from cubesched.local import LocalControlPlane
from cubesched.local.waiting import free_port

BURST = 60


@dataclass
class Relay:
    """One relay process, which may be killed and started again on its address."""

    plane: LocalControlPlane
    operating: Operating
    port: int = field(default_factory=free_port)
    probes: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        certificate = self.plane.relay_certificate
        flags = ["--host", "127.0.0.1", "--port", str(self.port)]
        flags += ["--tls-cert", str(certificate), "--tls-key", str(certificate.with_suffix(".key"))]
        flags += ["--client-ca", str(self.plane.ca_file)]
        flags += ["--impersonators", "cubesched:simulators"]
        flags += ["--http-host", "127.0.0.1", "--http-port", str(self.probes)]
        access = self.operating.cluster.access("cubesched:relay", "cubesched:viewers")
        self.operating.processes.start("relay", "cubesched", ["relay", *access, *flags])
        wait_until(lambda: self.get("readyz")[0] == 200, what="relay ready; see relay.log")

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.probes}/{path}", timeout=5
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, line: str) -> float:
        lines = self.get("metrics")[1].splitlines()
        return sum(float(at.rsplit(" ", 1)[1]) for at in lines if at.startswith(line))

    def kubeconfig_of(self, node: str) -> Path:
        return self.plane.client_kubeconfig(node_user(node), [NODE_GROUPS[0]])


@pytest.fixture
def relay(control_plane: LocalControlPlane, operating: Operating) -> Iterator[Relay]:
    found = Relay(control_plane, operating)
    found.start()
    yield found
    operating.processes.stop("relay")


@pytest.mark.parametrize("mishap", ["none", "relay killed", "API server killed"])
def test_a_burst_through_a_relay_runs_to_completion_and_nothing_twice(
    operating: Operating, control_plane: LocalControlPlane, relay: Relay, mishap: str
) -> None:
    machines = ["--cpu", "4", "--memory", "64Gi", "--lifetime", "1s..4s"]
    operating.start_nodes(8, *machines, "--relay", relay.url)
    operating.start_auditor()
    operating.start_replica("a")
    operating.start_replica("b")
    wait_until(lambda: relay.metric("cubesched_relay_watches") == 8, what="all watch the relay")

    operating.create_all(a_request(f"r{n:02}") for n in range(BURST))
    time.sleep(0.5)
    if mishap == "relay killed":
        operating.processes.kill("relay")
        time.sleep(2.0)
        relay.start()
    elif mishap == "API server killed":
        control_plane.restart_apiserver()

    wait_until(
        lambda: operating.phases() == {"Succeeded": BURST},
        seconds=120,
        what=f"all done, not {operating.phases()}",
    )
    assert relay.metric('cubesched_relay_events_total{kind="MODIFIED"}') > 0
    summary = operating.audit()
    assert summary["violations"] == 0, summary
    starts = [json.loads(line) for line in operating.journal.read_text().splitlines()]
    begun = [event["requestUID"] for event in starts if event["event"] == "start"]
    assert len(begun) == len(set(begun)) == BURST


async def test_what_the_relay_says_is_what_the_api_server_says(
    relay: Relay, control_plane: LocalControlPlane, operating: Operating
) -> None:
    """Two nodes' requests come, change, move between them and go: line by line the same."""
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(
            AiohttpTransport(await connect(str(control_plane.kubeconfig)))
        )
        pairs = {
            node: (admin, await stack.enter_async_context(await relay_client(relay, node)))
            for node in ("n1", "n2")
        }
        await shuffle(admin, Random(1), steps=20)
        versions = {}
        for node, pair in pairs.items():
            direct, relayed = [await a_list(side, node) for side in pair]
            assert direct["items"] == relayed["items"]
            versions[node] = direct["metadata"]["resourceVersion"]
            assert int(relayed["metadata"]["resourceVersion"]) >= int(versions[node])
        watching = {
            node: [asyncio.create_task(the_lines(side, node, versions[node])) for side in pair]
            for node, pair in pairs.items()
        }
        await shuffle(admin, Random(2), steps=150)
        kinds = set()
        for node, tasks in watching.items():
            direct_lines, relayed_lines = await asyncio.gather(*tasks)
            assert relayed_lines == direct_lines, node
            kinds |= {line["type"] for line in direct_lines}
        assert kinds == {"ADDED", "MODIFIED", "DELETED"}


async def relay_client(relay: Relay, node: str) -> AiohttpTransport:
    return AiohttpTransport(await find_relay(relay.url, str(relay.kubeconfig_of(node))))


def selected(node: str) -> dict[str, str]:
    return {"fieldSelector": f"status.nodeName={node}"}


async def a_list(side: Transport, node: str) -> dict[str, Any]:
    answer = await side.request("GET", REQUESTS.path(), params=selected(node))
    assert answer.status == 200, answer.body
    found: dict[str, Any] = json.loads(answer.body)
    return found


async def the_lines(side: Transport, node: str, version: str) -> list[dict[str, Any]]:
    """Return all lines but bookmarks of a watch of 8 s."""
    params = {**selected(node), "watch": "1", "resourceVersion": version, "timeoutSeconds": "8"}
    async with side.stream(REQUESTS.path(), params=params, idle_seconds=10) as lines:
        return [json.loads(line) async for line in lines]


async def shuffle(admin: Transport, rng: Random, *, steps: int) -> None:
    """Create, place, move, touch and delete requests at random."""
    known: dict[str, Mapping[str, Any]] = {}
    path = REQUESTS.path(namespace=NAMESPACE)
    for step in range(steps):
        if len(known) < 6 and rng.random() < 0.4:
            name = f"s{rng.randrange(10**6)}"
            body = a_request(name) | {"status": {}}
            body["metadata"]["annotations"] = {"resourceVersion": "5"}
            created = await admin.request("POST", path, body=json.dumps(body).encode())
            known[name] = json.loads(created.body)
        elif known:
            name = rng.choice(sorted(known))
            if rng.random() < 0.15:
                await admin.request("DELETE", f"{path}/{name}")
                del known[name]
                continue
            node = rng.choice(("n1", "n1", "n2", ""))
            status: dict[str, Any] = {"phase": "Pending", "attempts": step + 1}
            if node:
                weight = {"id": f"{step:032}", "replica": "x", "cpuMillis": 1, "memoryBytes": 1}
                status |= {"phase": "Bound", "nodeName": node, "reservation": weight}
            body = {**known[name], "status": status}
            answer = await admin.request(
                "PUT", f"{path}/{name}/status", body=json.dumps(body).encode()
            )
            assert answer.status == 200, answer.body
            known[name] = json.loads(answer.body)


async def test_a_certificate_opens_its_own_node_and_no_other(relay: Relay) -> None:
    async with await relay_client(relay, "n2") as other:
        for more in ({}, {"watch": "1", "resourceVersion": "1"}):
            answer = await other.request("GET", REQUESTS.path(), params={**selected("n1"), **more})
            assert answer.status == 403
            assert json.loads(answer.body)["reason"] == "Forbidden"
        own = await other.request("GET", REQUESTS.path(), params=selected("n2"))
        assert own.status == 200
    viewer = relay.plane.client_kubeconfig("viewer", ["cubesched:viewers"])
    async with AiohttpTransport(await find_relay(relay.url, str(viewer))) as nobody:
        answer = await nobody.request("GET", REQUESTS.path(), params=selected("n1"))
        assert answer.status == 403


async def test_a_list_is_fresh_where_only_other_kinds_change(
    relay: Relay, control_plane: LocalControlPlane
) -> None:
    async with (
        AiohttpTransport(await connect(str(control_plane.kubeconfig))) as admin,
        await relay_client(relay, "n1") as agent,
    ):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "relay-"}}
        for _ in range(2):
            written = await admin.request(
                "POST", "/api/v1/namespaces/default/configmaps", body=json.dumps(body).encode()
            )
            version = int(json.loads(written.body)["metadata"]["resourceVersion"])
            page = await a_list(agent, "n1")
            assert int(page["metadata"]["resourceVersion"]) >= version


def test_a_relay_that_stops_lets_its_agents_go_in_good_order(relay: Relay) -> None:
    async def watch_until_it_ends() -> int:
        async with await relay_client(relay, "n1") as agent:
            version = (await a_list(agent, "n1"))["metadata"]["resourceVersion"]
            params = {**selected("n1"), "watch": "1", "resourceVersion": version}
            async with agent.stream(REQUESTS.path(), params=params, idle_seconds=30) as lines:
                relay.operating.processes.running["relay"].terminate()
                return len([line async for line in lines])

    assert asyncio.run(watch_until_it_ends()) == 0
    code, _ = relay.operating.processes.stop("relay")
    assert code == 0
    assert "Traceback" not in relay.operating.text("relay.log")
    relay.start()


def test_a_relay_without_the_right_to_look_waits_and_says_so(
    operating: Operating, control_plane: LocalControlPlane
) -> None:
    access = operating.cluster.access("cubesched:relay", "cubesched:nobody")
    flags = ["--plain-http", "--host", "127.0.0.1", "--port", "0", "--http-port", "0"]
    operating.processes.start("relay", "cubesched", ["relay", *access, *flags])

    wait_until(
        lambda: "not allowed to list sandboxrequests" in operating.text("relay.log"),
        what="it says what it lacks",
    )
    code, _ = operating.processes.stop("relay")
    assert code == 0
