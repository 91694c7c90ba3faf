"""The operator's part of a SandboxNode's status, from what the fleet knows of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cubesched.api.conditions import stored_conditions
from cubesched.api.quantity import format_bytes, format_millis
from cubesched.api.timestamps import timestamp
from cubesched.core.snapshot import NO_LIMIT, Safety
from cubesched.fleet.nodeview import NodeView
from cubesched.handlers.node_conditions import CONDITIONS, Subject, conditions_of

Status = dict[str, Any]

DATE: Final = "metricsTime"
_FIELDS: Final = (DATE, "schedulable", "allocated", "effectiveCapacity")
MOST: Final = (1 << 31) - 1
"""The largest number that the CRD takes."""
SCHEDULABLE: Final = {
    Safety.OK: "True",
    Safety.INVALID_SPEC: "InvalidSpec",
    Safety.NOT_READY: "NotReady",
    Safety.UNSCHEDULABLE: "Cordoned",
    Safety.QUARANTINED: "Quarantined",
    Safety.NEVER_REPORTED: "NoMetrics",
    Safety.STALE: "StaleMetrics",
    Safety.CLOCK_SKEW: "ClockSkew",
    Safety.UNREADABLE_REQUEST: "UnreadableRequest",
    # A replica that has just started waits for a report; the others do not.
    Safety.AWAITING_REPORT: "True",
}
"""What stands in the column of that name, by what the node_safety guard says."""


def own_part(status: object) -> Status:
    """Return what of a stored status the operator writes, in the form of `node_status`."""
    if not isinstance(status, Mapping):
        return {}
    stored = {c.get("type"): c for c in stored_conditions(status.get("conditions"))}
    part: Status = {"conditions": [stored[kind] for kind in CONDITIONS if kind in stored]}
    return part | {name: status[name] for name in _FIELDS if name in status}


def node_status(subject: Subject, stored: Status, *, now: str) -> Status:
    """Return what should stand; `stored` is the operator's part as it is."""
    view = subject.view
    before = {c["type"]: c for c in stored.get("conditions", ())}
    fresh: Status = {
        "conditions": conditions_of(subject, before, now=now),
        "allocated": _allocated(view),
        "schedulable": _schedulable(view) if view.has_reports else stored.get("schedulable"),
        DATE: stored.get(DATE) if view.reported_at is None else timestamp(view.reported_at),
        "effectiveCapacity": None if view.record.problem else _capacity(view),
    }
    return {name: value for name, value in fresh.items() if value is not None}


def says_the_same(status: Status, stored: Status) -> bool:
    """Tell whether both say the same of a node, except for when it last reported."""
    return _undated(status) == _undated(stored)


def _undated(status: Status) -> Status:
    return {name: value for name, value in status.items() if name != DATE}


def _schedulable(view: NodeView) -> str:
    is_draining = view.safety is Safety.UNSCHEDULABLE and view.record.drain != "None"
    return "Draining" if is_draining else SCHEDULABLE[view.safety]


def _allocated(view: NodeView) -> Status:
    used, limits = view.allocated, view.limits
    return {
        # Absurd reservations may add up to more than the CRD takes.
        "cpu": format_millis(min(NO_LIMIT, used.cpu_millis)),
        "memory": format_bytes(min(NO_LIMIT, used.memory_bytes)),
        "systemDisk": format_bytes(min(NO_LIMIT, used.disk_bytes)),
        "sandboxes": min(MOST, used.sandboxes),
        "creating": min(MOST, used.creating),
        **_percent("cpuPercent", used.cpu_millis, limits.cpu_millis),
        **_percent("memoryPercent", used.memory_bytes, limits.memory_bytes),
    }


def _percent(name: str, used: int, limit: int) -> Status:
    return {name: min(MOST, used * 100 // limit)} if limit else {}


def _capacity(view: NodeView) -> Status:
    limits = view.limits
    disk = {"systemDisk": format_bytes(limits.disk_bytes)} if view.has_disk_limit else {}
    return {
        "cpu": format_millis(limits.cpu_millis),
        "memory": format_bytes(limits.memory_bytes),
        **disk,
        "sandboxes": limits.sandboxes,
        "createConcurrency": limits.creates,
        "pausedResourceReleaseRatio": float(view.release_ratio),
    }
