"""What the handlers need of the rest of the operator; the composition root offers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import aiohttp

from cubesched.api import Resource
from cubesched.core.writing import WriteResult
from cubesched.fleet.rendezvous import Member


class StatusApplier(Protocol):
    """Writes one manager's part of a status by server-side apply."""

    async def apply_status(
        self,
        resource: Resource,
        name: str,
        field_manager: str,
        status: Mapping[str, Any],
        *,
        uid: str = "",
        priority: int = ...,
    ) -> WriteResult:
        """Make `status` the whole of what the manager says; with `uid`, of that object only.

        Writes of a lower `priority` go first.
        """
        ...


class PolicyRecords(Protocol):
    """The last sets that ran, kept where every replica finds them."""

    async def newest_first(self) -> list[tuple[str, Any]]:
        """Return (name, data) of each record; raises ApiError."""
        ...

    async def keep(self, name: str, data: Mapping[str, Any]) -> None:
        """Make a record the newest, unless it is; raises ApiError."""
        ...


class Membership(Protocol):
    """The live replicas, as this one sees them."""

    def owns(self, uid: str) -> bool:
        """Tell whether this replica is the one that writes the object's status."""
        ...

    def members(self) -> Sequence[Member]:
        """Return every live replica, this one included, with the revision it runs."""
        ...


class EventSink(Protocol):
    """Work that an event only announces; the state itself is read anew."""

    def poke(self) -> None:
        """Note that something changed; returns at once."""
        ...


class NodeObserver(Protocol):
    """Follows SandboxNodes as they pass by."""

    def observe(self, body: Mapping[str, Any]) -> None:
        """Take one node as it now is; returns at once."""
        ...

    def forget(self, uid: str) -> None:
        """Drop a node that is gone."""
        ...


class ClusterConnection(Protocol):
    """Where the API server is, and sessions that authenticate themselves."""

    @property
    def server(self) -> str:
        """URL of the API server."""
        ...

    def new_session(self) -> aiohttp.ClientSession:
        """Return a session of the caller's own: whoever gets it closes it."""
        ...


class App(Protocol):
    """The operator as its handlers see it."""

    @property
    def connection(self) -> ClusterConnection:
        """For Kopf's own watches."""
        ...

    @property
    def policy_reconciler(self) -> EventSink:
        """Poked by every event of a SchedulerProfile or SchedulerConfig."""
        ...

    @property
    def node_statuses(self) -> NodeObserver:
        """Shown every SandboxNode."""
        ...

    async def on_started(self) -> None:
        """Start the background tasks, `policy_reconciler.run()` and `node_statuses.run()` too."""
        ...

    async def on_stopping(self) -> None:
        """Cancel and await every task that `on_started` started."""
        ...
