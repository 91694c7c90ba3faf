"""Conditions as every writer of a status builds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MAX_MESSAGE_CHARS: Final = 1024
"""What the CRDs allow."""
MAX_CONDITIONS: Final = 8
"""What the CRD of requests allows."""
_OURS: Final = frozenset({"Scheduled", "Ready", "ResumeBlocked"})
"""What the operator and agents say of requests; it always finds a place."""

Condition = dict[str, Any]


def condition(
    kind: str,
    value: str,
    *,
    reason: str,
    message: str,
    generation: int,
    now: str,
    before: Mapping[str, Any],
) -> Condition:
    """Return one condition; `before`, the stored one, gives its time unless the value changes."""
    since = before.get("lastTransitionTime") if before.get("status") == value else None
    return {
        "type": kind,
        "status": value,
        "reason": reason,
        "message": shortened(message, MAX_MESSAGE_CHARS),
        "observedGeneration": generation,
        "lastTransitionTime": since or now,
    }


def put_condition(
    stored: object, kind: str, *, value: str, reason: str, message: str, generation: int, now: str
) -> list[Condition]:
    """Return a request's stored conditions with one of them set anew.

    What is no condition is dropped, and of others' conditions as many as would leave no place.
    """
    kept = _leaving_place(stored_conditions(stored), kind)
    before = next((known for known in kept if known.get("type") == kind), {})
    fresh = condition(
        kind,
        value,
        reason=reason,
        message=message,
        generation=generation,
        now=now,
        before=before,
    )
    return [fresh if known is before else known for known in kept] if before else [*kept, fresh]


def _leaving_place(stored: list[Condition], kind: str) -> list[Condition]:
    """Return the first condition of each type, less what is too many to add one of `kind`.

    A list that is full would have every write of ours refused, also the one that frees a node.
    """
    of_type: dict[str, Condition] = {}
    for known in stored:
        of_type.setdefault(str(known.get("type")), known)
    surplus = len(of_type.keys() | {kind}) - MAX_CONDITIONS
    foreign = [known for known in of_type if known not in _OURS and known != kind]
    for dropped in foreign[: max(0, surplus)]:
        del of_type[dropped]
    return list(of_type.values())


def with_condition(
    status: Mapping[str, Any],
    kind: str,
    *,
    value: str,
    reason: str,
    message: str,
    generation: int,
    now: str,
) -> dict[str, Any]:
    """Return a whole status with one condition set; its time moves only with its value."""
    conditions = put_condition(
        status.get("conditions"),
        kind,
        value=value,
        reason=reason,
        message=message,
        generation=generation,
        now=now,
    )
    return {**status, "conditions": conditions}


def without_condition(stored: object, kind: str) -> list[Condition]:
    """Return the stored conditions without the one of this kind."""
    return [known for known in stored_conditions(stored) if known.get("type") != kind]


def stored_conditions(stored: object) -> list[Condition]:
    """Return what of a status's `conditions` can be read, however it was stored."""
    return [c for c in stored if isinstance(c, dict)] if isinstance(stored, list) else []


def shortened(text: str, limit: int) -> str:
    """Return at most `limit` characters, the last of them an ellipsis where some are missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
