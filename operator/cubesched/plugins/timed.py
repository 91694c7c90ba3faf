"""Timing as a wrapper around a plugin: the cycle stays free of clocks, plugins of metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from typing_extensions import override

from cubesched.core.pipeline import (
    Filter,
    Judged,
    Miss,
    NotApplicable,
    Pipeline,
    Score,
    WaitingFilter,
    WaitingScore,
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

    def keep(self, fleet: Snapshot, request: Request) -> Bools | Judged | None:
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


class TimedWaitingFilter(WaitingFilter):
    """A filter that is waited for, timed from the question to the answer."""

    def __init__(self, inner: WaitingFilter, record: Record, clock: Callable[[], float]) -> None:
        self.name, self.host = inner.name, inner.host
        self._inner, self._record, self._clock = inner, record, clock

    @override
    async def keep(self, fleet: Snapshot, request: Request, rows: Ints) -> Bools | Judged:
        """Ask the wrapped plugin."""
        began = self._clock()
        try:
            return await self._inner.keep(fleet, request, rows)
        finally:
            self._record(self._clock() - began)


class TimedWaitingScore(WaitingScore):
    """A score that is waited for, timed from the question to the answer."""

    def __init__(self, inner: WaitingScore, record: Record, clock: Callable[[], float]) -> None:
        self.name, self.host = inner.name, inner.host
        self._inner, self._record, self._clock = inner, record, clock

    @override
    async def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats | NotApplicable:
        """Ask the wrapped plugin."""
        began = self._clock()
        try:
            return await self._inner.score(fleet, request, rows)
        finally:
            self._record(self._clock() - began)


def timed(pipeline: Pipeline, *, recorder: RecorderOf, clock: Callable[[], float]) -> Pipeline:
    """Return the same pipeline with every plugin timed by `clock` (seconds)."""

    def wrapped(kind: str, stages: Sequence[Filter]) -> tuple[Filter, ...]:
        return tuple(
            TimedFilter(stage, recorder(pipeline.profile, kind, stage.name), clock)
            for stage in stages
        )

    def wrapped_filter(plugin: Filter | WaitingFilter) -> Filter | WaitingFilter:
        record = recorder(pipeline.profile, "filter", plugin.name)
        if isinstance(plugin, WaitingFilter):
            return TimedWaitingFilter(plugin, record, clock)
        return TimedFilter(plugin, record, clock)

    def wrapped_score(entry: WeightedScore) -> WeightedScore:
        plugin, record = entry.plugin, recorder(pipeline.profile, "score", entry.plugin.name)
        if isinstance(plugin, WaitingScore):
            return replace(entry, plugin=TimedWaitingScore(plugin, record, clock))
        return replace(entry, plugin=TimedScore(plugin, record, clock))

    return replace(
        pipeline,
        guards=wrapped("guard", pipeline.guards),
        constraints=wrapped("constraint", pipeline.constraints),
        filters=tuple(wrapped_filter(plugin) for plugin in pipeline.filters),
        scores=tuple(wrapped_score(entry) for entry in pipeline.scores),
    )
