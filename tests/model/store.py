"""What etcd is to the API server: one revision counter, every change in order, and its past.

Objects are plain decoded JSON that nobody changes in place. `audit` keeps every change that was
ever committed, also those that a restore took back; `changes` is the timeline that is true now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import orjson

Object = Mapping[str, Any]

FIRST_REVISION = 100


class Key(NamedTuple):
    """One object's place; keys sort as a list shows them."""

    resource: str
    """group/version/plural"""
    namespace: str
    name: str


@dataclass(frozen=True)
class Change:
    """One committed write; `object` is the new state, under DELETED the last one."""

    revision: int
    kind: str
    """ADDED, MODIFIED or DELETED."""
    key: Key
    object: Object
    previous: Object | None
    at_seconds: float
    by: str

    @cached_property
    def line(self) -> bytes:
        """The watch line of this change for a client without a field selector."""
        return event_line(self.kind, self.object)


def event_line(kind: str, obj: Object) -> bytes:
    """Return one line of a watch answer."""
    return orjson.dumps({"type": kind, "object": obj})


def at_revision(obj: Object, revision: int) -> Object:
    """Return the object stamped with `revision`."""
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}


@dataclass
class Store:
    """All objects, and how they came to be."""

    clock: Callable[[], float]
    revision: int = FIRST_REVISION
    compacted: int = FIRST_REVISION
    """States before this revision are gone."""
    objects: dict[Key, Object] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    """The change of revision r stands at index r - `first` - 1: no revision is without one."""
    audit: list[Change] = field(default_factory=list)
    listeners: list[Callable[[Change], None]] = field(default_factory=list)
    first: int = FIRST_REVISION

    def put(self, key: Key, obj: Object, by: str) -> Object:
        """Commit a new state of `key` and return it with its resourceVersion."""
        previous = self.objects.get(key)
        stamped = at_revision(obj, self.revision + 1)
        self.objects[key] = stamped
        self._commit("MODIFIED" if previous else "ADDED", key, stamped, previous, by)
        return stamped

    def delete(self, key: Key, by: str) -> Object:
        """Commit the removal of `key`; return its last state with the deletion's revision."""
        previous = self.objects.pop(key)
        stamped = at_revision(previous, self.revision + 1)
        self._commit("DELETED", key, stamped, previous, by)
        return stamped

    def _commit(self, kind: str, key: Key, obj: Object, previous: Object | None, by: str) -> None:
        self.revision += 1
        change = Change(self.revision, kind, key, obj, previous, self.clock(), by)
        self.changes.append(change)
        self.audit.append(change)
        for listener in self.listeners:
            listener(change)

    def since(self, revision: int) -> list[Change]:
        """Return the changes after `revision`, oldest first; none when it lies ahead."""
        return self.changes[max(0, revision - self.first) :]

    def state_at(self, revision: int) -> dict[Key, Object]:
        """Return all objects as they stood at `revision`."""
        state = dict(self.objects)
        for change in reversed(self.since(revision)):
            if change.previous is None:
                del state[change.key]
            else:
                state[change.key] = change.previous
        return state

    def compact(self, revision: int) -> None:
        """Forget the states before `revision`."""
        self.compacted = max(self.compacted, min(revision, self.revision))

    def restore(self, revision: int, *, bump: int = 0) -> None:
        """Go back to the backup taken at `revision`; `bump` raises the counter above it.

        The revisions in between are given out again, to other changes, unless bumped over.
        """
        self.objects = self.state_at(revision)
        if bump:
            self.changes, self.first = [], revision + bump
        else:
            del self.changes[revision - self.first :]
        self.revision = revision + bump
        self.compacted = self.revision if bump else min(self.compacted, revision)
