"""The cluster adapter against a real API server: exact lists, conditional writes, hard weather."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.e2e.conftest import Kubectl

from cubesched.adapters.cluster.connection import AiohttpTransport, Connection, connect
from cubesched.adapters.cluster.events import EventPoster
from cubesched.adapters.cluster.leases import LeaseStore
from cubesched.adapters.cluster.listwatch import ListWatch
from cubesched.adapters.cluster.probing import Right, missing_rights, wait_for_api
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.cluster.writes import StatusApplier, StatusWriter, get_raw
from cubesched.adapters.telemetry.meter import Meter
from cubesched.api import API_VERSION, NODES, REQUESTS, RESOURCES, SYSTEM_NAMESPACE
from cubesched.core.errors import ApiError
from cubesched.core.writing import Outcome
from cubesched.local import LocalControlPlane


@dataclass
class StateSink:
    """Holds name to resourceVersion, as told."""

    held: dict[str, int] = field(default_factory=dict)
    listed: dict[str, int] = field(default_factory=dict)
    completions: int = 0

    def reset(self) -> None:
        self.listed = {}

    def seen(self, raw: bytes) -> None:
        self.listed.update([_identity(raw)])

    def complete(self, version: int) -> None:
        self.held = self.listed
        self.completions += 1

    def event(self, kind: str, raw: bytes, version: int) -> None:
        name, _ = _identity(raw)
        if kind == "DELETED":
            self.held.pop(name, None)
        else:
            self.held[name] = version

    def progress(self, version: int) -> None:
        pass


def _identity(raw: bytes) -> tuple[str, int]:
    metadata = json.loads(raw)["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}", int(metadata["resourceVersion"])


@pytest.fixture
async def transport(admin_kubeconfig: Path) -> AsyncIterator[AiohttpTransport]:
    connection = await connect(str(admin_kubeconfig))
    async with AiohttpTransport(connection) as opened:
        yield opened


@asynccontextmanager
async def following(
    transport: Transport, **options: Any
) -> AsyncIterator[tuple[ListWatch, StateSink]]:
    """Follow all requests for the time of the block."""
    sink = StateSink()
    watch = ListWatch(transport, REQUESTS.path(), sink, rng=random.Random(1).random, **options)
    task = asyncio.create_task(watch.run())
    try:
        yield watch, sink
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(holds: Callable[[], bool], *, seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - the state belongs to servers
            await asyncio.sleep(0.02)


async def create(transport: Transport, namespace: str, name: str) -> dict[str, Any]:
    body = {
        "apiVersion": API_VERSION,
        "kind": "SandboxRequest",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "x"}},
        "spec": {"resources": {"cpu": "1", "memory": "1Gi"}},
    }
    answer = await transport.request(
        "POST", REQUESTS.path(namespace=namespace), body=json.dumps(body).encode()
    )
    assert answer.status == 201, answer.body
    stored: dict[str, Any] = json.loads(answer.body)
    return stored


async def stored_versions(transport: Transport) -> dict[str, int]:
    answer = await transport.request("GET", REQUESTS.path())
    return dict(_identity(json.dumps(item).encode()) for item in json.loads(answer.body)["items"])


async def test_list_and_watch_hold_exactly_what_the_server_holds(
    transport: AiohttpTransport, fresh_namespace: str
) -> None:
    for number in range(25):
        await create(transport, fresh_namespace, f"before-{number}")

    async def churn() -> None:
        for number in range(25):
            await create(transport, fresh_namespace, f"during-{number}")
            path = REQUESTS.path(f"before-{number}", namespace=fresh_namespace)
            await transport.request("DELETE", path)

    async with following(transport, page_size=10) as (watch, sink):
        await churn()
        stored = await stored_versions(transport)
        await until(lambda: sink.held == stored)
        assert watch.position is not None
        assert watch.position >= max(stored.values())
        assert sink.completions == 1


async def put(
    writer: StatusWriter, stored: dict[str, Any], status: dict[str, Any], **changes: str
) -> Any:
    metadata = stored["metadata"]
    identity = {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resource_version": metadata["resourceVersion"],
    }
    return await writer.put_status(**{**identity, **changes}, status=status)


async def test_a_status_write_lands_once_and_touches_nothing_else(
    transport: AiohttpTransport, fresh_namespace: str
) -> None:
    writer = StatusWriter(transport, REQUESTS)
    stored = await create(transport, fresh_namespace, "r")

    landed = await put(writer, stored, {"phase": "Pending", "attempts": 1})
    second = await put(writer, stored, {"phase": "Pending", "attempts": 2})

    raw = await get_raw(transport, REQUESTS, "r", namespace=fresh_namespace)
    now = json.loads(raw or b"")
    assert landed.outcome is Outcome.LANDED
    assert landed.resource_version == now["metadata"]["resourceVersion"]
    assert second.outcome is Outcome.REFUSED
    assert now["status"]["attempts"] == 1
    assert now["spec"] == stored["spec"]
    assert now["metadata"]["labels"] == {"app": "x"}


async def test_a_recreated_request_of_the_same_name_is_another_one(
    transport: AiohttpTransport, fresh_namespace: str
) -> None:
    writer = StatusWriter(transport, REQUESTS)
    old = await create(transport, fresh_namespace, "r")
    await transport.request("DELETE", REQUESTS.path("r", namespace=fresh_namespace))
    gone = await put(writer, old, {"phase": "Pending"})
    new = await create(transport, fresh_namespace, "r")

    wrong_uid = await put(
        writer, old, {"phase": "Pending"}, resource_version=new["metadata"]["resourceVersion"]
    )

    assert gone.outcome is Outcome.MISSING
    assert wrong_uid.outcome is Outcome.REFUSED


async def test_a_status_that_the_schema_refuses_is_rejected_with_its_reason(
    transport: AiohttpTransport, fresh_namespace: str
) -> None:
    stored = await create(transport, fresh_namespace, "r")

    result = await put(StatusWriter(transport, REQUESTS), stored, {"phase": "Dreaming"})

    assert result.outcome is Outcome.REJECTED
    assert "phase" in result.message


async def test_two_managers_keep_their_own_part_of_a_node(transport: AiohttpTransport) -> None:
    body = {
        "apiVersion": API_VERSION,
        "kind": "SandboxNode",
        "metadata": {"name": "adapter-n1"},
        "spec": {"capacity": {"cpu": "4", "memory": "8Gi"}},
    }
    await transport.request("POST", NODES.path(), body=json.dumps(body).encode())
    applier = StatusApplier(transport)

    def a_condition(kind: str) -> dict[str, Any]:
        condition = {"type": kind, "status": "True", "reason": "Test", "message": ""}
        return {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}

    results = [
        await applier.apply_status(NODES, "adapter-n1", "agent", a_condition("Ready")),
        await applier.apply_status(NODES, "adapter-n1", "operator", a_condition("Accepted")),
    ]

    raw = await get_raw(transport, NODES, "adapter-n1")
    kinds = {condition["type"] for condition in json.loads(raw or b"")["status"]["conditions"]}
    await transport.request("DELETE", NODES.path("adapter-n1"))
    assert [result.outcome for result in results] == [Outcome.LANDED] * 2
    assert kinds == {"Ready", "Accepted"}
    missing = await applier.apply_status(NODES, "no-such", "agent", a_condition("Ready"))
    assert missing.outcome is Outcome.MISSING


async def test_a_restarted_api_server_is_survived_with_an_exact_state(
    control_plane: LocalControlPlane, transport: AiohttpTransport, fresh_namespace: str
) -> None:
    await create(transport, fresh_namespace, "before")

    async with following(transport) as (_, sink):
        await until(lambda: f"{fresh_namespace}/before" in sink.held)
        await asyncio.to_thread(control_plane.restart_apiserver)
        await create(transport, fresh_namespace, "after")

        await until(lambda: f"{fresh_namespace}/after" in sink.held, seconds=30)
        assert sink.held == await stored_versions(transport)


@dataclass
class SwallowingProxy:
    """Forwards bytes between a client and the server until told to swallow them all."""

    host: str
    port: int
    connections: list[list[bool]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        blackhole = [False]
        self.connections.append(blackhole)
        to_server = await asyncio.open_connection(self.host, self.port)
        with suppress(ConnectionError, asyncio.CancelledError):
            await asyncio.gather(
                self._pump(reader, to_server[1], blackhole),
                self._pump(to_server[0], writer, blackhole),
            )
        for side in (writer, to_server[1]):
            side.close()

    def swallow(self) -> None:
        """Go silent on every connection that is open now; new ones work."""
        for blackhole in self.connections:
            blackhole[0] = True

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, blackhole: list[bool]
    ) -> None:
        while data := await reader.read(65_536):
            if not blackhole[0]:
                writer.write(data)
                await writer.drain()
        writer.close()


async def test_a_watch_that_goes_quiet_on_an_open_connection_is_given_up_in_time(
    transport: AiohttpTransport, fresh_namespace: str
) -> None:
    server = urlsplit(transport.connection.server)
    assert server.hostname is not None
    assert server.port is not None
    proxy = SwallowingProxy(server.hostname, server.port)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    through = Connection(
        f"https://127.0.0.1:{port}",
        tls=transport.connection.tls,
        authorization=transport.connection.authorization,
    )

    async with (
        AiohttpTransport(through) as proxied,
        following(proxied, idle_seconds=1.0) as (watch, sink),
    ):
        await until(lambda: watch.position is not None)
        await asyncio.sleep(0.3)
        proxy.swallow()
        await create(transport, fresh_namespace, "unheard")

        await until(lambda: f"{fresh_namespace}/unheard" in sink.held, seconds=60)
        assert sink.completions == 1
    listener.close()


async def renew(store: LeaseStore, identity: str, revision: str = "") -> str:
    return await store.renew(
        identity, duration_seconds=15, revision=revision, admission_version=1, ready=True
    )


async def test_leases_show_who_is_there_and_pass_the_restore_check(
    transport: AiohttpTransport, kubectl: Kubectl
) -> None:
    kubectl("create", "namespace", SYSTEM_NAMESPACE, check=False)
    store = LeaseStore(transport, SYSTEM_NAMESPACE)
    verify = store.verifier("adapter/boot-1")

    first = await renew(store, "adapter/boot-1", revision="r1")
    second = await renew(store, "adapter/boot-1", revision="r2")
    await verify()

    records = {record.identity: record for record in await store.members()}
    assert int(second) > int(first)
    assert records["adapter/boot-1"].member.policy_revision == "r2"
    assert records["adapter/boot-1"].ready
    assert records["adapter/boot-1"].resource_version == second
    await store.release("adapter/boot-1")
    assert "adapter/boot-1" not in {record.identity for record in await store.members()}


async def test_dead_leases_are_removed(transport: AiohttpTransport, kubectl: Kubectl) -> None:
    kubectl("create", "namespace", SYSTEM_NAMESPACE, check=False)
    store = LeaseStore(transport, SYSTEM_NAMESPACE, dead_seconds=0.0)
    await renew(store, "adapter/dead")

    await store.members()

    assert "adapter/dead" not in {record.identity for record in await store.members()}


async def test_events_are_shown_by_describe(
    transport: AiohttpTransport, fresh_namespace: str, kubectl: Kubectl
) -> None:
    stored = await create(transport, fresh_namespace, "r")
    meter = Meter()
    poster = EventPoster(transport, meter, instance="adapter/boot-1")
    task = asyncio.create_task(poster.run())

    poster.post(
        kind="SandboxRequest",
        namespace=fresh_namespace,
        name="r",
        uid=stored["metadata"]["uid"],
        reason="Unschedulable",
        note="0/5 nodes are available: 5 insufficient cpu.\x1b[2J" + "x" * 4_000,
        action="Scheduling",
        type_="Warning",
    )

    def is_shown() -> bool:
        described = kubectl("-n", fresh_namespace, "describe", "sbr", "r").stdout
        return "5 insufficient cpu" in described and "cubesched.io/scheduler" in described

    await until(is_shown)
    task.cancel()
    assert b"cubesched_events_suppressed_total 0.0" in meter.exposition()


async def test_the_api_is_found_and_missing_rights_are_named(
    control_plane: LocalControlPlane, transport: AiohttpTransport
) -> None:
    rights = [Right("list", REQUESTS.plural, group="cubesched.io")]
    nobody = await connect(str(control_plane.client_kubeconfig("adapter-nobody", [])))

    await wait_for_api(transport, RESOURCES, timeout_seconds=5, on_wait=pytest.fail)

    assert await missing_rights(transport, rights) == []
    async with AiohttpTransport(nobody) as forbidden:
        assert await missing_rights(forbidden, rights) == [
            "list sandboxrequests in group cubesched.io"
        ]
        with pytest.raises(ApiError, match="403"):
            async with forbidden.stream(REQUESTS.path(), params={"watch": "1"}, idle_seconds=5):
                pass


async def test_a_user_can_be_impersonated(transport: AiohttpTransport) -> None:
    async with transport.acting_as("cubesched:node:n1", groups=["system:authenticated"]) as other:
        answer = await other.request(
            "POST",
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            body=b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}',
        )

    assert json.loads(answer.body)["status"]["userInfo"]["username"] == "cubesched:node:n1"
