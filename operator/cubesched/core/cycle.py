"""One decision: guards, constraints, filters, scores, selection, on one version of the fleet."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import numpy as np

from cubesched.core.answered import Answered, answered
from cubesched.core.answers import ask_mask, await_mask
from cubesched.core.blending import Rating, final_scores, rate
from cubesched.core.decision import (
    Decision,
    Fault,
    Placed,
    Reason,
    Rejected,
    ScorePart,
    StageCount,
)
from cubesched.core.errors import PluginError
from cubesched.core.pipeline import (
    Filter,
    FilterFailure,
    Judged,
    Pipeline,
    ScoreFailure,
    WaitingFilter,
)
from cubesched.core.request import Request
from cubesched.core.selection import Choice, select
from cubesched.core.snapshot import Bools, Floats, Ints, Safety, Snapshot

T = TypeVar("T")

_NO_FRESH_REPORT = np.zeros(256, dtype=np.bool_)
_NO_FRESH_REPORT[
    [
        Safety.NOT_READY,
        Safety.NEVER_REPORTED,
        Safety.STALE,
        Safety.CLOCK_SKEW,
        Safety.AWAITING_REPORT,
    ]
] = True


@dataclass(slots=True)
class _Walk:
    """What is left of the fleet on the way through the stages, and what happened there."""

    fleet: Snapshot
    request: Request
    pipeline: Pipeline
    left: int
    alive: Bools | None = None
    """None while every node stays."""
    counts: list[StageCount] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    answers: dict[str, Answered] = field(default_factory=dict)

    def rows(self) -> Ints:
        """Return the rows that are left."""
        return np.arange(self.left) if self.alive is None else self.alive.nonzero()[0]

    def take(self, kind: str, name: str, mask: Bools, failed: int = 0) -> None:
        """Keep what `mask` keeps; note whom this stage was the first to reject."""
        if self.alive is None:
            self.alive = mask.copy()
        else:
            self.alive &= mask
        left = int(np.count_nonzero(self.alive))
        if left < self.left:
            self.counts.append(StageCount(kind, name, self.left - left, failed))
            self.left = left


def decide(
    fleet: Snapshot, request: Request, pipeline: Pipeline, *, prefer_own: bool = False
) -> Decision:
    """Place `request` on one of the fleet's nodes, or say why none takes it.

    `prefer_own` keeps to this replica's nodes where one is among the best (see `selection`).
    For pipelines in which nothing is waited for.
    """
    return at_once(_decide(fleet, request, pipeline, prefer_own=prefer_own))[0]


async def decide_waiting(
    fleet: Snapshot, request: Request, pipeline: Pipeline, *, prefer_own: bool = False
) -> tuple[Decision, Pipeline]:
    """Decide as `decide` does, suspended while plugins are waited for; `fleet` must be frozen.

    Also returns the pipeline with the filters that were waited for replaced by their answers, so
    that the decision can be explained without asking them again.
    """
    decision, answers = await _decide(fleet, request, pipeline, prefer_own=prefer_own)
    told = tuple(answers.get(each.name, Answered(each.name)) if isinstance(each, WaitingFilter)
                 else each for each in pipeline.filters)  # fmt: skip
    return decision, replace(pipeline.local(), filters=told)


def at_once(steps: Coroutine[Any, Any, T]) -> T:
    """Run to its end what never suspends."""
    try:
        steps.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    steps.close()
    raise RuntimeError("a pipeline in which plugins are waited for was asked at once")


async def _decide(
    fleet: Snapshot, request: Request, pipeline: Pipeline, *, prefer_own: bool
) -> tuple[Decision, Mapping[str, Answered]]:
    walk = _Walk(fleet, request, pipeline, len(fleet))
    try:
        await _pass_stages(walk)
        if not walk.left:
            return _rejected(walk), walk.answers
        rows = walk.rows()
        ratings = await rate(fleet, request, pipeline, rows)
    except PluginError as error:
        walk.faults.append(Fault(error.plugin, "fail-closed", error.message))
        return _plugin_failed(walk, walk.faults[-1]), walk.answers
    scores = final_scores(fleet, rows, ratings, pipeline.adjustments)
    choice = select(
        fleet, request, pipeline.selection, rows=rows, scores=scores, prefer_own=prefer_own
    )
    return _placed(walk, rows, scores, ratings, choice), walk.answers


def feasible_rows(fleet: Snapshot, request: Request, pipeline: Pipeline) -> Ints:
    """Return the rows of the nodes that could take `request` now, plugins waited for left out.

    Raises PluginError when a stage cannot answer.
    """
    walk = _Walk(fleet, request, pipeline, len(fleet))
    _pass_all(walk, "guard", pipeline.guards)
    _pass_all(walk, "constraint", pipeline.constraints)
    _pass_all(walk, "filter", pipeline.local_filters)
    return walk.rows()


def stages(pipeline: Pipeline) -> Iterator[tuple[str, Filter]]:
    """Yield (kind, stage) in the order in which nodes pass them, without those waited for."""
    for stage in pipeline.guards:
        yield "guard", stage
    for stage in pipeline.constraints:
        yield "constraint", stage
    for stage in pipeline.local_filters:
        yield "filter", stage


async def _pass_stages(walk: _Walk) -> None:
    """Let the nodes pass every stage, as long as any is left.

    Every stage looks at all rows: cheaper than gathering survivors, unless few survive. Only
    plugins that are waited for are asked about survivors.
    """
    pipeline = walk.pipeline
    _pass_all(walk, "guard", pipeline.guards)
    _pass_all(walk, "constraint", pipeline.constraints)
    for each in pipeline.filters:
        if not walk.left:
            return
        if isinstance(each, WaitingFilter):
            await _pass_waiting(walk, each)
        else:
            _pass_all(walk, "filter", (each,))


def _pass_all(walk: _Walk, kind: str, stages: Sequence[Filter]) -> None:
    """Let the nodes pass stages that answer at once: on the path of every decision."""
    fleet, request = walk.fleet, walk.request
    for stage in stages:
        if not walk.left:
            return
        try:
            answer = ask_mask(stage, fleet, request)
        except PluginError as error:
            _skip_or_raise(walk, kind, error)
            continue
        if answer is None:
            continue
        if isinstance(answer, Judged):
            _take_judged(walk, kind, stage.name, answer)
        else:
            walk.take(kind, stage.name, answer)


async def _pass_waiting(walk: _Walk, stage: WaitingFilter) -> None:
    rows = walk.rows()
    try:
        answer = await await_mask(stage, walk.fleet, walk.request, rows)
    except PluginError as error:
        _skip_or_raise(walk, "filter", error)
        walk.answers[stage.name] = Answered(stage.name, skipped=True)
        return
    told = answer if isinstance(answer, Judged) else Judged(answer, np.zeros(rows.size, bool), "")
    judged = Judged(_on_all(told.keep, rows, walk), _on_all(told.failed, rows, walk), told.error)
    before = walk.rows()
    _take_judged(walk, "filter", stage.name, judged)
    walk.answers[stage.name] = answered(stage.name, walk.fleet, before, walk.rows(), judged)


def _on_all(told: Bools, rows: Ints, walk: _Walk) -> Bools:
    column = np.zeros(len(walk.fleet), np.bool_)
    column[rows] = told
    return column


def _take_judged(walk: _Walk, kind: str, name: str, judged: Judged) -> None:
    """Let the failure policy judge the nodes on which a filter failed, of those left."""
    failed = judged.failed if walk.alive is None else judged.failed & walk.alive
    number = int(np.count_nonzero(failed))
    if not number:
        walk.take(kind, name, judged.keep)
        return
    policy = failure_policy(walk.pipeline, kind)
    walk.faults.append(Fault(name, policy.value, judged.error, number))
    if policy is FilterFailure.FAIL_OPEN:
        walk.take(kind, name, judged.keep | failed)
    else:
        walk.take(kind, name, judged.keep & ~failed, number)


def _skip_or_raise(walk: _Walk, kind: str, error: PluginError) -> None:
    if failure_policy(walk.pipeline, kind) is FilterFailure.FAIL_CLOSED:
        raise error
    walk.faults.append(Fault(error.plugin, FilterFailure.FAIL_OPEN.value, error.message))


def failure_policy(pipeline: Pipeline, kind: str) -> FilterFailure:
    """Return what a stage's failure leads to: guards and constraints always fail closed."""
    return pipeline.filter_failure if kind == "filter" else FilterFailure.FAIL_CLOSED


