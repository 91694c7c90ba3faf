"""The requests that name one node, as the stream and acknowledged writes show them.

Versions only rise: neither a late list nor a reply that comes after its event takes anything back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cubesched.agent.runtime import Order
from cubesched.fleet.entries import Entry, read_entry

_NOT_BEGUN = frozenset({"Reserved", "Bound"})
"""In any later phase, also one that a newer release writes, the machine may hold something."""


def order_of(entry: Entry) -> Order:
    """Return what the reservation of `entry` asks the machine to run."""
    return Order(
        sandbox=entry.sandbox,
        uid=entry.uid,
        reservation_id=entry.reservation_id,
        namespace=entry.namespace,
        name=entry.name,
        template_id=entry.template_id,
        weight=entry.weight,
        images=entry.images,
    )


def sandbox_of(entry: Entry) -> str:
    """Return the sandbox that `entry` entitles the machine to hold; empty when it does to none.

    One that is to be resumed is there in every phase, until it is known to be resumed or gone.
    """
    is_new = entry.phase in _NOT_BEGUN and not entry.resume
    return entry.sandbox if entry.node and not is_new else ""


def rewritten(entry: Entry, status: dict[str, Any], *, version: int) -> Entry:
    """Return `entry` as the server stores it after a status write that landed as `version`."""
    metadata = {
        "uid": entry.uid,
        "namespace": entry.namespace,
        "name": entry.name,
        "resourceVersion": str(version),
        "labels": entry.labels,
        "creationTimestamp": entry.created,
        "generation": entry.generation,
    }
    stored = {"metadata": metadata, "spec": msgspec.Raw(entry.spec_raw), "status": status}
    return read_entry(msgspec.json.encode(stored))


@dataclass(slots=True)
class Position:
    """How far one stream has been applied; nodes that share the stream share this."""

    version: int = 0
    is_listed: bool = False
    """No list is under way: what the stream has shown stands at one version of the server."""
    blind: set[str] = field(default_factory=set)
    """Stored objects, by uid, that cannot be read and may name any node."""

    def note(self, entry: Entry, *, is_there: bool = True) -> None:
        """Note whether an object that was just met can be read, and is still there."""
        if is_there and entry.unreadable and not entry.node:
            self.blind.add(entry.uid)
        else:
            self.blind.discard(entry.uid)

    def begin_list(self) -> None:
        """Note that the stream has ended and that all is listed anew."""
        self.is_listed = False
        self.blind.clear()


@dataclass(slots=True)
class OwnRequests:
    """A list-watch sink for one node; calls `changed(uid)` for every request that moved."""

    node: str
    changed: Callable[[str], None]
    listed: Callable[[], None]
    """Called after each complete list."""
    position: Position = field(default_factory=Position)
    caught_up: Callable[[], None] = lambda: None
    """Called when the stream has shown what an own write had changed before."""
    _entries: dict[str, Entry] = field(default_factory=dict)
    _list: list[Entry] = field(default_factory=list)
    """What the list under way has shown so far."""
    _left: dict[str, int] = field(default_factory=dict)
    """Those that left ahead of the stream, by an acknowledged write, and at which version."""
    _behind: dict[str, Entry] = field(default_factory=dict)
    """What the stream has last shown of those that an acknowledged write is ahead of."""

    @property
    def applied_version(self) -> int:
        """The version up to which everything has been met; 0 before the first list."""
        return self.position.version

    def get(self, uid: str) -> Entry | None:
        """Return the newest known state of a request that names this node."""
        return self._entries.get(uid)

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over all of them."""
        return iter(tuple(self._entries.values()))

    def streamed(self) -> Iterator[Entry]:
        """Iterate over all as the stream has shown them, at its position.

        What an acknowledged write has taken away is still there: so it was at that version.
        """
        return iter(tuple({**self._entries, **self._behind}.values()))

    # The stream

    def reset(self) -> None:
        """Begin a list."""
        self._list = []
        self.position.begin_list()

    def seen(self, raw: bytes) -> None:
        """Take one object of the list."""
        entry = read_entry(raw)
        self.position.note(entry)
        self.list_one(entry)

    def complete(self, version: int) -> None:
        """End the list: what it did not hold is gone."""
        if version < self.applied_version:
            self.forget()
        listed, self._list, self._behind = self._list, [], {}
        names = {entry.uid for entry in listed}
        for uid in [uid for uid in self._entries if uid not in names]:
            self.leave(uid, version)
        for entry in listed:
            self.meet(entry)
        self.progress(version)
        self.position.is_listed = True
        self.listed()

    def event(self, kind: str, raw: bytes, version: int) -> None:
        """Apply one event; DELETED also means that the request names another node now."""
        entry = read_entry(raw)
        self.position.note(entry, is_there=kind != "DELETED")
        if kind == "DELETED":
            self.leave(entry.uid, version)
        else:
            self.meet(entry)
        self.progress(version)

    def progress(self, version: int) -> None:
        """Take a bookmark, or the position of an event."""
        self.position.version = max(self.position.version, version)

    # Single steps, for a feed that serves several nodes

    def list_one(self, entry: Entry) -> None:
        """Take one object of the list under way."""
        self._list.append(entry)

    def meet(self, entry: Entry) -> None:
        """Take a state of one request that the stream shows."""
        newest = self._newest(entry.uid)
        if newest > entry.version:
            self._behind[entry.uid] = entry
            return
        self._catch_up(entry.uid)
        if newest < entry.version:
            self._take(entry)

    def _catch_up(self, uid: str) -> None:
        if self._behind.pop(uid, None) is not None:
            self.caught_up()

    def _newest(self, uid: str) -> int:
        known = self._entries.get(uid)
        return known.version if known else self._left.get(uid, 0)

    def _take(self, entry: Entry) -> None:
        known = self._entries.get(entry.uid)
        if entry.node == self.node or (entry.unreadable and known):
            self._entries[entry.uid] = entry
            self.changed(entry.uid)
        elif known:
            self._drop(entry.uid, entry.version)

    def leave(self, uid: str, version: int) -> None:
        """Drop a request that was deleted, or names another node, since `version`."""
        self._catch_up(uid)
        known = self._entries.get(uid)
        if known and known.version <= version:
            self._drop(uid, version)

    def acknowledge(self, entry: Entry) -> bool:
        """Take the reply to an own write; False when the request has left meanwhile."""
        known = self._entries.get(entry.uid)
        if known is None:
            return False
        if known.version < entry.version:
            self._behind.setdefault(entry.uid, known)
            self._take(entry)
        return entry.uid in self._entries

    def forget(self) -> None:
        """Drop all: the server was restored from a backup, so its versions start lower again."""
        known = list(self._entries)
        self._entries, self._left, self._behind, self.position.version = {}, {}, {}, 0
        for uid in known:
            self.changed(uid)

    def _drop(self, uid: str, version: int) -> None:
        del self._entries[uid]
        ahead = {gone: at for gone, at in self._left.items() if at > self.applied_version}
        self._left = {**ahead, uid: version} if version > self.applied_version else ahead
        self.changed(uid)
