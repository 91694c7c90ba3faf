"""How a replica's Lease is stored and read."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Self

import msgspec

from cubesched.api.timestamps import micro_time
from cubesched.fleet.rendezvous import Member

LABELS: Final = {
    "app.kubernetes.io/name": "cubesched",
    "app.kubernetes.io/component": "replica",
}
SELECTOR: Final = ",".join(f"{key}={value}" for key, value in LABELS.items())
REVISION: Final = "cubesched.io/policy-revision"
ADMISSION: Final = "cubesched.io/admission-version"
READY: Final = "cubesched.io/ready"


class LeaseMeta(msgspec.Struct, rename="camel", frozen=True):
    """metadata of a Lease."""

    name: str
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = {}


class LeaseSpec(msgspec.Struct, rename="camel", frozen=True):
    """spec of a Lease."""

    holder_identity: str = ""
    lease_duration_seconds: int = 15
    acquire_time: str = ""
    renew_time: str = ""


class StoredLease(msgspec.Struct, frozen=True):
    """One Lease as stored."""

    metadata: LeaseMeta
    spec: LeaseSpec = LeaseSpec()


class StoredLeases(msgspec.Struct, frozen=True):
    """A list of Leases."""

    items: list[StoredLease]


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """One replica as its Lease shows it, and since when it has been silent."""

    member: Member
    ready: bool
    silent_seconds: float
    """Since we saw renewTime change, on our own clock."""
    duration_seconds: int
    name: str
    uid: str
    resource_version: str

    @property
    def identity(self) -> str:
        """Return the replica's identity."""
        return self.member.identity

    @property
    def is_live(self) -> bool:
        """Tell whether the replica renewed within the time that it promised to."""
        return self.silent_seconds < self.duration_seconds

    @classmethod
    def of(cls, lease: StoredLease, *, silent_seconds: float) -> Self:
        """Read a stored Lease; an unreadable admission version counts as the first."""
        notes = lease.metadata.annotations
        admission = notes.get(ADMISSION, "1")
        return cls(
            member=Member(
                lease.spec.holder_identity,
                notes.get(REVISION, ""),
                int(admission) if admission.isdecimal() else 1,
            ),
            ready=notes.get(READY) == "true",
            silent_seconds=silent_seconds,
            duration_seconds=lease.spec.lease_duration_seconds,
            name=lease.metadata.name,
            uid=lease.metadata.uid,
            resource_version=lease.metadata.resource_version,
        )


def lease_name(identity: str) -> str:
    """Return the object name for an identity, which may hold characters that no name may."""
    return f"cubesched-{blake2b(identity.encode(), digest_size=10).hexdigest()}"


def encode_lease(
    member: Member,
    *,
    ready: bool,
    duration_seconds: int,
    renewed_wall: float,
    stored: StoredLease | None,
) -> bytes:
    """Return the Lease to write: a new one, or the stored one renewed at its version."""
    now = micro_time(renewed_wall)
    metadata: dict[str, Any] = {
        "name": lease_name(member.identity),
        "labels": LABELS,
        "annotations": {
            REVISION: member.policy_revision,
            ADMISSION: str(member.admission_version),
            READY: "true" if ready else "false",
        },
    }
    if stored is not None:
        metadata["uid"] = stored.metadata.uid
        metadata["resourceVersion"] = stored.metadata.resource_version
    return msgspec.json.encode(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": member.identity,
                "leaseDurationSeconds": duration_seconds,
                "acquireTime": now if stored is None else stored.spec.acquire_time or now,
                "renewTime": now,
            },
        }
    )
