"""Whether a paused sandbox can be resumed where it is now, and what to say when it cannot.

No more than the evaluation of a reservation asks, with this replica's plans and foreign use on
top, and that the node can be used at all. How busy the machine is does not matter: there is no
other node to choose, and its agent has the last word.
"""

from __future__ import annotations

from dataclasses import dataclass

from cubesched.core.amounts import binary_bytes, millis, told_apart
from cubesched.core.decision import ResumeReason
from cubesched.core.snapshot import Safety
from cubesched.fleet.entries import Entry, Weight
from cubesched.fleet.standing import Standing
from cubesched.plugins.builtin.guards.node_safety import TEXTS


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a paused sandbox is not resumed now."""

    reason: ResumeReason
    message: str


def added_weight(entry: Entry) -> Weight:
    """Return what it takes to resume `entry`, beyond what it counts while it is paused."""
    full, now = entry.full_weight, entry.weight
    return Weight(full.cpu_millis - now.cpu_millis, full.memory_bytes - now.memory_bytes)


def blocked(entry: Entry, standing: Standing) -> Blocked | None:
    """Return what keeps `entry` from being resumed on its node; None when nothing does."""
    why = _unusable(standing)
    if why:
        return Blocked(ResumeReason.NODE_NOT_READY, f"{entry.node}: {why}")
    short = _short(added_weight(entry), standing)
    if short:
        return Blocked(ResumeReason.INSUFFICIENT_CAPACITY, f"{entry.node}: {short}")
    return None


def _unusable(standing: Standing) -> str:
    if standing.drain == "All":
        return "node is being drained"
    return "" if standing.safety is Safety.OK else TEXTS[standing.safety]


def _short(added: Weight, standing: Standing) -> str:
    """Name everything that is short, in numbers."""
    parts = []
    for what, needed, free, show in (
        ("cpu", added.cpu_millis, standing.cpu_millis, millis),
        ("memory", added.memory_bytes, standing.memory_bytes, binary_bytes),
    ):
        if needed > free:
            need, have = told_apart(needed, max(0, free), show)
            parts.append(f"needs {need} more {what}, {have} free")
    if standing.disk_bytes < 0:
        parts.append(f"holds {binary_bytes(-standing.disk_bytes)} more disk than it may")
    if standing.sandboxes < 0:
        parts.append(f"holds {-standing.sandboxes} more sandboxes than it may")
    if standing.creates < 1:
        parts.append("as many creates in flight as it may have")
    return "; ".join(parts)