def _rejected(walk: _Walk) -> Rejected:
    """Say why no node is left; a plugin's failure comes before what is wrong with the nodes."""
    lost = next((fault for fault in walk.faults if fault.policy == "fail-closed"), None)
    if lost is not None:
        return _plugin_failed(walk, lost)
    reason = _why_none(walk.fleet, walk.request)
    return Rejected(reason, tuple(walk.counts), len(walk.fleet), faults=tuple(walk.faults))


def _plugin_failed(walk: _Walk, fault: Fault) -> Rejected:
    return Rejected(
        Reason.PLUGIN_FAILED,
        tuple(walk.counts),
        len(walk.fleet),
        fault.plugin,
        fault.message,
        tuple(walk.faults),
    )


def _why_none(fleet: Snapshot, request: Request) -> Reason:
    if not len(fleet):
        return Reason.NO_NODES
    if _NO_FRESH_REPORT[fleet.safety].all():
        return Reason.STALE_METRICS
    fits_when_empty = (
        (fleet.cpu_limit_millis >= request.cpu_millis)
        & (fleet.memory_limit_bytes >= request.memory_bytes)
        & (fleet.disk_limit_bytes >= request.disk_bytes)
    )
    return Reason.UNSCHEDULABLE if fits_when_empty.any() else Reason.NEVER_FITS


def _placed(
    walk: _Walk, rows: Ints, scores: Floats, ratings: list[Rating], choice: Choice
) -> Placed:
    fleet = walk.fleet
    row = rows.item(choice.chosen)
    return Placed(
        row=row,
        node=fleet.names[row],
        score=scores.item(choice.chosen),
        parts=tuple(
            ScorePart(rating.plugin, rating.weight, rating.scores.item(choice.chosen))
            for rating in ratings
        ),
        runners_up=tuple(
            (fleet.names[rows.item(position)], scores.item(position))
            for position in choice.runners_up
        ),
        feasible=rows.size,
        total=len(fleet),
        counts=tuple(walk.counts),
        faults=_faults(walk, ratings),
    )


def _faults(walk: _Walk, ratings: list[Rating]) -> tuple[Fault, ...]:
    policy = ScoreFailure.DEFAULT_SCORE.value
    return *walk.faults, *(Fault(r.plugin, policy, r.failure) for r in ratings if r.failure)
