"""The ledger: every SandboxRequest at one revision of the server, and what each node holds.

Events are applied in stream order, one by one, and nothing else changes it: an evaluation that
reads it sees the server's state at exactly one revision. Own plans and metrics live elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cubesched.fleet.entries import Entry, Weight, read_entry

CREATING = frozenset({"Reserved", "Bound", "Starting"})
"""Phases that count as a create in flight."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one node may hold."""

    cpu_millis: int
    memory_bytes: int
    disk_bytes: int
    sandboxes: int
    creates: int


@dataclass(slots=True)
class Usage:
    """What counts on one node; all fields are sums over entries."""

    cpu_millis: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    sandboxes: int = 0
    creating: int = 0
    unreadable: int = 0
    """Stored objects naming this node that cannot be read: the node counts as full."""

    def add(self, weight: Weight, *, creating: bool, sign: int = 1) -> None:
        """Count one request in (sign 1) or out (sign -1)."""
        self.cpu_millis += sign * weight.cpu_millis
        self.memory_bytes += sign * weight.memory_bytes
        self.disk_bytes += sign * weight.disk_bytes
        self.sandboxes += sign
        self.creating += sign * creating

    def within(self, limits: Limits) -> bool:
        """Tell whether all of this fits one node; no while anything of it cannot be read."""
        return (
            not self.unreadable
            and self.cpu_millis <= limits.cpu_millis
            and self.memory_bytes <= limits.memory_bytes
            and self.disk_bytes <= limits.disk_bytes
            and self.sandboxes <= limits.sandboxes
            and self.creating <= limits.creates
        )


NO_USAGE = Usage()
"""What counts where nothing does; never changed."""


@dataclass(frozen=True, slots=True)
class Ghost:
    """A deleted request whose sandbox may still run: counted until its node has let go."""

    node: str
    weight: Weight
    version: int
    """Revision of the deletion, or of the list that no longer held the request."""
    seen_monotonic: float
    unreadable: bool = False
    """What it weighs could not be read: its node counts as full."""


@dataclass(frozen=True, slots=True)
class Change:
    """One request before and after one event; None = not there."""

    uid: str
    before: Entry | None
    after: Entry | None
    version: int


