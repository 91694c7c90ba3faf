"""Guard `cpu`: quota x over-commit - used >= requested, in millicores, and utilisation in bounds.

An exact fit is admitted, and nothing else: the comparison is of integers. The utilisation must be
below `guards.maxCpuUtilPercent`; where a node does not report it, that part is off.
Source: CubeMaster's guard of that name, which refuses an exact fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cubesched.core.amounts import millis
from cubesched.core.pipeline import Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Snapshot
from cubesched.plugins.builtin.tally import nearest_amount, nearest_below, nearest_of, tally


@dataclass(frozen=True, slots=True)
class Cpu:
    """Keeps nodes with room for the request's cpu that are not busy."""

    name: str = "cpu"

    def keep(self, fleet: Snapshot, request: Request) -> Bools:
        """Return which nodes stay; see the module."""
        return fleet.derived.cpu_room_millis >= request.cpu_millis

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        """Count what lacks room first, then what is busy."""
        return tally(
            ("insufficient cpu", _free(fleet, rows) < request.cpu_millis),
            (
                "cpu utilisation too high",
                fleet.cpu_util_percent[rows] >= fleet.max_cpu_util_percent,
            ),
        )

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Return the node with the most free, else the least busy one."""
        free = _free(fleet, rows)
        return nearest_of(
            nearest_amount(rows, needed=request.cpu_millis, free=free, show=millis),
            nearest_below(
                rows,
                value=fleet.cpu_util_percent[rows],
                bound=fleet.max_cpu_util_percent,
                text="cpu {value:.1f} % busy, must be below {bound:.1f} %",
            ),
        )


def _free(fleet: Snapshot, rows: Ints) -> Ints:
    return fleet.cpu_limit_millis[rows] - fleet.cpu_used_millis[rows]
