"""The compiled form of one SchedulerProfile, and what a plugin must offer to stand in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
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


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A filter's answer where it failed on single nodes: their part is the failure policy's."""

    keep: Bools
    """True where the node stays; without meaning where it failed."""
    failed: Bools
    """True where the filter could not tell."""
    error: str
    """One of the errors, for people: `no such key: zone`."""


class Filter(Protocol):
    """A guard, constraint or filter: keeps or drops nodes, never adds one."""

    @property
    def name(self) -> str:
        """The plugin's name, as counts and metrics show it."""
        ...

    def keep(self, fleet: Snapshot, request: Request) -> Bools | Judged | None:
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


class Health(StrEnum):
    """How a plugin that runs elsewhere is doing; the reasons of the condition `PluginsHealthy`."""

    HEALTHY = "Healthy"
    UNREACHABLE = "Unreachable"
    CAPABILITY_MISSING = "CapabilityMissing"
    CIRCUIT_OPEN = "CircuitOpen"


class Circuit(IntEnum):
    """Whether a plugin is asked at all: the states of its circuit breaker, from good to bad."""

    CLOSED = 0
    """It is asked."""
    TRYING = 1
    """Half open: one call tries whether it works again."""
    OPEN = 2
    """It failed too often: it is not asked for a while."""


class Host(ABC):
    """Where plugins that are waited for run: a thread, or a connection to another process.

    It outlives the policy sets that use it, and with it what is known of its health.
    """

    @abstractmethod
    def start(self) -> None:
        """Begin to connect, in the background; called on the event loop, more than once."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of it; calls under way end as failed."""

    @abstractmethod
    def health(self) -> tuple[Health, str]:
        """Return how it is doing, and in words why it is not healthy."""

    def circuit(self, plugin: str) -> Circuit:  # noqa: ARG002
        """Return the state of one plugin's circuit breaker, by the plugin's name."""
        is_open = self.health()[0] is Health.CIRCUIT_OPEN
        return Circuit.OPEN if is_open else Circuit.CLOSED


class Waiting(ABC):
    """A plugin that is waited for: other decisions go on while it thinks.

    It is shown a frozen fleet, asked about the rows that are left, and never trusted.
    """

    name: str
    """As counts, parts and metrics show it."""
    host: Host


class WaitingFilter(Waiting):
    """A filter in a thread or process of its own."""

    @abstractmethod
    async def keep(self, fleet: Snapshot, request: Request, rows: Ints) -> Bools | Judged:
        """Return one bool for each of `rows`, in their order.

        Raises PluginError when the call fails: no answer, too late, or a breach of contract.
        """


class WaitingScore(Waiting):
    """A score in a thread or process of its own."""

    @abstractmethod
    async def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats | NotApplicable:
        """Return one score for each of `rows`, in their order.

        Raises PluginError when the call fails: no answer, too late, or a breach of contract.
        """


class Adjustment(Protocol):
    """Changes the blended scores of all feasible nodes before one is picked."""

    def adjust(self, fleet: Snapshot, rows: Ints, scores: Floats) -> Floats:
        """Return the scores of `rows` as adjusted, within 0..100 again."""
        ...


class SelectionMethod(StrEnum):
    """How one node is picked among the best."""

    HIGHEST = "highest"
    SPREAD = "spread"
    RANDOM = "random"
    """In proportion to the scores."""
    UNIFORM = "uniform"
    """Whatever the scores; no Profile can ask for it, only the settings of CubeMaster."""


class FilterFailure(StrEnum):
    """What happens when a filter fails on a node, or as a whole."""

    FAIL_CLOSED = "fail-closed"
    """The node is out; a failed call ends the attempt."""
    FAIL_OPEN = "fail-open"
    """The node stays; a failed call keeps them all."""


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

    plugin: Score | WaitingScore
    weight: float
    default_score: float


@dataclass(frozen=True, slots=True)
class Selection:
    """`top_n` >= 1, or -1 for all feasible nodes."""

    method: SelectionMethod
    top_n: int
    first_by_name: bool = False
    """True lets ties begin at the first name, not at a place drawn for the attempt."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One Profile, ready to run. Guards and constraints are the same in all of them."""

    profile: str
    guards: tuple[Filter, ...]
    constraints: tuple[Filter, ...]
    filters: tuple[Filter | WaitingFilter, ...]
    scores: tuple[WeightedScore, ...]
    selection: Selection
    adjustments: tuple[Adjustment, ...] = ()
    """What happens to the blended scores before one node is picked."""
    filter_failure: FilterFailure = FilterFailure.FAIL_CLOSED
    score_failure: ScoreFailure = ScoreFailure.DEFAULT_SCORE
    no_candidate: NoCandidate = NoCandidate.BACKOFF
    waits: bool = field(init=False)
    """Whether any of its plugins is waited for, so that a decision may suspend."""

    def __post_init__(self) -> None:
        """Look once for plugins that are waited for."""
        plugins = (*self.filters, *(entry.plugin for entry in self.scores))
        object.__setattr__(self, "waits", any(isinstance(each, Waiting) for each in plugins))

    @property
    def local_filters(self) -> tuple[Filter, ...]:
        """The filters that are not waited for."""
        return tuple(each for each in self.filters if not isinstance(each, WaitingFilter))

    def local(self) -> Pipeline:
        """Return what of it can be asked at any time: without the plugins that are waited for."""
        return replace(
            self,
            filters=self.local_filters,
            scores=tuple(e for e in self.scores if not isinstance(e.plugin, WaitingScore)),
        )
