"""Timing as a wrapper around a plugin: the cycle stays free of clocks, plugins of metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cubesched.core.pipeline import (
    Filter,
    Miss,
    NotApplicable,
    Pipeline,
    Score,
    WeightedScore,
)
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Floats, Ints, Snapshot

Record = Callable[[float], None]
"""Takes the seconds that one call took."""
RecorderOf = Callable[[str, str, str], Record]
"""Returns where to record the times of (profile, kind, plugin)."""


@dataclass(frozen=True, slots=True)
class TimedFilter:
    """A guard, constraint or filter whose `keep` is timed."""

    inner: Filter
    record: Record
    clock: Callable[[], float]

    @property
    def name(self) -> str:
        """The wrapped plugin's name."""
        return self.inner.name

    def keep(self, fleet: Snapshot, request: Request) -> Bools | None:
        """Ask the wrapped plugin."""
        began = self.clock()
        try:
            return self.inner.keep(fleet, request)
        finally:
            self.record(self.clock() - began)

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        """Ask the wrapped plugin; explaining is not timed."""
        return self.inner.reasons(fleet, request, rows)

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Ask the wrapped plugin; explaining is not timed."""
        return self.inner.nearest(fleet, request, rows)


@dataclass(frozen=True, slots=True)
class TimedScore:
    """A score plugin that is timed."""

    inner: Score
    record: Record
    clock: Callable[[], float]

    @property
    def name(self) -> str:
        """The wrapped plugin's name."""
        return self.inner.name

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats | NotApplicable:
        """Ask the wrapped plugin."""
        began = self.clock()
        try:
            return self.inner.score(fleet, request, rows)
        finally:
            self.record(self.clock() - began)


def timed(pipeline: Pipeline, *, recorder: RecorderOf, clock: Callable[[], float]) -> Pipeline:
    """Return the same pipeline with every plugin timed by `clock` (seconds)."""

    def wrapped(kind: str, stages: Sequence[Filter]) -> tuple[Filter, ...]:
        return tuple(
            TimedFilter(stage, recorder(pipeline.profile, kind, stage.name), clock)
            for stage in stages
        )

    def wrapped_score(entry: WeightedScore) -> WeightedScore:
        record = recorder(pipeline.profile, "score", entry.plugin.name)
        return replace(entry, plugin=TimedScore(entry.plugin, record, clock))

    return replace(
        pipeline,
        guards=wrapped("guard", pipeline.guards),
        constraints=wrapped("constraint", pipeline.constraints),
        filters=wrapped("filter", pipeline.filters),
        scores=tuple(wrapped_score(entry) for entry in pipeline.scores),
    )
