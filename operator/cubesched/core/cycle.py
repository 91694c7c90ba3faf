"""One decision: guards, constraints, filters, scores, selection, on one version of the fleet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cubesched.core.answers import ask_mask
from cubesched.core.blending import Rating, blend, rate
from cubesched.core.decision import Decision, Placed, Reason, Rejected, ScorePart, StageCount
from cubesched.core.errors import PluginError
from cubesched.core.pipeline import Filter, Pipeline
from cubesched.core.request import Request
from cubesched.core.selection import Choice, select
from cubesched.core.snapshot import Bools, Floats, Ints, Safety, Snapshot

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


def decide(
    fleet: Snapshot, request: Request, pipeline: Pipeline, *, prefer_own: bool = False
) -> Decision:
    """Place `request` on one of the fleet's nodes, or say why none takes it.

    `prefer_own` keeps to this replica's nodes where one is among the best (see `selection`).
    """
    counts: list[StageCount] = []
    try:
        rows = _feasible_rows(fleet, request, pipeline, counts)
        if not rows.size:
            return Rejected(_why_none(fleet, request), tuple(counts), len(fleet))
        ratings = rate(fleet, request, pipeline, rows)
    except PluginError as failure:
        return Rejected(
            Reason.PLUGIN_FAILED, tuple(counts), len(fleet), failure.plugin, failure.message
        )
    scores = blend(ratings, rows.size)
    choice = select(
        fleet, request, pipeline.selection, rows=rows, scores=scores, prefer_own=prefer_own
    )
    return _placed(fleet, rows, scores, ratings, choice, counts)


def feasible_rows(fleet: Snapshot, request: Request, pipeline: Pipeline) -> Ints:
    """Return the rows of the nodes that could take `request` now.

    Raises PluginError when a stage cannot answer.
    """
    return _feasible_rows(fleet, request, pipeline, [])


def stages(pipeline: Pipeline) -> Iterator[tuple[str, Filter]]:
    """Yield (kind, stage) in the order in which nodes pass them."""
    for stage in pipeline.guards:
        yield "guard", stage
    for stage in pipeline.constraints:
        yield "constraint", stage
    for stage in pipeline.filters:
        yield "filter", stage


def _feasible_rows(
    fleet: Snapshot, request: Request, pipeline: Pipeline, counts: list[StageCount]
) -> Ints:
    """Return the rows that pass every stage; note in `counts` who was first to reject the rest.

    Every stage looks at all rows: cheaper than gathering survivors, unless few survive.
    """
    alive: Bools | None = None
    left = len(fleet)
    for kind, stage in stages(pipeline):
        if not left:
            break
        mask = ask_mask(stage, fleet, request)
        if mask is None:
            continue
        alive = mask.copy() if alive is None else np.bitwise_and(alive, mask, out=alive)
        before, left = left, int(np.count_nonzero(alive))
        if left < before:
            counts.append(StageCount(kind, stage.name, before - left))
    return np.arange(left) if alive is None else alive.nonzero()[0]


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
    fleet: Snapshot,
    rows: Ints,
    scores: Floats,
    ratings: list[Rating],
    choice: Choice,
    counts: list[StageCount],
) -> Placed:
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
        counts=tuple(counts),
        warnings=tuple(rating.plugin for rating in ratings if rating.is_default),
    )
