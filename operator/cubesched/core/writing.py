"""What became of one conditional write, as whoever decides on it needs to know.

A lost reply is not a refusal: only the stream tells whether such a write landed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """How a write ended; every member but UNKNOWN is certain."""

    LANDED = "landed"
    """2xx: the server stored it (or it changed nothing)."""
    REFUSED = "refused"
    """409: the object is at another version."""
    MISSING = "missing"
    """404: the object is gone."""
    REJECTED = "rejected"
    """Any other 4xx, or nothing was sent at all: it did not and will not land."""
    UNKNOWN = "unknown"
    """No answer, a 5xx, or a refusal of what was sent twice: it may have landed, or land late."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The answer to one write."""

    outcome: Outcome
    status: int
    """The HTTP code; 0 when none arrived."""
    resource_version: str
    """The object's version after a write that landed, else empty."""
    message: str
    """One line for people; empty when it landed."""
