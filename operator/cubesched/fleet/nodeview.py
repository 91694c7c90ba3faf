"""One node as its status shows it: exact numbers, and none of this replica's own plans.

What is allocated is what the guards count as used: the ledger, and what runs there beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from cubesched.core.snapshot import NO_LIMIT, Safety
from cubesched.fleet.drainage import Drainage, drainage, left_on
from cubesched.fleet.ledger import Limits, Usage
from cubesched.fleet.nodes import NodeRecord
from cubesched.fleet.overcommit import confirmed_use
from cubesched.fleet.quarantine import Quarantine
from cubesched.fleet.reported import Shrink

if TYPE_CHECKING:
    from cubesched.fleet.fleet import Fleet


@dataclass(frozen=True, slots=True)
class NodeView:
    """What there is to say of one node now."""

    record: NodeRecord
    limits: Limits
    """Quota (else capacity) times over-commit: what requests may take in all."""
    release_ratio: Fraction
    """Share of cpu and memory that a sandbox gives up while it is paused."""
    allocated: Usage
    confirmed: Usage
    """Without what is only reserved, deleted, or foreign."""
    shrunk_by: Shrink
    has_reports: bool
    """Reports were read at all since this replica knows the nodes; else silence says nothing."""
    silence: Safety
    """Why its metrics say nothing about now; OK when they do."""
    missing: int
    """Bits of the parts that its last report left out; see `fleet.unreported`."""
    reported_at: float | None
    """Unix time, on this replica's clock, at which its heartbeat was last seen to advance."""
    max_age_seconds: float
    """How old the last report may be."""
    safety: Safety
    """What the node_safety guard says of it."""
    drainage: Drainage | None
    """How far it is emptied, where it is to be drained."""
    quarantine: Quarantine | None = None
    """Why it is left out for a while, and until when; None when it is not."""

    @property
    def is_overcommitted(self) -> bool:
        """Whether confirmed requests exceed the limits that hold now."""
        return not fits(self.confirmed, self.limits)

    @property
    def has_disk_limit(self) -> bool:
        """Whether its system disk is limited at all."""
        return self.limits.disk_bytes < NO_LIMIT


def fits(used: Usage, limits: Limits) -> bool:
    """Tell whether `used` is within `limits`; creates in flight pass and are not asked for."""
    return (
        used.cpu_millis <= limits.cpu_millis
        and used.memory_bytes <= limits.memory_bytes
        and used.disk_bytes <= limits.disk_bytes
        and used.sandboxes <= limits.sandboxes
    )


def view_of(fleet: Fleet, name: str, *, silence: Safety, monotonic: float, wall: float) -> NodeView:
    """Return what there is to say of `name`, a node that is there and whose silence is known."""
    row, reported = fleet.columns.row_of[name], fleet.columns.reported
    record = fleet.records[name]
    own_ratio = record.paused_release_ratio
    age = monotonic - reported.advanced_monotonic.item(row)
    return NodeView(
        record=record,
        limits=fleet.limits_of(row),
        release_ratio=(
            fleet.settings.paused_resource_release_ratio if own_ratio is None else own_ratio
        ),
        allocated=_allocated(fleet, name, row),
        confirmed=confirmed_use(fleet.ledger, name),
        shrunk_by=Shrink(reported.shrunk_by.item(row)),
        has_reports=fleet.has_reports,
        silence=silence,
        missing=reported.missing.item(row),
        reported_at=wall - age if reported.stamp_ms.item(row) >= 0 else None,
        max_age_seconds=fleet.settings.guards.metrics_max_age_seconds,
        safety=Safety(fleet.snapshot.safety.item(row)),
        drainage=drainage_of(fleet, name),
        quarantine=fleet.quarantined.get(name),
    )


def drainage_of(fleet: Fleet, name: str) -> Drainage | None:
    """Return how far a node is emptied; None when it is not to be."""
    if name not in fleet.draining:
        return None
    return drainage(fleet.records[name].drain, left_on(fleet.ledger, name))


def _allocated(fleet: Fleet, name: str, row: int) -> Usage:
    reported, used = fleet.columns.reported, fleet.ledger.usage(name)
    return Usage(
        cpu_millis=max(used.cpu_millis, reported.allocated_cpu_millis.item(row))
        + reported.foreign_cpu_millis.item(row),
        memory_bytes=max(used.memory_bytes, reported.allocated_memory_bytes.item(row))
        + reported.foreign_memory_bytes.item(row),
        disk_bytes=used.disk_bytes + reported.foreign_disk_bytes.item(row),
        sandboxes=max(used.sandboxes, reported.sandboxes.item(row)),
        creating=max(used.creating, fleet.snapshot.creating_reported.item(row)),
    )
