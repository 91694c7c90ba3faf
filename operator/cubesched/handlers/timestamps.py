"""Times as conditions carry them."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(wall_seconds: float) -> str:
    """Return Unix time as RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(wall_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
