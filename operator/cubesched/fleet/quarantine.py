"""A node kept out for a while because it refuses what is sent to it, and the evidence for that."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quarantine:
    """One node's time out, by this replica's own verdict."""

    since: float
    """Unix time at which this replica gave its verdict."""
    until: float
    """Unix time at which the node may be chosen again."""
    refusals: int
    """How many times agents gave requests back there, with none begun meanwhile."""
    requests: int
    """How many different requests those were."""
    last_reason: str
    """The agent's word for the last of them, as it was written."""
