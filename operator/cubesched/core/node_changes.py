"""One fact about nodes changed at a time: what passes, or what somebody puts right.

Columns are shared with the fleet given and never written to. What only scores read is not brought
up to date: nothing here is ever scored.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace

from cubesched.core.changes import PEOPLE, WAIT, Case, Change
from cubesched.core.derived import derive_rooms
from cubesched.core.snapshot import Bools, Safety

_DISKS = ("data_disk_percent", "storage_disk_percent", "system_disk_percent")

ONCE = {
    Safety.NOT_READY: "once Ready",
    Safety.UNSCHEDULABLE: "once no longer unschedulable",
    Safety.QUARANTINED: "once their quarantine is over",
    Safety.NEVER_REPORTED: "once metrics are reported",
    Safety.STALE: "once metrics are fresh",
    Safety.CLOCK_SKEW: "once the clock there is right",
    Safety.UNREADABLE_REQUEST: "once the unreadable request there is gone",
    Safety.AWAITING_REPORT: "once a new report is seen",
}
"""What passes or is put right on a node, in words; a node with an invalid spec has no sizes."""


def of_the_nodes(case: Case) -> Iterator[Change]:
    """Yield every change of one fact about nodes that may help."""
    yield from _safety(case)
    yield from _creates(case)
    yield from _measured(case)


def _safety(case: Case) -> Iterator[Change]:
    for code, text in ONCE.items():
        held = case.fleet.safety == code
        if held.any():
            size = PEOPLE if code is Safety.UNSCHEDULABLE else WAIT
            changed = _where(case, held, safety=Safety.OK)
            yield Change(f"safety {code.name}", text, changed, size)


def _creates(case: Case) -> Iterator[Change]:
    if not case.fleet.derived.can_create.all():
        held = ~case.fleet.derived.can_create
        changed = _where(case, held, creating=0, creating_ledger=0)
        yield Change("creates", "once the creates in flight there have ended", changed, WAIT)


def _measured(case: Case) -> Iterator[Change]:
    """Yield what machines measure and guards bound: as if nothing of it were in use."""
    fleet, request = case.fleet, case.request
    bound = fleet.disk_usage_max_percent
    full = fleet.data_disk_percent >= bound
    full |= (fleet.storage_disk_percent >= bound) | (fleet.system_disk_percent >= bound)
    bounds: tuple[tuple[str, Bools, tuple[str, ...]], ...] = (
        (
            "once cpu utilisation there is lower",
            fleet.cpu_util_percent >= fleet.max_cpu_util_percent,
            ("cpu_util_percent",),
        ),
        ("once the cpu load there is lower", fleet.cpu_load > fleet.cpus, ("cpu_load",)),
        (
            "once the machine there has memory free",
            fleet.derived.memory_really_free_bytes < request.memory_bytes,
            ("memory_really_used_bytes",),
        ),
        ("once the disks there are less full", full, _DISKS),
    )
    for text, held, columns in bounds:
        if held.any():
            yield Change(text, text, _where(case, held, **dict.fromkeys(columns, 0)), WAIT)


def _where(case: Case, held: Bools, **facts: int) -> Case:
    """Return the case of nodes that differ in these facts on the rows held."""
    fleet = copy(case.fleet)
    for name, value in facts.items():
        column = getattr(fleet, name).copy()
        column[held] = value
        setattr(fleet, name, column)
    fleet.derived = case.fleet.derived.with_own_rooms()
    derive_rooms(fleet, held.nonzero()[0])
    return replace(case, fleet=fleet)
