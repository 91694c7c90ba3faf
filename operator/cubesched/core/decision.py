"""What comes out of the pipeline: a placement, or a rejection that can be explained."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Reason(StrEnum):
    """Why a request is not scheduled, as its condition shows it (condition `Scheduled`)."""

    NO_NODES = "NoNodes"
    NO_PROFILE = "NoProfile"
    NO_ACTIVE_POLICY = "NoActivePolicy"
    UNSCHEDULABLE = "Unschedulable"
    NEVER_FITS = "NeverFits"
    STALE_METRICS = "StaleMetrics"
    PLUGIN_FAILED = "PluginFailed"
    GATED = "Gated"
    CONFLICT = "Conflict"
    REFUSED = "Refused"
    NODE_LOST = "NodeLost"
    START_DEADLINE = "StartDeadline"
    DRAINED = "Drained"
    INVALID_SPEC = "InvalidSpec"
    NO_CANDIDATE = "NoCandidate"


class ResumeReason(StrEnum):
    """Why a paused sandbox is not resumed, as the condition `ResumeBlocked` shows it."""

    INSUFFICIENT_CAPACITY = "InsufficientCapacity"
    NODE_NOT_READY = "NodeNotReady"


class StageCount(NamedTuple):
    """How many nodes one guard, constraint or filter was the first to reject.

    A named tuple, and the next likewise: several are made in every decision.
    """

    kind: str
    """guard, constraint or filter."""
    plugin: str
    rejected: int
    failed: int = 0
    """How many of them because it could not tell."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A plugin that failed in a decision, and what the Profile's failure policy made of it."""

    plugin: str
    policy: str
    """fail-closed, fail-open or default-score."""
    message: str
    nodes: int = 0
    """On how many nodes of those that were left; 0 means the call as a whole."""


class ScorePart(NamedTuple):
    """One score plugin's share in the chosen node's score."""

    plugin: str
    weight: float
    score: float


@dataclass(frozen=True, slots=True)
class Placed:
    """The chosen node and how it was chosen."""

    row: int
    node: str
    score: float
    parts: tuple[ScorePart, ...]
    runners_up: tuple[tuple[str, float], ...]
    """The next two by score, name and score."""
    feasible: int
    total: int
    counts: tuple[StageCount, ...]
    """Only the stages that rejected a node, in pipeline order; with `feasible` they add up to
    `total`."""
    faults: tuple[Fault, ...] = ()
    """What failed on the way and did not keep it from being placed."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """No node can take the request now.

    `counts` add up to `total`; where a plugin failed they stop at what was judged before it.
    """

    reason: Reason
    counts: tuple[StageCount, ...]
    total: int
    failed_plugin: str = ""
    detail: str = ""
    """The failing plugin's message under reason PluginFailed."""
    faults: tuple[Fault, ...] = ()
    """Everything that failed, the one behind PluginFailed among them."""


Decision = Placed | Rejected
