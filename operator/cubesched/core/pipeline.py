"""The compiled form of one SchedulerProfile, and what a plugin must offer to stand in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Floats, Ints, Snapshot


class NotApplicable:
    """A score plugin has nothing to say about this request: no score, no weight, no failure."""

    __slots__ = ()


NOT_APPLICABLE: Final = NotApplicable()


@dataclass(frozen=True, slots=True)
class Miss:
    """The node that came closest to passing one stage."""

    row: int
    text: str
    """`needs 2000m, 1800m free`"""


class Filter(Protocol):
    """A guard, constraint or filter: keeps or drops nodes, never adds one."""

    @property
    def name(self) -> str:
        """The plugin's name, as counts and metrics show it."""
        ...

    def keep(self, fleet: Snapshot, request: Request) -> Bools | None:
        """Return one bool a node, True where it stays; None when every node stays."""
        ...

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        """Return (text, number) pairs for the nodes `rows` this stage was first to reject.

        Called only to explain; the numbers add up to len(rows). Text as in
        `insufficient cpu`, `stale metrics`, `no local template`.
        """
        ...

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Return the nearest miss among `rows`, or None where a share cannot be told."""
        ...


class Score(Protocol):
    """Rates nodes 0..100, higher is better."""

    @property
    def name(self) -> str:
        """The plugin's name, as parts and metrics show it."""
        ...

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats | NotApplicable:
        """Return one score for each of `rows` (the feasible nodes), in their order."""
        ...


class SelectionMethod(StrEnum):
    """How one node is picked among the best."""

    HIGHEST = "highest"
    SPREAD = "spread"
    RANDOM = "random"


class ScoreFailure(StrEnum):
    """What happens when a score plugin fails."""

    DEFAULT_SCORE = "default-score"
    FAIL_CLOSED = "fail-closed"


class NoCandidate(StrEnum):
    """What happens when no node is feasible."""

    BACKOFF = "backoff"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class WeightedScore:
    """A score plugin as one Profile lists it."""

    plugin: Score
    weight: float
    default_score: float


@dataclass(frozen=True, slots=True)
class Selection:
    """`top_n` >= 1, or -1 for all feasible nodes."""

    method: SelectionMethod
    top_n: int


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One Profile, ready to run. Guards and constraints are the same in all of them."""

    profile: str
    guards: tuple[Filter, ...]
    constraints: tuple[Filter, ...]
    filters: tuple[Filter, ...]
    scores: tuple[WeightedScore, ...]
    selection: Selection
    score_failure: ScoreFailure = ScoreFailure.DEFAULT_SCORE
    no_candidate: NoCandidate = NoCandidate.BACKOFF
