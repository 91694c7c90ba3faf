"""One watch over all requests, handed out to the agents of many nodes in one process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cubesched.agent.requests import OwnRequests, Position
from cubesched.fleet.entries import Entry, read_entry


@dataclass(slots=True)
class SharedFeed:
    """A list-watch sink: tells each node what its own field-selected watch would tell it."""

    nodes: Mapping[str, OwnRequests]
    position: Position
    """The one that all of `nodes` were built with."""
    _node_of: dict[str, str] = field(default_factory=dict)
    """The node that each request was last seen on."""

    def reset(self) -> None:
        """Begin a list."""
        self._node_of = {}
        self.position.begin_list()
        for own in self.nodes.values():
            own.reset()

    def seen(self, raw: bytes) -> None:
        """Take one object of the list."""
        entry = read_entry(raw)
        self.position.note(entry)
        own = self.nodes.get(_named_by(entry))
        if own is not None:
            self._node_of[entry.uid] = own.node
            own.list_one(entry)

    def complete(self, version: int) -> None:
        """End the list."""
        if version < self.position.version:
            for own in self.nodes.values():
                own.forget()
        for own in self.nodes.values():
            own.complete(version)

    def event(self, kind: str, raw: bytes, version: int) -> None:
        """Apply one event, to the node it concerns and to the one it left."""
        entry = read_entry(raw)
        self.position.note(entry, is_there=kind != "DELETED")
        before = self._node_of.pop(entry.uid, "")
        now = _named_by(entry) if kind != "DELETED" else ""
        if before and before != now:
            self.nodes[before].leave(entry.uid, version)
        if now in self.nodes:
            self._node_of[entry.uid] = now
            self.nodes[now].meet(entry)
        self.progress(version)

    def progress(self, version: int) -> None:
        """Move the common position: what did not concern a node is applied there as well."""
        self.position.version = max(self.position.version, version)


def _named_by(entry: Entry) -> str:
    """Return status.nodeName, also of a finished request."""
    return entry.node or entry.status.node_name
