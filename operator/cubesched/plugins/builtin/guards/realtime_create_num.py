"""Guard `realtime_create_num`: creates in flight < the node's limit.

In flight is the larger of what the ledger counts (Reserved, Bound, Starting, and this replica's
assumptions) and what the node reports; both are cluster-wide, so replicas are never multiplied in.
Source: CubeMaster's guard of that name, where each master multiplies its own count by the masters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cubesched.core.pipeline import Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Snapshot
from cubesched.plugins.builtin.tally import nearest_below


@dataclass(frozen=True, slots=True)
class RealtimeCreateNum:
    """Keeps nodes that can start one more create now."""

    name: str = "realtime_create_num"

    def keep(self, fleet: Snapshot, request: Request) -> Bools:
        """Return which nodes stay; see the module."""
        return fleet.derived.can_create

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        """Count them all under one text."""
        return [("too many creates in flight", int(rows.size))]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Return the node least above its limit."""
        return nearest_below(
            rows,
            value=fleet.creating[rows],
            bound=fleet.create_limit[rows],
            text="{value:.0f} of {bound:.0f} creates in flight",
        )
