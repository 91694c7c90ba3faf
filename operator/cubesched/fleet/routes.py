"""Routing records: where a sandbox is reached, for proxies that look it up in Redis.

A record is filed under the sandbox's name, which is made of a uid that the server gave and an id
that a replica drew: never of text that a client or an agent chose.
"""

from __future__ import annotations

from typing import Final

import msgspec

from cubesched.fleet.entries import Entry
from cubesched.fleet.nodes import NodeRecord

_RESUMING: Final = frozenset({"Reserved", "Bound", "Starting"})


class Route(msgspec.Struct, rename="camel", frozen=True):
    """One record, stored as JSON; a field may be added, none changes its meaning."""

    state: str
    """Running, or Paused: it is there, and answers once it is resumed."""
    node: str
    address: str
    """The node's own; empty when its agent does not say."""
    endpoint: str
    """As the node's agent gave it; empty while it is paused."""
    namespace: str
    name: str
    uid: str
    created_at: str
    """When the request was created."""


class _Place(msgspec.Struct, frozen=True):
    endpoint: str = ""


_PLACE: Final = msgspec.json.Decoder(_Place)
_ENCODER: Final = msgspec.json.Encoder()


def sandbox_of(entry: Entry) -> str:
    """Return the sandbox that is reached under `entry`; empty when none is."""
    return entry.sandbox if _state(entry) else ""


def packed_route(entry: Entry, node: NodeRecord | None) -> bytes:
    """Return the record of a sandbox that is reached under `entry`, as it is stored."""
    state = _state(entry)
    route = Route(
        state=state,
        node=entry.node,
        address=node.address if node else "",
        endpoint=_PLACE.decode(entry.status_raw).endpoint if state == "Running" else "",
        namespace=entry.namespace,
        name=entry.name,
        uid=entry.uid,
        created_at=entry.created,
    )
    return _ENCODER.encode(route)


def _state(entry: Entry) -> str:
    """Return what a proxy is told of it; empty when there is nothing to be reached."""
    if entry.phase == "Running":
        return "Running"
    is_paused = entry.phase == "Paused" or (entry.phase in _RESUMING and entry.resume)
    return "Paused" if is_paused else ""
