"""One row at a time: what counts on a node and what follows from it, as plain numbers.

On the path of every event and decision, where a memoryview reads and writes a cell in half the time
of its array. Writes what `core.derived` defines, and is tested against it.
"""

# ruff: noqa: FURB136 - a comparison takes a tenth of the time of min() and max() here
from __future__ import annotations

from collections.abc import MutableSequence
from typing import TYPE_CHECKING, cast

from cubesched.core.snapshot import NO_LIMIT, Bools, Floats, Ints, Snapshot
from cubesched.fleet.ledger import Usage

if TYPE_CHECKING:
    from cubesched.fleet.reported import Reported


class Cells:
    """The cells that follow from what is counted on a node; made anew whenever the arrays are."""

    __slots__ = (
        "can_create", "counted", "cpu_allocated", "cpu_foreign", "cpu_free", "cpu_ledger",
        "cpu_open", "cpu_room", "cpu_used", "create_limit", "creates_free_by_both",
        "creates_free_by_ledger", "creating", "creating_ledger", "creating_told", "disk_foreign",
        "disk_open", "disk_room", "disk_used", "is_usable", "memory_allocated", "memory_foreign",
        "memory_free", "memory_ledger", "memory_limit", "memory_really_free", "memory_room",
        "memory_used", "per_byte", "per_create", "per_milli", "per_sandbox", "sandboxes",
        "sandboxes_free", "sandboxes_open", "sandboxes_told", "unreadable",
    )  # fmt: skip

    def __init__(self, view: Snapshot, reported: Reported) -> None:
        derived = view.derived
        self.cpu_foreign = _ints(reported.foreign_cpu_millis)
        self.cpu_allocated = _ints(reported.allocated_cpu_millis)
        self.cpu_ledger = _ints(reported.ledger_cpu_millis)
        self.cpu_open, self.cpu_used = _ints(derived.cpu_open_millis), _ints(view.cpu_used_millis)
        self.cpu_room = _ints(derived.cpu_room_millis)
        self.cpu_free = _floats(derived.cpu_free_percent)
        self.per_milli = _floats(derived.percent_per_milli)

        self.memory_foreign = _ints(reported.foreign_memory_bytes)
        self.memory_allocated = _ints(reported.allocated_memory_bytes)
        self.memory_ledger = _ints(reported.ledger_memory_bytes)
        self.memory_limit = _ints(view.memory_limit_bytes)
        self.memory_used = _ints(view.memory_used_bytes)
        self.memory_really_free = _ints(derived.memory_really_free_bytes)
        self.memory_room = _ints(derived.memory_room_bytes)
        self.memory_free = _floats(derived.memory_free_percent)
        self.per_byte = _floats(derived.percent_per_byte)

        self.disk_foreign = _ints(reported.foreign_disk_bytes)
        self.disk_open, self.disk_used = _ints(derived.disk_open_bytes), _ints(view.disk_used_bytes)
        self.disk_room = _ints(derived.disk_room_bytes)

        self.counted, self.sandboxes_told = _ints(reported.counted), _ints(reported.sandboxes)
        self.sandboxes, self.sandboxes_open = _ints(view.sandboxes), _ints(derived.sandboxes_open)
        self.sandboxes_free = _floats(derived.sandboxes_free_percent)
        self.per_sandbox = _floats(derived.percent_per_sandbox)
        self.is_usable = _bools(derived.is_usable)

        self.creating, self.creating_told = _ints(view.creating), _ints(view.creating_reported)
        self.creating_ledger = _ints(view.creating_ledger)
        self.create_limit, self.can_create = _ints(view.create_limit), _bools(derived.can_create)
        self.creates_free_by_ledger = _floats(derived.creates_free_by_ledger_percent)
        self.creates_free_by_both = _floats(derived.creates_free_by_both_percent)
        self.per_create = _floats(derived.percent_per_create)
        self.unreadable = _bools(reported.unreadable)

    def write(self, row: int, used: Usage, plan: Usage) -> None:
        """Write what the ledger and this replica's plans count on a node."""
        self._write_sizes(row, used, plan)
        self._write_numbers(row, used.sandboxes + plan.sandboxes, used.creating + plan.creating)

    def _write_sizes(self, row: int, used: Usage, plan: Usage) -> None:
        # Absurd reservations may add up to more than 64 bits hold.
        cpu, memory = used.cpu_millis, used.memory_bytes
        if cpu > NO_LIMIT or memory > NO_LIMIT:
            cpu, memory = min(NO_LIMIT, cpu), min(NO_LIMIT, memory)
        self.cpu_ledger[row], self.memory_ledger[row] = cpu, memory
        # What a node says all its sandboxes take counts where the ledger knows of less.
        allocated = self.cpu_allocated[row]
        cpu = (allocated if allocated > cpu else cpu) + plan.cpu_millis + self.cpu_foreign[row]
        allocated = self.memory_allocated[row]
        memory = allocated if allocated > memory else memory
        memory += plan.memory_bytes + self.memory_foreign[row]
        disk = used.disk_bytes + plan.disk_bytes + self.disk_foreign[row]
        if cpu > NO_LIMIT or memory > NO_LIMIT or disk > NO_LIMIT:
            cpu, memory, disk = min(NO_LIMIT, cpu), min(NO_LIMIT, memory), min(NO_LIMIT, disk)
        self.cpu_used[row], self.memory_used[row], self.disk_used[row] = cpu, memory, disk
        self.cpu_room[row] = self.cpu_open[row] - cpu
        self.disk_room[row] = self.disk_open[row] - disk
        by_quota, really = self.memory_limit[row] - memory, self.memory_really_free[row]
        self.memory_room[row] = by_quota if by_quota < really else really
        # A comparison, like fmax, takes 0 over the NaN of 0 * inf.
        free = 100.0 - cpu * self.per_milli[row]
        self.cpu_free[row] = free if free > 0.0 else 0.0
        free = 100.0 - memory * self.per_byte[row]
        self.memory_free[row] = free if free > 0.0 else 0.0

    def _write_numbers(self, row: int, counted: int, ledger: int) -> None:
        told = self.sandboxes_told[row]
        sandboxes = told if told > counted else counted
        self.counted[row], self.sandboxes[row] = counted, sandboxes
        self.is_usable[row] = sandboxes < self.sandboxes_open[row]
        free = 100.0 - sandboxes * self.per_sandbox[row]
        self.sandboxes_free[row] = free if free > 0.0 else 0.0

        told = self.creating_told[row]
        creating = told if told > ledger else ledger
        self.creating_ledger[row], self.creating[row] = ledger, creating
        self.can_create[row] = creating < self.create_limit[row]
        each = self.per_create[row]
        free = 100.0 - ledger * each
        self.creates_free_by_ledger[row] = free if free > 0.0 else 0.0
        # Without a report both stay at the 0 that taking the reports wrote.
        if told >= 0:
            free = 100.0 - (told + ledger) * each
            self.creates_free_by_both[row] = free if free > 0.0 else 0.0


def _ints(column: Ints) -> MutableSequence[int]:
    return cast("MutableSequence[int]", column.data)


def _floats(column: Floats) -> MutableSequence[float]:
    return cast("MutableSequence[float]", column.data)


def _bools(column: Bools) -> MutableSequence[bool]:
    return cast("MutableSequence[bool]", column.data)
