"""Which nodes' confirmed requests exceed the limits that hold now.

A reservation that is not judged yet may still move, and what was deleted is no request any more:
neither counts here, while the ledger counts both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cubesched.core.snapshot import Bools, Ints
from cubesched.fleet.columns import Columns
from cubesched.fleet.ledger import Ledger, Usage


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What confirmed requests take on each node, and where that is too much.

    The amounts are exact where `is_over` holds, and may count too much elsewhere.
    """

    is_over: Bools
    cpu_millis: Ints
    memory_bytes: Ints
    disk_bytes: Ints
    sandboxes: Ints

    @property
    def amounts(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The four columns of amounts."""
        return self.cpu_millis, self.memory_bytes, self.disk_bytes, self.sandboxes


def confirmed(columns: Columns, ledger: Ledger) -> Confirmed:
    """Return what is confirmed on every node; walks through requests only where that matters."""
    view, reported = columns.snapshot, columns.reported
    found = Confirmed(
        np.zeros(len(view), np.bool_),
        reported.ledger_cpu_millis.copy(),
        reported.ledger_memory_bytes.copy(),
        view.disk_used_bytes - reported.foreign_disk_bytes,
        reported.counted.copy(),
    )
    limits = (
        view.cpu_limit_millis, view.memory_limit_bytes, view.disk_limit_bytes, view.sandbox_limit
    )  # fmt: skip
    for row in _unsettled(columns, ledger, _exceeds(found, limits)):
        used = confirmed_use(ledger, columns.names[row])
        found.cpu_millis[row], found.memory_bytes[row] = used.cpu_millis, used.memory_bytes
        found.disk_bytes[row], found.sandboxes[row] = used.disk_bytes, used.sandboxes
    found.is_over[:] = _exceeds(found, limits)
    return found


def confirmed_use(ledger: Ledger, node: str) -> Usage:
    """Return what the confirmed requests of one node take."""
    used = Usage()
    for entry in ledger.on_node(node):
        if entry.phase != "Reserved":
            used.add(entry.weight, creating=False)
    return used


def _exceeds(found: Confirmed, limits: tuple[Ints, Ints, Ints, Ints]) -> Bools:
    over = np.zeros(len(found.is_over), np.bool_)
    for used, limit in zip(found.amounts, limits, strict=True):
        over |= used > limit
    return over


def _unsettled(columns: Columns, ledger: Ledger, over: Bools) -> Iterator[int]:
    """Yield the rows over their limits where something is counted that is not confirmed.

    Plans and reservations are creates in flight, so a row without any holds none.
    """
    is_unsettled = columns.snapshot.creating_ledger > 0
    for ghost in ledger.ghosts.values():
        row = columns.row_of.get(ghost.node)
        if row is not None:
            is_unsettled[row] = True
    yield from np.flatnonzero(over & is_unsettled).tolist()
