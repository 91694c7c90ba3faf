"""One Lease per replica: who is alive, on which policy revision, by which admission rules.

A Lease is live while we see its renewTime change; clocks of different machines are never
compared. Nothing is locked by it and no placement's safety rests on it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from cubesched.adapters.clock import SystemClock
from cubesched.adapters.cluster.answers import error_of
from cubesched.adapters.cluster.leaserecords import (
    SELECTOR,
    LeaseRecord,
    StoredLease,
    StoredLeases,
    encode_lease,
    lease_name,
)
from cubesched.adapters.cluster.transport import Response, Transport
from cubesched.api.timestamps import unix_seconds
from cubesched.core.errors import Gone
from cubesched.fleet.rendezvous import Member

FAR_SECONDS: Final = 30.0
"""How far apart the clocks of two machines may be before a Lease at first sight looks dead."""
DEAD_SECONDS: Final = 3600.0
"""A Lease whose renewTime did not change for this long is removed by whoever sees it."""

_LEASE: Final = msgspec.json.Decoder(StoredLease)
_LEASES: Final = msgspec.json.Decoder(StoredLeases)


class LeaseStore:
    """The Leases of all replicas in one namespace."""

    def __init__(
        self,
        transport: Transport,
        namespace: str,
        *,
        clock: SystemClock | None = None,
        dead_seconds: float = DEAD_SECONDS,
    ) -> None:
        self._transport = transport
        self._namespace = namespace
        self._clock = clock or SystemClock()
        self._dead_seconds = dead_seconds
        self._acknowledged: dict[str, int] = {}
        self._rollbacks = 0
        self._seen: dict[str, tuple[str, float]] = {}

    async def renew(
        self,
        identity: str,
        *,
        duration_seconds: int,
        revision: str,
        admission_version: int,
        ready: bool,
    ) -> str:
        """Create or renew a replica's own Lease; return the version that was acknowledged."""
        stored = await self._get(identity)
        self._note_rollback(identity, stored)
        body = encode_lease(
            Member(identity, revision, admission_version),
            ready=ready,
            duration_seconds=duration_seconds,
            renewed_wall=self._clock.wall(),
            stored=stored,
        )
        response = await self._put_or_post(identity, body, exists=stored is not None)
        if response.status not in {200, 201}:
            # Refused only when somebody else wrote it in between; the next renewal is soon.
            raise error_of(response, f"renewing the Lease {lease_name(identity)}")
        version = _LEASE.decode(response.body).metadata.resource_version
        self._acknowledged[identity] = int(version)
        return version

    async def members(self) -> list[LeaseRecord]:
        """Return the live replicas, by identity; our clock starts when a Lease is first seen.

        Leases of the long dead are removed: a replica that restarts has a new identity.
        """
        records = await self._all()
        for record in records:
            if record.silent_seconds >= self._dead_seconds:
                await self._remove(record)
        return [record for record in records if record.is_live]

    async def _all(self) -> list[LeaseRecord]:
        response = await self._transport.request(
            "GET", self._path(), params={"labelSelector": SELECTOR}
        )
        if response.status != 200:
            raise error_of(response, "listing the replicas' Leases")
        now = self._clock.monotonic()
        records = [self._record(lease, now) for lease in _LEASES.decode(response.body).items]
        alive = {record.name for record in records}
        self._seen = {name: seen for name, seen in self._seen.items() if name in alive}
        return sorted(records, key=lambda record: record.identity)

    def _record(self, lease: StoredLease, now: float) -> LeaseRecord:
        """Judge one Lease by when we last saw its renewTime change.

        At first sight only its stamp can tell, which is another machine's clock: believed when it
        is far in the past, and soon set right by the next renewal if it was wrong.
        """
        name, renewed = lease.metadata.name, lease.spec.renew_time
        seen = self._seen.get(name)
        if seen is None:
            age = self._clock.wall() - unix_seconds(renewed)
            seen = self._seen[name] = (renewed, now - max(0.0, age - FAR_SECONDS))
        elif seen[0] != renewed:
            seen = self._seen[name] = (renewed, now)
        return LeaseRecord.of(lease, silent_seconds=now - seen[1])

    async def release(self, identity: str) -> None:
        """Give up a replica's own Lease, so that the others need not wait for it to expire."""
        self._acknowledged.pop(identity, None)
        response = await self._transport.request("DELETE", self._path(lease_name(identity)))
        if response.status not in {200, 202, 404}:
            raise error_of(response, f"releasing the Lease {lease_name(identity)}")

    async def _remove(self, record: LeaseRecord) -> None:
        """Delete a Lease unless it was renewed meanwhile; whoever sees it next tries again."""
        condition = {"uid": record.uid, "resourceVersion": record.resource_version}
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": condition}
        await self._transport.request(
            "DELETE", self._path(record.name), body=msgspec.json.encode(body)
        )

    def verifier(self, identity: str) -> Callable[[], Awaitable[None]]:
        """Return a check for one list-watch: it raises Gone when the store went back in time.

        That shows when our own Lease is older than its last acknowledged renewal, now or at any
        renewal since this check was last made.
        """
        known = self._rollbacks

        async def verify() -> None:
            nonlocal known
            acknowledged = self._acknowledged.get(identity)
            if acknowledged is not None:
                self._note_rollback(identity, await self._get(identity), acknowledged)
            if known != self._rollbacks:
                known = self._rollbacks
                raise Gone("our own Lease is older than its last renewal: restored from a backup?")

        return verify

    def _note_rollback(
        self, identity: str, stored: StoredLease | None, acknowledged: int | None = None
    ) -> None:
        """Remember that the store was found older than what it once acknowledged."""
        acknowledged = acknowledged or self._acknowledged.get(identity)
        if acknowledged is None:
            return
        if stored is None or int(stored.metadata.resource_version) < acknowledged:
            self._rollbacks += 1
            self._acknowledged.pop(identity, None)

    def _path(self, name: str = "") -> str:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self._namespace}/leases"
        return f"{path}/{name}" if name else path

    async def _get(self, identity: str) -> StoredLease | None:
        response = await self._transport.request("GET", self._path(lease_name(identity)))
        if response.status == 404:
            return None
        if response.status != 200:
            raise error_of(response, f"reading the Lease {lease_name(identity)}")
        return _LEASE.decode(response.body)

    async def _put_or_post(self, identity: str, body: bytes, *, exists: bool) -> Response:
        if exists:
            return await self._transport.request("PUT", self._path(lease_name(identity)), body=body)
        return await self._transport.request("POST", self._path(), body=body)
