"""What the operator says of a node in conditions: one table, a row each, pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from cubesched.adapters.telemetry.escaping import printable
from cubesched.api.conditions import Condition, condition
from cubesched.api.quantity import format_bytes, format_millis
from cubesched.api.timestamps import timestamp
from cubesched.core.snapshot import Safety
from cubesched.fleet.metrics import SKEW_SECONDS
from cubesched.fleet.nodeview import NodeView
from cubesched.fleet.reported import Shrink
from cubesched.fleet.unreported import parts_in

MAX_REASON_BYTES: Final = 256
"""Of an agent's own words."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One node to be judged."""

    view: NodeView
    generation: int
    problems: Sequence[str]
    """What is wrong with its spec."""


class Finding(NamedTuple):
    """What one row of the table finds."""

    is_true: bool
    reason: str
    message: str


Judge = Callable[[Subject, Mapping[str, Any]], Finding | None]
"""Gets the node and the condition as it is stored, if it is; None leaves it out."""


def conditions_of(
    subject: Subject, stored: Mapping[str, Mapping[str, Any]], *, now: str
) -> list[Condition]:
    """Return all conditions of the operator; `stored` holds those there are, by type."""
    return list(_conditions(subject, stored, now))


def _conditions(
    subject: Subject, stored: Mapping[str, Mapping[str, Any]], now: str
) -> Iterator[Condition]:
    for kind, judge in CONDITIONS.items():
        before = stored.get(kind, {})
        found = judge(subject, before)
        if found is not None:
            yield condition(
                kind,
                "True" if found.is_true else "False",
                reason=found.reason,
                message=found.message,
                generation=subject.generation,
                now=now,
                before=before,
            )


def _accepted(subject: Subject, _before: Mapping[str, Any]) -> Finding:
    problems = subject.problems
    if not problems:
        return Finding(True, "Valid", "The spec is valid.")
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return Finding(False, "InvalidSpec", f"{problems[0]}{more}")


def _metrics_complete(subject: Subject, before: Mapping[str, Any]) -> Finding | None:
    view = subject.view
    if not view.has_reports:
        return _as_stored(before) if before else None
    if view.silence is not Safety.OK:
        return _SILENT[view.silence](view)
    parts = parts_in(view.missing)
    if not parts:
        return Finding(True, "Complete", "Every field is reported.")
    fields, off = ", ".join(p.field for p in parts), ", ".join(p.off for p in parts)
    return Finding(False, "FieldsMissing", f"Not reported: {fields}. Not looked at: {off}.")


def _as_stored(before: Mapping[str, Any]) -> Finding:
    """Repeat what is stored: a replica that has just started does not know better yet."""
    texts = (str(before.get(name, "")) for name in ("reason", "message"))
    return Finding(before.get("status") == "True", *texts)


def _never_reported(_view: NodeView) -> Finding:
    return Finding(False, "NeverReported", "No report of this node was ever read.")


def _clock_skew(_view: NodeView) -> Finding:
    ahead = f"more than {SKEW_SECONDS:g}s ahead of the operator's clock"
    return Finding(False, "ClockSkew", f"Its reports are stamped {ahead}.")


def _stale(view: NodeView) -> Finding:
    age = f"{view.max_age_seconds:g}s or longer (metricsMaxAge)"
    return Finding(False, "Stale", f"No newer report for {age}.")


_SILENT: Final[Mapping[Safety, Callable[[NodeView], Finding]]] = {
    Safety.NEVER_REPORTED: _never_reported,
    Safety.CLOCK_SKEW: _clock_skew,
    Safety.STALE: _stale,
}


def _overcommitted(subject: Subject, before: Mapping[str, Any]) -> Finding:
    view = subject.view
    if not view.is_overcommitted:
        return Finding(False, "WithinLimits", "Confirmed requests fit the limits that hold now.")
    used, limits = view.confirmed, view.limits
    excess = [
        f"{what} {show(taken)} of {show(limit)}"
        for what, taken, limit, show in (
            ("cpu", used.cpu_millis, limits.cpu_millis, format_millis),
            ("memory", used.memory_bytes, limits.memory_bytes, format_bytes),
            ("disk", used.disk_bytes, limits.disk_bytes, format_bytes),
            ("sandboxes", used.sandboxes, limits.sandboxes, str),
        )
        if taken > limit
    ]
    message = f"Confirmed requests take {', '.join(excess)}; nothing new is placed here."
    return Finding(True, _shrink_reason(view.shrunk_by, before), message)


def _shrink_reason(shrunk_by: Shrink, before: Mapping[str, Any]) -> str:
    """Say what lowered the limits; a replica that has just started believes what is stored."""
    if shrunk_by is Shrink.UNSEEN and before.get("status") == "True":
        return str(before["reason"])
    return "CapacityShrunk" if shrunk_by is Shrink.CAPACITY else "LimitsChanged"


def _drained(subject: Subject, _before: Mapping[str, Any]) -> Finding | None:
    found = subject.view.drainage
    if found is None:
        return None
    reason = "Drained" if found.is_drained else "Draining"
    return Finding(found.is_drained, reason, f"{found.message[0].upper()}{found.message[1:]}.")


def _quarantined(subject: Subject, before: Mapping[str, Any]) -> Finding | None:
    found = subject.view.quarantine
    if found is None:
        over = Finding(False, "NotRefusing", "It is not left out for refusals.")
        return over if before else None
    word = printable(found.last_reason, max_bytes=MAX_REASON_BYTES)
    message = (
        f"{found.refusals} refusals by {found.requests} requests with none begun in between,"
        f" the last: {word}; nothing new is placed here until {timestamp(found.until)}."
    )
    return Finding(True, "RepeatedRefusals", message)


CONDITIONS: Final[Mapping[str, Judge]] = {
    "Accepted": _accepted,
    "MetricsComplete": _metrics_complete,
    "Overcommitted": _overcommitted,
    "Drained": _drained,
    "Quarantined": _quarantined,
}
