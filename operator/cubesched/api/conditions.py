"""Conditions as every writer of a status builds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MAX_MESSAGE_CHARS: Final = 1024
"""What the CRDs allow."""

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
    """Return the stored conditions with one of them set anew; what is no condition is dropped."""
    kept = stored_conditions(stored)
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


def without_condition(stored: object, kind: str) -> list[Condition]:
    """Return the stored conditions without the one of this kind."""
    return [known for known in stored_conditions(stored) if known.get("type") != kind]


def stored_conditions(stored: object) -> list[Condition]:
    """Return what of a status's `conditions` can be read, however it was stored."""
    return [c for c in stored if isinstance(c, dict)] if isinstance(stored, list) else []


def shortened(text: str, limit: int) -> str:
    """Return at most `limit` characters, the last of them an ellipsis where some are missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
