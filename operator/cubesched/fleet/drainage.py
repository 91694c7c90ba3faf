"""How far the emptying of a node has come: what is left on it, by phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cubesched.fleet.ledger import Ledger

PHASES: Final = ("Reserved", "Bound", "Starting", "Running", "Paused", "Evicting")
"""In the order in which a message names them; what else counts there comes after these."""
UNSTARTED: Final = frozenset({"Reserved", "Bound"})
DELETED: Final = "deleted"
"""Requests that are gone, whose sandboxes their node has not let go of yet."""


@dataclass(frozen=True, slots=True)
class Drainage:
    """What a drained node's condition says."""

    is_drained: bool
    message: str


def left_on(ledger: Ledger, node: str) -> Mapping[str, int]:
    """Return how many requests count on `node`, by phase."""
    left = Counter(entry.phase for entry in ledger.by_node.get(node, {}).values())
    left[DELETED] = sum(ghost.node == node for ghost in ledger.ghosts.values())
    return +left


def drainage(drain: str, left: Mapping[str, int]) -> Drainage | None:
    """Judge what is left on a node with this `spec.drain`; None when it is not to be drained."""
    if drain == "None":
        return None
    goes = {phase: n for phase, n in left.items() if drain == "All" or phase in UNSTARTED}
    if goes:
        return Drainage(is_drained=False, message=f"{_requests(goes)} left: {_by_phase(goes)}")
    if left:
        return Drainage(is_drained=True, message=f"{_requests(left)} may stay: {_by_phase(left)}")
    return Drainage(is_drained=True, message="no request is left")


def _requests(left: Mapping[str, int]) -> str:
    number = sum(left.values())
    return f"{number} request{'s' * (number != 1)}"


def _by_phase(left: Mapping[str, int]) -> str:
    others = sorted(left.keys() - set(PHASES))
    known = [phase for phase in (*PHASES, *others) if phase in left]
    return ", ".join(f"{left[phase]} {phase.lower()}" for phase in known)
