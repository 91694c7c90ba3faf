"""What a person who drains a node asks the API server, with their own rights."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from cubesched.adapters.cluster.answers import error_of
from cubesched.adapters.cluster.listing import list_objects
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.cluster.writes import get_raw
from cubesched.api import NODES, REQUESTS
from cubesched.api.conditions import stored_conditions
from cubesched.api.timestamps import unix_seconds
from cubesched.core.errors import CubeschedError
from cubesched.fleet.drainage import UNSTARTED

FIELD_MANAGER: Final = "cubesched-drain"
MERGE_PATCH: Final = "application/merge-patch+json"
_NO_SUCH: Final = "there is no SandboxNode {!r}; `kubectl get sbn` shows those there are"
_OFF_NODE: Final = frozenset({"Pending", "Succeeded", "Failed"})


class NothingToDrain(CubeschedError):
    """There is no such node, or not any more, or it is not to be drained any more."""


@dataclass(frozen=True, slots=True)
class Node:
    """A SandboxNode as it is stored now."""

    name: str
    uid: str
    generation: int
    drain: str
    is_cordoned: bool
    conditions: Mapping[str, Mapping[str, Any]]

    @property
    def progress(self) -> Mapping[str, Any]:
        """What the operator says of this drain; empty while it says nothing of this generation."""
        found = self.conditions.get("Drained", {})
        return found if found.get("observedGeneration", 0) >= self.generation else {}

    @property
    def is_drained(self) -> bool:
        """Whether the operator says that nothing is left that should go."""
        return self.progress.get("status") == "True"

    @property
    def trouble(self) -> str:
        """Why its agent may not do its part; empty when nothing points to that."""
        ready, metrics = (
            self.conditions.get("Ready", {}),
            self.conditions.get("MetricsComplete", {}),
        )
        if ready.get("status") != "True":
            why = ready.get("message") or "it never reported Ready"
            return f"its agent does not act: {why}"
        if metrics.get("reason") in {"Stale", "NeverReported"}:
            return f"its agent may be dead: {metrics.get('message', '')}"
        return ""


@dataclass(frozen=True, slots=True)
class Left:
    """A request that names the node."""

    namespace: str
    name: str
    phase: str
    since: float | None
    """Unix time of its newest condition's change; None when it has none."""

    @property
    def why(self) -> str:
        """What it waits for."""
        return {
            "Reserved": "the operator moves it",
            "Bound": "the operator moves it",
            "Starting": "it is evicted once it runs",
            "Running": "the operator evicts a few at a time",
            "Paused": "the operator evicts a few at a time",
            "Evicting": "the node's agent has not stopped it yet",
        }.get(self.phase, "a phase that this release does not know")


@dataclass(frozen=True, slots=True)
class Cluster:
    """One API server and the node in question."""

    transport: Transport
    name: str

    async def node(self) -> Node:
        """Read the node; NothingToDrain when it is not there."""
        raw = await get_raw(self.transport, NODES, self.name)
        if raw is None:
            raise NothingToDrain(_NO_SUCH.format(self.name))
        return _node(msgspec.json.decode(raw))

    async def set_drain(self, drain: str) -> Node:
        """Set spec.drain and return the node as it then is."""
        body = msgspec.json.encode({"spec": {"drain": drain}})
        response = await self.transport.request(
            "PATCH",
            NODES.path(self.name),
            params={"fieldManager": FIELD_MANAGER},
            body=body,
            content_type=MERGE_PATCH,
        )
        if response.status == 404:
            raise NothingToDrain(_NO_SUCH.format(self.name))
        if response.status != 200:
            raise error_of(response, f"cannot set spec.drain of SandboxNode {self.name}")
        return _node(msgspec.json.decode(response.body))

    async def left(self) -> list[Left]:
        """Return the requests that count on the node, by namespace and name."""
        selector = f"status.nodeName={self.name}"
        stored = await list_objects(self.transport, REQUESTS, field_selector=selector)
        return [one for one in map(_left, stored) if one.phase not in _OFF_NODE]


def going(left: Sequence[Left], drain: str) -> list[Left]:
    """Return those that this drain moves."""
    return [one for one in left if drain == "All" or one.phase in UNSTARTED]


def by_phase(left: Sequence[Left]) -> Counter[str]:
    """Count them."""
    return Counter(one.phase for one in left)


def _node(stored: Mapping[str, Any]) -> Node:
    meta, spec = stored["metadata"], stored.get("spec", {})
    conditions = stored_conditions(stored.get("status", {}).get("conditions"))
    return Node(
        name=meta["name"],
        uid=meta["uid"],
        generation=meta.get("generation", 0),
        drain=spec.get("drain", "None"),
        is_cordoned=bool(spec.get("unschedulable", False)),
        conditions={str(one.get("type")): one for one in conditions},
    )


def _left(stored: Mapping[str, Any]) -> Left:
    status = stored.get("status", {})
    changes = [c.get("lastTransitionTime", "") for c in stored_conditions(status.get("conditions"))]
    newest = max(filter(None, changes), default="")
    meta = stored["metadata"]
    since = unix_seconds(newest) if newest else None
    return Left(meta["namespace"], meta["name"], status.get("phase", "Pending"), since)


def seconds_since(one: Left) -> float:
    """Return how long ago its newest condition has changed, by this machine's clock."""
    return 0.0 if one.since is None else time.time() - one.since
