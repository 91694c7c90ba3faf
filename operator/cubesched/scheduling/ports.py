"""What scheduling needs of the world; adapters offer it without knowing who asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cubesched.core.writing import WriteResult
from cubesched.fleet.rendezvous import Member
from cubesched.policy.policyset import PolicySet


class Writer(Protocol):
    """Writes whole statuses of SandboxRequests, each conditional on a version."""

    async def put_status(
        self,
        *,
        namespace: str,
        name: str,
        uid: str,
        resource_version: str,
        status: Mapping[str, Any],
        priority: int = 1,
    ) -> WriteResult:
        """Write, or tell why not; lower `priority` goes first when many wait."""
        ...


class Remover(Protocol):
    """Deletes SandboxRequests, each in one version of one object."""

    async def delete(
        self, *, namespace: str, name: str, uid: str, resource_version: str
    ) -> WriteResult:
        """Delete, or tell why not."""
        ...


class Meter(Protocol):
    """Counts and times; names and labels are those of the metrics table."""

    def inc(self, name: str, value: float = 1.0, **labels: str) -> None:
        """Add to a counter."""
        ...

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Record one value in a histogram."""
        ...

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        ...


class Events(Protocol):
    """Posts Kubernetes Events about SandboxRequests; never raises, may drop when too many."""

    def post(
        self,
        *,
        kind: str,
        namespace: str,
        name: str,
        uid: str,
        reason: str,
        note: str,
        action: str,
        type_: str = "Normal",
    ) -> None:
        """Queue one event."""
        ...


class Policy(Protocol):
    """The running policy set."""

    @property
    def current(self) -> PolicySet | None:
        """The set that new attempts lease; None when nothing valid was ever compiled."""
        ...


class Clock(Protocol):
    """Both clocks in seconds."""

    def monotonic(self) -> float:
        """Never goes back; for ages and deadlines."""
        ...

    def wall(self) -> float:
        """Unix time; for stamps that people and other machines read."""
        ...


class LiveReplica(Protocol):
    """One replica whose Lease is alive."""

    @property
    def member(self) -> Member:
        """Who it is, and what it runs."""
        ...


class Leases(Protocol):
    """Where replicas tell each other that they live."""

    async def renew(
        self,
        identity: str,
        *,
        duration_seconds: int,
        revision: str,
        admission_version: int,
        ready: bool,
    ) -> str:
        """Renew this replica's Lease; return the acknowledged resourceVersion."""
        ...

    async def members(self) -> Sequence[LiveReplica]:
        """Return the replicas whose Leases are alive by this process's own clock."""
        ...

    async def release(self, identity: str) -> None:
        """Give this replica's Lease up."""
        ...
