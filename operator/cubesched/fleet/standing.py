"""What one node still has for what it holds already: whether something paused can be resumed."""

from __future__ import annotations

from typing import NamedTuple

from cubesched.core.snapshot import Safety
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.metrics import safety_for_held


class Standing(NamedTuple):
    """What a node has free, negative where too much is there, and whether it can be used."""

    safety: Safety
    """As for what it holds already: that it is cordoned, or quarantined, does not matter."""
    drain: str
    cpu_millis: int
    memory_bytes: int
    disk_bytes: int
    sandboxes: int
    creates: int

    def is_better_than(self, before: Standing) -> bool:
        """Tell whether anything that was not possible may be now."""
        amounts = zip(self[2:], before[2:], strict=True)
        is_other = self[:2] != before[:2]
        return is_other or any(now > then for now, then in amounts)


def standing_of(
    fleet: Fleet, node: str, *, monotonic: float, max_age_seconds: float
) -> Standing | None:
    """Return how `node` stands now, own plans and foreign use counted; None for an unknown one."""
    row, record = fleet.columns.row_of.get(node), fleet.records.get(node)
    if row is None or record is None:
        return None
    view, used = fleet.snapshot, fleet.ledger.usage(node)
    safety = Safety(int(view.safety[row]))
    if safety in {Safety.UNSCHEDULABLE, Safety.QUARANTINED}:
        safety = safety_for_held(
            fleet.columns, row, monotonic=monotonic, max_age_seconds=max_age_seconds
        )
    return Standing(
        safety=safety,
        drain=record.drain,
        cpu_millis=int(view.cpu_limit_millis[row] - view.cpu_used_millis[row]),
        memory_bytes=int(view.memory_limit_bytes[row] - view.memory_used_bytes[row]),
        disk_bytes=int(view.disk_limit_bytes[row]) - used.disk_bytes,
        sandboxes=int(view.sandbox_limit[row]) - used.sandboxes,
        creates=int(view.create_limit[row] - view.creating[row]),
    )
