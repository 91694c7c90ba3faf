"""The nodes as the server holds them, written into rows: what they may hold and who they are."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence

import msgspec
import numpy as np

from cubesched.core.derived import derive
from cubesched.core.scheduler_settings import Settings
from cubesched.core.snapshot import Snapshot
from cubesched.fleet.columns import Columns
from cubesched.fleet.entries import Entry
from cubesched.fleet.ledger import Limits
from cubesched.fleet.metrics_layout import uid_bytes
from cubesched.fleet.nodes import NodeRecord, memory_reserved_bytes, read_node, scaled
from cubesched.fleet.rendezvous import owner
from cubesched.fleet.reported import Shrink
from cubesched.fleet.shown import LOOK_AGAIN

_LOG = logging.getLogger(__name__)
DELETED_NODE_SECONDS = 3600.0
"""How long a deleted SandboxNode is remembered; later its absence alone speaks."""


class Supply(ABC):
    """All SandboxNodes, by name; a sink for their list-watch."""

    def __init__(self) -> None:
        self.columns = Columns()
        self.records: dict[str, NodeRecord] = {}
        self.draining: set[str] = set()
        """The nodes that are to be emptied."""
        self.readdressed = 0
        """How often a node's address has become known, or another."""
        self.nodes_listed = False
        self.nodes_version = 0
        """Revision of the server up to which the nodes are known."""
        self.deleted_uids: dict[str, float] = {}
        """SandboxNodes seen deleted lately: uid to when (monotonic)."""
        self.settings = Settings()
        """The running policy's, as far as nodes are concerned."""
        self._seen_nodes: dict[str, NodeRecord] | None = None
        self._replica = ""
        self._members: tuple[str, ...] = ("",)

    @abstractmethod
    def _now(self) -> float:
        """Return the monotonic time."""

    @abstractmethod
    def _row_added(self, node: str) -> None:
        """Write what else is known of a node into its new row."""

    @abstractmethod
    def _row_removed(self, node: str) -> None:
        """Forget what was known of a machine that is gone."""

    @abstractmethod
    def _supply_changed(self) -> None:
        """Look again at what depends on the nodes."""

    @property
    def snapshot(self) -> Snapshot:
        """The columns as they stand; read them without yielding to the loop."""
        return self.columns.snapshot

    # Policy and membership

    def configure(self, settings: Settings) -> None:
        """Apply new limits and bounds to every row, where they are new."""
        if settings == self.settings:
            return
        self.settings = settings
        self.snapshot.max_cpu_util_percent = settings.guards.max_cpu_util_percent
        self.snapshot.disk_usage_max_percent = settings.guards.disk_usage_max_percent
        for name, record in self.records.items():
            self._fill_limits(self.columns.row_of[name], record, Shrink.SETTINGS)
        derive(self.snapshot)
        self.columns.touch_facts()
        self._supply_changed()

    def share(self, *, replica: str, members: Sequence[str]) -> None:
        """Mark the nodes whose rendezvous hash falls to `replica`."""
        self._replica, self._members = replica, tuple(members)
        self.snapshot.own[:] = [self._is_own(name) for name in self.columns.names]
        self.columns.touch()

    def _is_own(self, name: str) -> bool:
        return owner(name, self._members) == self._replica

    # Nodes: a Sink for their list-watch

    def reset(self) -> None:
        """Begin a new list of nodes; the old ones stand until it is complete."""
        self._seen_nodes = {}

    def seen(self, raw: bytes) -> None:
        """Take one node of the list."""
        record = _read(raw)
        if record is not None and self._seen_nodes is not None:
            self._seen_nodes[record.name] = record

    def complete(self, version: int) -> None:
        """End the list: nodes it did not hold are gone."""
        listed, self._seen_nodes = self._seen_nodes or {}, None
        self.nodes_version = version
        self._remove_nodes(
            [old for old in self.records.values() if not _is_same(old, listed.get(old.name))]
        )
        self.columns.insert([name for name in listed if name not in self.records])
        for record in listed.values():
            self._put_node(record)
        derive(self.snapshot)
        self.nodes_listed = True
        self._supply_changed()

    def event(self, kind: str, raw: bytes, version: int) -> None:
        """Apply one event of the nodes' watch."""
        self.nodes_version = version
        record = _read(raw)
        if record is None:
            return
        known = self.records.get(record.name)
        if known is not None and (kind == "DELETED" or not _is_same(known, record)):
            self._remove_nodes([known])
        if kind == "DELETED" or known == record:
            return
        if record.name not in self.records:
            self.columns.insert([record.name])
        self._put_node(record)
        row = self.columns.row_of[record.name]
        derive(self.snapshot, slice(row, row + 1))
        self._supply_changed()

    def progress(self, version: int) -> None:
        """Take a bookmark: nothing changed up to `version`."""
        self.nodes_version = max(self.nodes_version, version)

    def _put_node(self, record: NodeRecord) -> None:
        """Write a node into its row, unless it stands there as it is."""
        known = self.records.get(record.name)
        if known == record:
            return
        row = self.columns.row_of[record.name]
        self.readdressed += record.address != (known.address if known else "")
        self.records[record.name] = record
        (self.draining.discard if record.drain == "None" else self.draining.add)(record.name)
        self.columns.fill_facts(row, record)
        self._fill_limits(row, record, Shrink.UNSEEN if known is None else Shrink.CAPACITY)
        if known is None:
            uid = np.frombuffer(uid_bytes(record.uid), "<u8")
            self.columns.reported.uid_low[row], self.columns.reported.uid_high[row] = uid
            self.snapshot.own[row] = self._is_own(record.name)
            self._row_added(record.name)
        self.columns.touch_facts()

    def _remove_nodes(self, records: Sequence[NodeRecord]) -> None:
        if not records:
            return
        now = self._now()
        self.columns.remove([record.name for record in records])
        for record in records:
            self.deleted_uids[record.uid] = now
            del self.records[record.name]
            self.draining.discard(record.name)
            self._row_removed(record.name)

    def _fill_limits(self, row: int, record: NodeRecord, cause: Shrink) -> None:
        """Write what a node may hold, and note by what it may hold less than before."""
        view, settings = self.snapshot, self.settings
        guards = settings.guards
        before = self._limits_at(row)
        view.cpu_limit_millis[row] = scaled(record.cpu_millis, settings.overcommit_cpu)
        view.memory_limit_bytes[row] = scaled(record.memory_bytes, settings.overcommit_memory)
        view.disk_limit_bytes[row] = record.disk_bytes
        view.sandbox_limit[row] = (
            guards.max_sandboxes_per_node if record.sandboxes is None else record.sandboxes
        )
        view.create_limit[row] = (
            guards.create_concurrency_limit if record.creates is None else record.creates
        )
        view.cpus[row] = record.capacity_cpu_millis / 1000.0
        view.memory_capacity_bytes[row] = record.capacity_memory_bytes
        view.memory_reserved_bytes[row] = memory_reserved_bytes(record, settings)
        after = self._limits_at(row)
        if cause and any(now < was for was, now in zip(before, after, strict=True)):
            self.columns.reported.shrunk_by[row] = cause
        self.columns.shown.verdicts[row] = LOOK_AGAIN

    def _limits_at(self, row: int) -> tuple[int, ...]:
        view = self.snapshot
        return (
            view.cpu_limit_millis.item(row),
            view.memory_limit_bytes.item(row),
            view.disk_limit_bytes.item(row),
            view.sandbox_limit.item(row),
        )

    def limits(self, node: str) -> Limits | None:
        """Return what `node` may hold by the objects seen so far; None for an unknown node."""
        row = self.columns.row_of.get(node)
        return None if row is None else self.limits_of(row)

    def limits_of(self, row: int) -> Limits:
        """Return what the node of this row may hold."""
        view = self.snapshot
        return Limits(
            cpu_millis=int(view.cpu_limit_millis[row]),
            memory_bytes=int(view.memory_limit_bytes[row]),
            disk_bytes=int(view.disk_limit_bytes[row]),
            sandboxes=int(view.sandbox_limit[row]),
            creates=int(view.create_limit[row]),
        )

    def is_node_of(self, entry: Entry) -> bool:
        """Tell whether the node object that `entry` was reserved on still stands (by uid)."""
        record = self.records.get(entry.status.node_name)
        return record is not None and entry.node_uid in {"", record.uid}

    def _forget_old_deletions(self) -> None:
        oldest = self._now() - DELETED_NODE_SECONDS
        for uid, deleted_at in list(self.deleted_uids.items()):
            if deleted_at > oldest:
                break
            del self.deleted_uids[uid]


def _is_same(known: NodeRecord, now: NodeRecord | None) -> bool:
    """Tell whether a node still is the object it was: the name alone says nothing."""
    return now is not None and now.uid == known.uid


def _read(raw: bytes) -> NodeRecord | None:
    try:
        return read_node(raw)
    except msgspec.MsgspecError as error:
        _LOG.error("a SandboxNode cannot be read and is left out: %s", error)
        return None
