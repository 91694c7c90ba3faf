"""Times as statuses and conditions carry them."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(wall_seconds: float) -> str:
    """Return Unix time as RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(wall_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(wall_seconds: float) -> str:
    """Return Unix time as a Kubernetes MicroTime: six decimals, as the server refuses fewer."""
    return datetime.fromtimestamp(wall_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parsed(stamp: str) -> float | None:
    """Return the Unix time of an RFC 3339 text, at least 0; None when it is none.

    Without a zone it is UTC.
    """
    try:
        found = datetime.fromisoformat(stamp.upper())
    except ValueError:
        return None
    return max(0.0, (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def unix_seconds(stamp: str) -> float:
    """Return the Unix time of an RFC 3339 text; 0.0 when it is none."""
    return parsed(stamp) or 0.0
