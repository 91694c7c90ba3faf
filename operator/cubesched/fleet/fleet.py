"""The fleet as one replica knows it: nodes, ledger, metrics and assumptions into the columns.

Everything here is synchronous and belongs to the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from cubesched.core.scheduler_settings import Settings
from cubesched.core.snapshot import Snapshot
from cubesched.fleet.columns import Columns
from cubesched.fleet.entries import Entry, Weight
from cubesched.fleet.ledger import CREATING, Change, Ledger, Limits, Usage
from cubesched.fleet.metrics import sweep_safety, take_reports
from cubesched.fleet.metrics_layout import Decoded, uid_bytes
from cubesched.fleet.nodes import NodeRecord, memory_reserved_bytes, read_node, scaled
from cubesched.fleet.rendezvous import owner

_LOG = logging.getLogger(__name__)
_NONE = Usage()


@dataclass(frozen=True, slots=True)
class Assumption:
    """Room this replica has planned for a request whose write the stream has not shown yet."""

    node: str
    weight: Weight
    template_id: str


class Fleet:
    """Supply and demand of one cluster.

    `helped` is called when something may have become possible that was not: room freed, a node
    or its metrics better.
    """

    def __init__(self, *, monotonic: Callable[[], float], wall: Callable[[], float]) -> None:
        self.columns = Columns()
        self.ledger = Ledger(observe=self._observed, monotonic=monotonic)
        self.records: dict[str, NodeRecord] = {}
        self.nodes_listed = False
        self.deleted_uids: dict[str, float] = {}
        """SandboxNodes seen deleted: uid to when (monotonic)."""
        self.on_request: Callable[[Change], None] = lambda _change: None
        self.helped: Callable[[], None] = lambda: None
        self._monotonic, self._wall = monotonic, wall
        self._settings = Settings()
        self._assumed: dict[str, Assumption] = {}
        self._assumed_on: dict[str, Usage] = {}
        self._seen_nodes: dict[str, NodeRecord] | None = None
        self._replica = ""
        self._members: tuple[str, ...] = ("",)

    @property
    def snapshot(self) -> Snapshot:
        """The columns as they stand; read them without yielding to the loop."""
        return self.columns.snapshot

    # Policy and membership

    def configure(self, settings: Settings) -> None:
        """Apply new limits and bounds to every row."""
        self._settings = settings
        self.snapshot.max_cpu_util_percent = settings.guards.max_cpu_util_percent
        self.snapshot.disk_usage_max_percent = settings.guards.disk_usage_max_percent
        for name, record in self.records.items():
            self._fill_limits(self.columns.row_of[name], record)
            self._refresh(name)
        self.sweep()
        self.columns.touch()
        self.helped()

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

    def complete(self, version: int) -> None:  # noqa: ARG002 - the sink's signature
        """End the list: nodes it did not hold are gone."""
        listed, self._seen_nodes = self._seen_nodes or {}, None
        for name in [name for name in self.records if name not in listed]:
            self._remove_node(self.records[name])
        fresh = [name for name in listed if name not in self.records]
        self.columns.insert(fresh)
        for record in listed.values():
            self._put_node(record)
        self.nodes_listed = True
        self.sweep()
        self.helped()

    def event(self, kind: str, raw: bytes, version: int) -> None:  # noqa: ARG002
        """Apply one event of the nodes' watch."""
        record = _read(raw)
        if record is None:
            return
        if kind == "DELETED":
            known = self.records.get(record.name)
            if known is not None:
                self._remove_node(known)
            return
        if record.name not in self.records:
            self.columns.insert([record.name])
        self._put_node(record)
        self.sweep()
        self.helped()

    def progress(self, version: int) -> None:
        """Take a bookmark."""

    def _put_node(self, record: NodeRecord) -> None:
        old = self.records.get(record.name)
        row = self.columns.row_of[record.name]
        if old is not None and old.uid != record.uid:
            self._remove_node(old)
            self.columns.insert([record.name])
            row = self.columns.row_of[record.name]
        self.records[record.name] = record
        uid = np.frombuffer(uid_bytes(record.uid), "<u8")
        self.columns.reported.uid_low[row], self.columns.reported.uid_high[row] = uid
        self.columns.fill_facts(row, record)
        self._fill_limits(row, record)
        self.snapshot.own[row] = self._is_own(record.name)
        self._refresh(record.name)
        if old is None or old.uid != record.uid:
            self._recount_templates(record.name)

    def _recount_templates(self, node: str) -> None:
        """Count the creates in flight that were known before their node's row was."""
        for entry in self.ledger.on_node(node):
            if entry.phase in CREATING:
                self._count_template(entry.template_id, node, 1)
        for plan in self._assumed.values():
            if plan.node == node:
                self._count_template(plan.template_id, node, 1)

    def _remove_node(self, record: NodeRecord) -> None:
        self.deleted_uids[record.uid] = self._monotonic()
        self.records.pop(record.name, None)
        self.columns.remove([record.name])
        self.ledger.forget_node(record.name)

    def _fill_limits(self, row: int, record: NodeRecord) -> None:
        view, settings = self.snapshot, self._settings
        guards = settings.guards
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

    def limits(self, node: str) -> Limits | None:
        """Return what `node` may hold by the objects seen so far; None for an unknown node."""
        row = self.columns.row_of.get(node)
        if row is None:
            return None
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

    def fits(self, entry: Entry) -> bool:
        """Evaluate one reservation at this point of the stream."""
        limits = self.limits(entry.node)
        return limits is not None and self.is_node_of(entry) and self.ledger.fits(entry, limits)

    # Assumptions

    def assume(self, uid: str, assumption: Assumption) -> None:
        """Plan room for `uid`; undone by `release`, or when the stream shows what became of it."""
        self._assumed[uid] = assumption
        usage = self._assumed_on.setdefault(assumption.node, Usage())
        usage.add(assumption.weight, creating=True)
        self._count_template(assumption.template_id, assumption.node, 1)
        self._refresh(assumption.node)

    def release(self, uid: str) -> None:
        """Give up the plan for `uid`, if there is one."""
        assumption = self._assumed.pop(uid, None)
        if assumption is None:
            return
        self._assumed_on[assumption.node].add(assumption.weight, creating=True, sign=-1)
        self._count_template(assumption.template_id, assumption.node, -1)
        self._refresh(assumption.node)
        self.helped()

    @property
    def assumed(self) -> int:
        """How many plans stand; 0 at rest."""
        return len(self._assumed)

    # The ledger's changes into rows

    def _observed(self, change: Change) -> None:
        before, after = change.before, change.after
        for entry, sign in ((before, -1), (after, 1)):
            if entry is not None and entry.node and entry.phase in CREATING:
                self._count_template(entry.template_id, entry.node, sign)
        nodes = {entry.node for entry in (before, after) if entry is not None and entry.node}
        for node in nodes:
            self._refresh(node)
        self.on_request(change)
        if before is not None and before.node and (after is None or after.node != before.node):
            self.helped()

    def _count_template(self, template: str, node: str, number: int) -> None:
        row = self.columns.row_of.get(node)
        if template and row is not None:
            self.columns.count_template(template, row, number)

    def _refresh(self, node: str) -> None:
        row = self.columns.row_of.get(node)
        if row is None:
            return
        view, reported = self.snapshot, self.columns.reported
        usage, plan = self.ledger.usage(node), self._assumed_on.get(node, _NONE)
        view.cpu_used_millis[row] = (
            usage.cpu_millis + plan.cpu_millis + self._foreign(reported.foreign_cpu_millis, row)
        )
        view.memory_used_bytes[row] = (
            usage.memory_bytes
            + plan.memory_bytes
            + self._foreign(reported.foreign_memory_bytes, row)
        )
        view.disk_used_bytes[row] = (
            usage.disk_bytes + plan.disk_bytes + self._foreign(reported.foreign_disk_bytes, row)
        )
        counted, creating = usage.sandboxes + plan.sandboxes, usage.creating + plan.creating
        reported.counted[row] = counted
        view.sandboxes[row] = max(counted, int(reported.sandboxes[row]))
        view.creating_ledger[row] = creating
        view.creating[row] = max(creating, int(reported.creating[row]))
        reported.unreadable[row] = usage.unreadable > 0
        self.columns.touch()

    def _foreign(self, column: np.ndarray[tuple[int], np.dtype[np.int64]], row: int) -> int:
        return int(column[row])

    # Metrics and time

    def take_reports(self, decoded: Decoded) -> None:
        """Apply one pass of node reports, and let go of what their agents have let go of."""
        if self._settings.ignore_redis_allocation:
            decoded = _without_foreign(decoded)
        believed = take_reports(
            self.columns,
            decoded,
            monotonic=self._monotonic(),
            wall=self._wall(),
            listed=self.ledger.exact,
        )
        haunted = {ghost.node for ghost in self.ledger.ghosts.values()}
        if haunted:
            for node, applied in believed:
                if node in haunted and self.ledger.release_ghosts(node, applied):
                    self._refresh(node)
        self.sweep()
        self.helped()

    def sweep(self) -> None:
        """Find what time has changed: stale nodes, and ghosts past their time."""
        now, max_age = self._monotonic(), self._settings.guards.metrics_max_age_seconds
        for node in self.ledger.expire_ghosts(older_than=now - max_age):
            self._refresh(node)
        if sweep_safety(self.columns, monotonic=now, max_age_seconds=max_age):
            self.helped()


def _read(raw: bytes) -> NodeRecord | None:
    try:
        return read_node(raw)
    except msgspec.MsgspecError as error:
        _LOG.error("a SandboxNode cannot be read and is left out: %s", error)
        return None


def _without_foreign(decoded: Decoded) -> Decoded:
    table = decoded.table.copy()
    for name in ("foreign_cpu_millis", "foreign_memory_bytes", "foreign_disk_bytes"):
        table[name] = 0
    return decoded._replace(table=table)
