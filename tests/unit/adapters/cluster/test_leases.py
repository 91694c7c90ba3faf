"""Leases: liveness on our own clock, and the evidence that a store went back in time."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.unit.adapters.scripted import a_refusal
from typing_extensions import override

from cubesched.adapters.clock import SystemClock
from cubesched.adapters.cluster.leaserecords import lease_name
from cubesched.adapters.cluster.leases import LeaseStore
from cubesched.adapters.cluster.transport import Response
from cubesched.core.errors import ApiError, Gone
from cubesched.fleet.rendezvous import Member

PATH = "/apis/coordination.k8s.io/v1/namespaces/cubesched-system/leases"


class HandClock(SystemClock):
    """A clock that the test moves."""

    now = 1_000.0

    @override
    def wall(self) -> float:
        return 1_700_000_000.0 + self.now

    @override
    def monotonic(self) -> float:
        return self.now


@dataclass
class LeaseServer:
    """Stores Leases as the API server does, conditional writes included."""

    version: int = 10
    stored: dict[str, dict[str, Any]] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)

    async def request(
        self, method: str, path: str, *, body: bytes | None = None, **_: Any
    ) -> Response:
        name = path.removeprefix(PATH).lstrip("/")
        match method:
            case "GET":
                return self._get(name)
            case "DELETE":
                self.deleted.append(name)
                return Response(200 if self.stored.pop(name, None) else 404, b"{}")
            case _:
                return self._write(json.loads(body or b""), create=method == "POST")

    def _get(self, name: str) -> Response:
        if not name:
            return Response(200, json.dumps({"items": list(self.stored.values())}).encode())
        if name not in self.stored:
            return a_refusal(404)
        return Response(200, json.dumps(self.stored[name]).encode())

    def _write(self, lease: dict[str, Any], *, create: bool) -> Response:
        metadata = lease["metadata"]
        held = self.stored.get(metadata["name"])
        if create == (held is not None):
            return a_refusal(409)
        if held and held["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            return a_refusal(409)
        self.version += 1
        metadata.update(resourceVersion=str(self.version), uid=metadata.get("uid", "u"))
        self.stored[metadata["name"]] = lease
        return Response(201 if create else 200, json.dumps(lease).encode())

    def stream(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("Leases are not watched")


def a_store(server: LeaseServer, clock: HandClock | None = None) -> LeaseStore:
    return LeaseStore(server, "cubesched-system", clock=clock or HandClock())


async def renew(store: LeaseStore, identity: str = "pod/boot-1") -> str:
    return await store.renew(
        identity, duration_seconds=15, revision="r7", admission_version=2, ready=True
    )


async def test_a_lease_is_created_then_renewed_and_each_version_is_told() -> None:
    server = LeaseServer()
    store = a_store(server)

    assert [await renew(store), await renew(store)] == ["11", "12"]
    (lease,) = server.stored.values()
    assert lease["metadata"]["labels"]["app.kubernetes.io/name"] == "cubesched"
    assert lease["spec"]["holderIdentity"] == "pod/boot-1"
    assert lease["spec"]["renewTime"] == "2023-11-14T22:30:00.000000Z"


async def test_members_carry_what_their_leases_say() -> None:
    store = a_store(LeaseServer())
    await renew(store)

    (record,) = await store.members()

    assert record.member == Member("pod/boot-1", "r7", 2)
    assert record.ready


async def test_a_replica_is_live_while_we_see_it_renew_whatever_its_clock_says() -> None:
    server, mine = LeaseServer(), HandClock()
    store = a_store(server, mine)
    theirs = HandClock()
    theirs.now = -50_000_000.0
    other = a_store(server, theirs)

    await renew(other, "other")
    await store.members()
    for _ in range(5):
        theirs.now += 1
        await renew(other, "other")
        assert [record.identity for record in await store.members()] == ["other"]
        mine.now += 14

    mine.now += 1
    assert await store.members() == []


async def test_a_lease_that_a_dead_replica_left_is_not_taken_for_a_live_one() -> None:
    server, clock = LeaseServer(), HandClock()
    await renew(a_store(server, clock), "killed")
    clock.now += 60
    store = a_store(server, clock)

    assert await store.members() == []
    await renew(store, "killed")
    assert [record.identity for record in await store.members()] == ["killed"]


async def test_a_lease_renewed_a_moment_ago_is_live_at_first_sight() -> None:
    server, clock = LeaseServer(), HandClock()
    await renew(a_store(server, clock), "other")
    clock.now += 20

    assert [record.identity for record in await a_store(server, clock).members()] == ["other"]


async def test_a_released_lease_is_gone_at_once() -> None:
    server = LeaseServer()
    store = a_store(server)
    await renew(store)

    await store.release("pod/boot-1")
    await store.release("pod/boot-1")

    assert await store.members() == []
    assert server.stored == {}


async def test_long_dead_leases_are_removed_and_no_others() -> None:
    server, clock = LeaseServer(), HandClock()
    store = a_store(server, clock)
    await renew(store, "dead")
    await store.members()
    clock.now += 3_000
    await renew(store, "alive")
    await store.members()
    clock.now += 700

    await store.members()

    assert server.deleted == [lease_name("dead")]


async def test_a_healthy_store_passes_the_check() -> None:
    store = a_store(LeaseServer())
    verify = store.verifier("pod/boot-1")
    await verify()
    await renew(store)
    await verify()
    await renew(store)
    await verify()


@pytest.mark.parametrize("renewed_in_between", [False, True])
async def test_a_store_older_than_our_renewal_was_restored(renewed_in_between: bool) -> None:
    server = LeaseServer()
    store = a_store(server)
    requests, nodes = store.verifier("pod/boot-1"), store.verifier("pod/boot-1")
    await renew(store)
    backup = json.dumps(server.stored)
    await renew(store)

    server.stored, server.version = json.loads(backup), 500
    if renewed_in_between:
        await renew(store)

    for verify in (requests, nodes):
        with pytest.raises(Gone, match="restored"):
            await verify()
        await verify()


async def test_a_lease_that_is_missing_was_lost_in_a_restore() -> None:
    server = LeaseServer()
    store = a_store(server)
    verify = store.verifier("pod/boot-1")
    await renew(store)
    server.stored.clear()

    with pytest.raises(Gone):
        await verify()
    await renew(store)
    await verify()


async def test_a_server_that_refuses_is_an_error_that_names_the_lease() -> None:
    class Forbidding(LeaseServer):
        @override
        async def request(self, *_: Any, **__: Any) -> Response:
            return a_refusal(403, "leases is forbidden")

    with pytest.raises(ApiError, match=r"cubesched-.*403 leases is forbidden"):
        await renew(a_store(Forbidding()))