@dataclass(slots=True)
class Ledger:
    """All requests by uid, usage by node; `observe` is called after each applied change."""

    observe: Callable[[Change], None]
    monotonic: Callable[[], float]
    entries: dict[str, Entry] = field(default_factory=dict)
    by_node: dict[str, dict[str, Entry]] = field(default_factory=dict)
    usages: dict[str, Usage] = field(default_factory=dict)
    ghosts: dict[str, Ghost] = field(default_factory=dict)
    _touched: set[str] = field(default_factory=set)
    version: int = 0
    exact: bool = False
    """The entries equal the server's at `version`; False while a list is incomplete."""
    blind: dict[str, str] = field(default_factory=dict)
    """Stored objects that name no readable node: while any stands nothing may be confirmed."""
    _seen: dict[str, Entry] | None = None

    def usage(self, node: str) -> Usage:
        """Return what counts on `node`; not to be changed."""
        return self.usages.get(node, NO_USAGE)

    def fits(self, entry: Entry, limits: Limits) -> bool:
        """Tell whether `entry` fits its node beside everything else that counts there now.

        The entry itself is in the usage. Asks for nothing that another replica could see
        differently at this revision: no metrics, no labels, no plugins.
        """
        used = self.usage(entry.node)
        return self.exact and not self.blind and used.within(limits)

    # The stream: a list (reset, seen..., complete), then events in order.

    def reset(self) -> None:
        """Begin a new list: the prefix ended, nothing may be evaluated until it is complete."""
        self.exact = False
        self._seen = {}

    def seen(self, raw: bytes) -> None:
        """Take one object of the list."""
        if self._seen is not None:
            entry = read_entry(raw)
            self._seen[entry.uid] = entry

    def complete(self, version: int) -> None:
        """End the list: what it did not hold is gone, everything else is as listed.

        The new prefix stands as a whole before anyone is told of it.
        """
        listed, self._seen = self._seen or {}, None
        before = self.entries
        self.version = version
        self._rebuild(listed.values())
        for uid, gone in before.items():
            # One last seen Reserved may have been bound, started and deleted since.
            if uid not in listed and gone.node:
                self._keep_ghost(gone, version)
        self.exact = True
        for uid in {**before, **listed}:
            self.observe(Change(uid, before.get(uid), listed.get(uid), version))

    def event(self, kind: str, raw: bytes, version: int) -> None:
        """Apply one event of the watch."""
        entry = read_entry(raw)
        before = self.entries.get(entry.uid)
        if before is not None:
            self._drop(before)
        self.version = version
        deleted = kind == "DELETED"
        if deleted:
            self._keep_ghost_if_bound(before or entry, version)
        else:
            self._put(entry)
        self.observe(Change(entry.uid, before, None if deleted else entry, version))

    def progress(self, version: int) -> None:
        """Take a bookmark: nothing changed up to `version`."""
        self.version = max(self.version, version)

    def take_touched(self) -> set[str]:
        """Return the nodes whose usage has changed since this was last asked."""
        # A fresh set each time: one that was large once is slow to empty ever after.
        touched, self._touched = self._touched, set()
        return touched

    # Ghosts

    def release_ghosts(self, applied: Mapping[str, int]) -> bool:
        """Drop the ghosts that their nodes' agents have let go of; True when any went.

        `applied`: the revision up to which each node's agent has acted.
        """
        return self._drop_ghosts(
            uid
            for uid, ghost in self.ghosts.items()
            if ghost.version <= applied.get(ghost.node, -1)
        )

    def expire_ghosts(self, *, older_than: float) -> bool:
        """Drop the ghosts seen before `older_than` (monotonic); True when any went."""
        return self._drop_ghosts(
            uid for uid, ghost in self.ghosts.items() if ghost.seen_monotonic < older_than
        )

    def forget_node(self, node: str) -> None:
        """Drop the ghosts of a node that was deleted: its machine is gone."""
        self._drop_ghosts(uid for uid, ghost in self.ghosts.items() if ghost.node == node)
        if node not in self.by_node:
            self.usages.pop(node, None)

    def _keep_ghost_if_bound(self, entry: Entry, version: int) -> None:
        """Keep counting one that a machine may hold; before Bound only what is to be resumed."""
        if entry.node and (entry.phase != "Reserved" or entry.resume):
            self._keep_ghost(entry, version)

    def _keep_ghost(self, entry: Entry, version: int) -> None:
        self._drop_ghosts({entry.uid} & self.ghosts.keys())
        ghost = Ghost(
            entry.node, entry.weight, version, self.monotonic(), unreadable=bool(entry.unreadable)
        )
        self.ghosts[entry.uid] = ghost
        self._count_ghost(ghost, 1)

    def _drop_ghosts(self, uids: Iterable[str]) -> bool:
        dropped = [self.ghosts.pop(uid) for uid in list(uids)]
        for ghost in dropped:
            self._count_ghost(ghost, -1)
        return bool(dropped)

    # Counting

    def _rebuild(self, entries: Iterable[Entry]) -> None:
        self._touched |= self.usages.keys()
        self.entries, self.by_node, self.usages, self.blind = {}, {}, {}, {}
        for ghost in self.ghosts.values():
            self._count_ghost(ghost, 1)
        for entry in entries:
            self._put(entry)

    def _put(self, entry: Entry) -> None:
        self.entries[entry.uid] = entry
        if entry.unreadable and not entry.node:
            self.blind[entry.uid] = f"{entry.key}: {entry.unreadable}"
        if entry.uid in self.ghosts:  # listed again: the deletion was of an older reading
            self._drop_ghosts([entry.uid])
        if entry.node:
            self.by_node.setdefault(entry.node, {})[entry.uid] = entry
            self._count(entry, 1)

    def _drop(self, entry: Entry) -> None:
        del self.entries[entry.uid]
        self.blind.pop(entry.uid, None)
        if entry.node:
            others = self.by_node[entry.node]
            del others[entry.uid]
            if not others:
                del self.by_node[entry.node]
            self._count(entry, -1)

    def _count(self, entry: Entry, sign: int) -> None:
        usage = self._usage_to_change(entry.node)
        if entry.unreadable:
            usage.unreadable += sign
        else:
            usage.add(entry.weight, creating=entry.phase in CREATING, sign=sign)

    def _count_ghost(self, ghost: Ghost, sign: int) -> None:
        usage = self._usage_to_change(ghost.node)
        if ghost.unreadable:
            usage.unreadable += sign
        else:
            usage.add(ghost.weight, creating=False, sign=sign)

    def _usage_to_change(self, node: str) -> Usage:
        self._touched.add(node)
        usage = self.usages.get(node)
        if usage is None:
            usage = self.usages[node] = Usage()
        return usage

    def on_node(self, node: str) -> Iterator[Entry]:
        """Iterate over the requests that count on `node`."""
        return iter(tuple(self.by_node.get(node, {}).values()))
