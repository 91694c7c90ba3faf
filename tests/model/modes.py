"""Who confirms in a schedule: what the operator says on nodes, and what Leases show of the modes.

The operator's handlers run outside of the replica under test, so the world says in their place what
requests may take on each node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from tests.model.loads import NodeLimits
from tests.model.resources import LEASES
from tests.model.store import Change, Key, Store
from tests.model.virtualtime import WORLD, spawn
from tests.model.writes import EPOCH

from cubesched.adapters.cluster.leaserecords import REVISION
from cubesched.api import NODES
from cubesched.api.timestamps import unix_seconds
from cubesched.scheduling.membership import LEASE_SECONDS

NODES_KEY = f"cubesched.io/v1alpha1/{NODES.plural}"
SLACK_SECONDS = 2.0
"""Stamps of reservations are whole seconds."""


@dataclass
class OperatorSays:
    """Writes `effectiveCapacity` into each SandboxNode a little after it lacks it."""

    store: Store
    limits: Mapping[str, NodeLimits]
    rng: Random
    release_ratio: float
    """Share that paused sandboxes give up."""
    _saying: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Listen to every commit."""
        self.store.listeners.append(self.committed)

    def committed(self, change: Change) -> None:
        """See whether a node lacks what is to be said of it."""
        is_node = change.key.resource == NODES_KEY and change.kind != "DELETED"
        if is_node and "effectiveCapacity" not in change.object.get("status", {}):
            self._saying.append(spawn(WORLD, self._say(change.key)))

    def change(self, release_ratio: float) -> None:
        """Say another share on every node."""
        self.release_ratio = release_ratio
        for key in list(self.store.objects):
            if key.resource == NODES_KEY:
                self._saying.append(spawn(WORLD, self._say(key)))

    async def _say(self, key: Key) -> None:
        await asyncio.sleep(self.rng.expovariate(2.0))
        obj = self.store.objects.get(key)
        if obj is None or key.name not in self.limits:
            return
        limits = self.limits[key.name]
        said = {
            "cpu": f"{limits.cpu_millis}m",
            "memory": str(limits.memory_bytes),
            "sandboxes": limits.sandboxes,
            "createConcurrency": limits.creates,
            "pausedResourceReleaseRatio": self.release_ratio,
        }
        status = {**obj.get("status", {}), "effectiveCapacity": said}
        if status != obj.get("status"):
            self.store.put(key, {**obj, "status": status}, "operator")


@dataclass
class LeaseHistory:
    """When all live Leases showed one revision that asks for no confirmation."""

    store: Store
    direct_revisions: set[str]
    _shown: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Each Lease's revision and when it was renewed."""
    _moments: list[float] = field(default_factory=list)
    _noted_until: float = 0.0

    def __post_init__(self) -> None:
        """Listen to every commit."""
        self.store.listeners.append(self.committed)

    def committed(self, change: Change) -> None:
        """Note what the Leases show now."""
        if change.key.resource != LEASES.resource:
            return
        self._note_expiries(change.at_seconds)
        if change.kind == "DELETED":
            self._shown.pop(change.key.name, None)
        else:
            notes = change.object["metadata"].get("annotations", {})
            self._shown[change.key.name] = notes.get(REVISION, ""), change.at_seconds
        if self._is_direct(change.at_seconds):
            self._moments.append(change.at_seconds)

    def _note_expiries(self, until: float) -> None:
        """Note what the live ones show each time one has expired: nothing is written then."""
        self._moments += self._expiries(until)
        self._noted_until = until

    def _expiries(self, until: float) -> list[float]:
        """Return when, since the last commit, one expired and left only such Leases."""
        ends = (renewed + LEASE_SECONDS for _, renewed in self._shown.values())
        return [at for at in ends if self._noted_until < at <= until and self._is_direct(at)]

    def _is_direct(self, at: float) -> bool:
        live = {
            revision for revision, renewed in self._shown.values() if at - renewed < LEASE_SECONDS
        }
        return len(live) == 1 and live <= self.direct_revisions

    def allows(self, reservation: Mapping[str, str]) -> bool:
        """Tell whether a direct binding may have been decided when its reservation says."""
        at = unix_seconds(reservation["time"]) - EPOCH.timestamp()
        earliest = at - LEASE_SECONDS - SLACK_SECONDS
        moments = [*self._moments, *self._expiries(at + 1.0)]  # the stamp is cut to whole seconds
        return any(earliest <= moment <= at + SLACK_SECONDS for moment in moments)
