"""Times as statuses and conditions carry them."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(wall_seconds: float) -> str:
    """Return Unix time as RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(wall_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(wall_seconds: float) -> str:
    """Return Unix time as a Kubernetes MicroTime: six decimals, as the server refuses fewer."""
    return datetime.fromtimestamp(wall_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def unix_seconds(stamp: str) -> float:
    """Return the Unix time of an RFC 3339 text; 0.0 when it is none."""
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return 0.0
