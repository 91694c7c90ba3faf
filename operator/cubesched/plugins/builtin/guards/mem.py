"""Guard `mem`: quota x over-commit - used >= requested, in bytes, and the machine has it free.

An exact fit is admitted, and nothing else: quota is compared as integers. The second part asks
memory - really used >= requested + `guards.memoryReserved`; where a node does not report what is
really used, that part is off. It compares a measurement, as doubles (exact up to 8 PiB).
Source: CubeMaster's guard of that name, which refuses an exact fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cubesched.core.amounts import binary_bytes
from cubesched.core.pipeline import Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Floats, Ints, Snapshot
from cubesched.plugins.builtin.tally import nearest_amount, nearest_of, tally


@dataclass(frozen=True, slots=True)
class Mem:
    """Keeps nodes with room for the request's memory, by quota and in fact."""

    name: str = "mem"

    def keep(self, fleet: Snapshot, request: Request) -> Bools:
        """Return which nodes stay; see the module."""
        return fleet.derived.memory_room_bytes >= request.memory_bytes

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        """Count what lacks quota first, then what lacks real memory."""
        return tally(
            ("insufficient memory", _free(fleet, rows) < request.memory_bytes),
            (
                "insufficient free memory on the machine",
                _really_free(fleet, rows) < request.memory_bytes,
            ),
        )

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Return the node with the most quota free, else with the most memory free."""
        needed = request.memory_bytes
        return nearest_of(
            nearest_amount(rows, needed=needed, free=_free(fleet, rows), show=binary_bytes),
            nearest_amount(
                rows,
                needed=needed,
                free=_really_free(fleet, rows),
                show=binary_bytes,
                where=" on the machine beside its reserve",
            ),
        )


def _free(fleet: Snapshot, rows: Ints) -> Ints:
    return fleet.memory_limit_bytes[rows] - fleet.memory_used_bytes[rows]


def _really_free(fleet: Snapshot, rows: Ints) -> Floats:
    unreserved = fleet.memory_capacity_bytes[rows] - fleet.memory_reserved_bytes[rows]
    return unreserved - fleet.memory_really_used_bytes[rows]
