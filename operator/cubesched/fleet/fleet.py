"""The fleet as one replica knows it: nodes, ledger, metrics and assumptions into the columns.

Everything here is synchronous and belongs to the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from typing_extensions import override

from cubesched.core.request import Request
from cubesched.core.snapshot import Snapshot
from cubesched.fleet.assumptions import Assumption, Assumptions
from cubesched.fleet.entries import Entry
from cubesched.fleet.freezing import Freezer
from cubesched.fleet.ledger import CREATING, Change, Ledger
from cubesched.fleet.listening import Listening, Silence
from cubesched.fleet.metrics import Moment, sweep_safety, take_reports
from cubesched.fleet.metrics_layout import Decoded
from cubesched.fleet.quarantine import Quarantine
from cubesched.fleet.supply import Supply


@dataclass(frozen=True, slots=True)
class Create:
    """A create in flight: where, of which template if any, and whether this replica reserved it."""

    node: str
    template: str
    is_own: bool


class Fleet(Supply):
    """Supply and demand of one cluster.

    `helped` is called when something may have become possible that was not: room freed, a node
    or its metrics better.
    """

    def __init__(self, *, monotonic: Callable[[], float], wall: Callable[[], float]) -> None:
        super().__init__()
        self.ledger = Ledger(observe=self._observed, monotonic=monotonic)
        self.on_request: Callable[[Change], None] = lambda _change: None
        self.helped: Callable[[], None] = lambda: None
        self.has_reports = False
        """Redis was read at least once since the nodes are known."""
        self._monotonic, self._wall = monotonic, wall
        self._assumptions = Assumptions()
        self._freezer = Freezer(self.columns)
        self._listening = Listening()
        self.quarantined: dict[str, Quarantine] = {}
        """Nodes left out because they refused, by name."""

    def frozen(self, request: Request) -> Snapshot:
        """Return this version of the fleet as it stays, for a decision that is to wait."""
        return self._freezer.frozen(request)

    def fits(self, entry: Entry) -> bool:
        """Evaluate one reservation at this point of the stream."""
        limits = self.limits(entry.node)
        return limits is not None and self.is_node_of(entry) and self.ledger.fits(entry, limits)

    # Assumptions

    def assume(self, uid: str, assumption: Assumption) -> None:
        """Plan room for `uid`; undone by `release`, or when the stream shows what became of it."""
        if uid in self._assumptions:
            self.release(uid)
        self._assumptions.add(uid, assumption)
        self._count_create(Create(assumption.node, assumption.template_id, is_own=True), 1)
        self._refresh(assumption.node)

    def release(self, uid: str) -> None:
        """Give up the plan for `uid`, if there is one."""
        assumption = self._assumptions.remove(uid)
        if assumption is None:
            return
        self._count_create(Create(assumption.node, assumption.template_id, is_own=True), -1)
        self._refresh(assumption.node)
        entry = self.ledger.entries.get(uid)
        is_there = entry is not None and entry.node == assumption.node
        is_left = assumption.resumes and entry is not None and entry.phase not in CREATING
        if is_left or not is_there:  # else the ledger holds the room now
            self.helped()

    @property
    def assumed(self) -> int:
        """How many plans stand; 0 at rest."""
        return len(self._assumptions)

    # The ledger's changes into rows

    def _observed(self, change: Change) -> None:
        before, after = change.before, change.after
        was, now = self._create_of(before), self._create_of(after)
        if was != now:
            self._count_create(was, -1)
            self._count_create(now, 1)
        self._refresh_touched()
        self.on_request(change)
        if before is not None and _frees(before, after):
            self.helped()

    def _create_of(self, entry: Entry | None) -> Create | None:
        """Return the create that is in flight for a request; None when none is."""
        if entry is None or not entry.node or entry.phase not in CREATING:
            return None
        return Create(entry.node, entry.template_id, is_own=entry.replica == self._replica)

    def _count_create(self, create: Create | None, number: int) -> None:
        row = None if create is None else self.columns.row_of.get(create.node)
        if create is None or row is None:
            return
        if create.template:
            self.columns.count_template(create.template, row, number)
        if create.is_own:
            self.snapshot.creating_own[row] += number

    def _refresh_touched(self) -> None:
        for node in self.ledger.take_touched():
            self._refresh(node)

    def _refresh(self, node: str) -> None:
        """Write what counts on `node` into its row; on the path of every event and decision."""
        row = self.columns.row_of.get(node)
        if row is None:
            return
        cells, used = self.columns.cells, self.ledger.usage(node)
        cells.write(row, used, self._assumptions.usage(node))
        self.columns.touch()
        if cells.unreadable[row] != (used.unreadable > 0):
            cells.unreadable[row] = used.unreadable > 0
            self._judge()

    # What the nodes ask for when they change

    @override
    def _now(self) -> float:
        return self._monotonic()

    @override
    def _row_added(self, node: str) -> None:
        self.columns.reported.heard_seconds[self.columns.row_of[node]] = self._listening.seconds
        self._refresh(node)
        for entry in self.ledger.on_node(node):
            self._count_create(self._create_of(entry), 1)
        for plan in self._assumptions.on_node(node):
            self._count_create(Create(node, plan.template_id, is_own=True), 1)

    @override
    def _row_removed(self, node: str) -> None:
        self.ledger.forget_node(node)

    @override
    def _supply_changed(self) -> None:
        self.sweep()
        self.helped()

    # Metrics and time

    def take_reports(self, *readings: Decoded) -> None:
        """Apply one pass of node reports, and let go of what their agents have let go of.

        More than one reading: the same nodes in other layouts, the layout that wins first.
        """
        moment = Moment(
            monotonic=self._monotonic(),
            wall=self._wall(),
            max_age_seconds=self.settings.guards.metrics_max_age_seconds,
            listed=self.ledger.exact,
            ignores_foreign=self.settings.ignore_redis_allocation,
        )
        stamps_before = self.columns.reported.stamp_ms.copy()
        applied = take_reports(self.columns, readings, moment)
        self._listening.take(self.columns.reported, stamps_before, monotonic=moment.monotonic)
        self.has_reports = self.nodes_listed
        if self.ledger.ghosts:
            self.ledger.release_ghosts(
                {
                    node: applied.item(self.columns.row_of[node])
                    for node in {ghost.node for ghost in self.ledger.ghosts.values()}
                    if node in self.columns.row_of
                }
            )
            self._refresh_touched()
        self.sweep()
        self.helped()

    def silent_nodes(self) -> dict[str, Silence]:
        """Return the nodes that others were heard beside for longer than reports are believed."""
        max_age = self.settings.guards.metrics_max_age_seconds
        return self._listening.silent(self.columns, longer_than_seconds=max_age)

    def quarantine(self, nodes: Mapping[str, Quarantine]) -> None:
        """Leave out these nodes, and no others, for what they have refused."""
        self.quarantined = dict(nodes)
        quarantined = self.columns.reported.quarantined
        quarantined[:] = False
        rows = [self.columns.row_of[node] for node in nodes if node in self.columns.row_of]
        quarantined[rows] = True
        self._judge()

    def sweep(self) -> None:
        """Find what time has changed: stale nodes, and ghosts past their time."""
        now, max_age = self._monotonic(), self.settings.guards.metrics_max_age_seconds
        if self.ledger.expire_ghosts(older_than=now - max_age):
            self._refresh_touched()
            self.helped()
        self._judge()
        self._forget_old_deletions()

    def _judge(self) -> None:
        """Write every node's safety code anew."""
        max_age = self.settings.guards.metrics_max_age_seconds
        if sweep_safety(self.columns, monotonic=self._monotonic(), max_age_seconds=max_age):
            self.helped()


def _frees(before: Entry, after: Entry | None) -> bool:
    """Tell whether anything on the node of `before` became free, if only a create in flight."""
    if not before.node:
        return False
    if after is None or after.node != before.node:
        return True
    return (
        (before.phase in CREATING and after.phase not in CREATING)
        or (bool(before.unreadable) and not after.unreadable)
        or after.weight != before.weight
    )
