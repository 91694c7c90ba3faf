"""Guard `node_safety`: the node is usable at all.

A node stays when its spec is valid, it is Ready, not unschedulable and not quarantined, its
metrics are fresh, it holds fewer sandboxes than its limit, and its cpu load does not exceed its
cpus. The load is looked at only where the node reports it; all the rest the fleet has already
judged and left in the `safety` column. Off for no node, and never configurable.
Source: CubeMaster's guard of that name; there a stale node was only logged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cubesched.core.pipeline import Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Safety, Snapshot
from cubesched.plugins.builtin.tally import nearest_below, nearest_of, tally

TEXTS = {
    Safety.INVALID_SPEC: "invalid node spec",
    Safety.NOT_READY: "node not ready",
    Safety.UNSCHEDULABLE: "node unschedulable",
    Safety.QUARANTINED: "quarantined after refusals",
    Safety.NEVER_REPORTED: "metrics never reported",
    Safety.STALE: "stale metrics",
    Safety.CLOCK_SKEW: "clock skew",
    Safety.UNREADABLE_REQUEST: "unreadable request on the node",
    Safety.AWAITING_REPORT: "awaiting a report",
}


@dataclass(frozen=True, slots=True)
class NodeSafety:
    """Keeps nodes that are safe to place on."""

    name: str = "node_safety"

    def keep(self, fleet: Snapshot, request: Request) -> Bools:
        """Return which nodes stay; see the module."""
        return fleet.derived.is_usable

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        """Count by the node's safety code, then by the two limits."""
        safety = fleet.safety[rows]
        return tally(
            *((text, safety == code) for code, text in TEXTS.items()),
            ("sandbox limit reached", fleet.sandboxes[rows] >= fleet.sandbox_limit[rows]),
            ("cpu load too high", np.ones(rows.shape, dtype=np.bool_)),
        )

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Return the node least above its sandbox limit, else its load; a code has no share."""
        rows = rows[fleet.safety[rows] == Safety.OK]
        return nearest_of(
            nearest_below(
                rows,
                value=fleet.sandboxes[rows],
                bound=fleet.sandbox_limit[rows],
                text="{value:.0f} of {bound:.0f} sandboxes",
            ),
            nearest_below(
                rows,
                value=fleet.cpu_load[rows],
                bound=fleet.cpus[rows],
                text="cpu load {value:.1f} on {bound:.0f} cpus",
            ),
        )
