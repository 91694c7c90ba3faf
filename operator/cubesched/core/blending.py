"""From the score plugins' answers to one score a node: the weighted mean of those that apply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cubesched.core.answers import ask_scores, await_scores
from cubesched.core.errors import PluginError
from cubesched.core.pipeline import (
    NotApplicable,
    Pipeline,
    Score,
    ScoreFailure,
    WaitingScore,
    WeightedScore,
)
from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Rating:
    """One applicable plugin's answer, a score in 0..100 for each feasible row."""

    plugin: str
    weight: float
    scores: Floats
    failure: str = ""
    """Why the plugin failed, where its default score stands in for all rows."""


async def rate(fleet: Snapshot, request: Request, pipeline: Pipeline, rows: Ints) -> list[Rating]:
    """Ask every score plugin about `rows`; a failure takes the Profile's score policy.

    Raises PluginError under fail-closed. Suspends only where a plugin is waited for.
    """
    ratings = []
    # What divides by zero shows in the answer and is judged there, for all plugins alike.
    with np.errstate(all="ignore"):  # each task's own, also while it is suspended
        for entry in pipeline.scores:
            rating = await _rating(fleet, request, entry, rows, pipeline.score_failure)
            if rating is not None:
                ratings.append(rating)
    return ratings


async def _rating(
    fleet: Snapshot, request: Request, entry: WeightedScore, rows: Ints, failure: ScoreFailure
) -> Rating | None:
    try:
        scores = await _scores(entry.plugin, fleet, request, rows)
    except PluginError as error:
        if failure is ScoreFailure.FAIL_CLOSED:
            raise
        default = np.full(rows.size, entry.default_score)
        return Rating(entry.plugin.name, entry.weight, default, failure=error.message)
    if isinstance(scores, NotApplicable):
        return None
    return Rating(entry.plugin.name, entry.weight, scores)


async def _scores(
    plugin: Score | WaitingScore, fleet: Snapshot, request: Request, rows: Ints
) -> Floats | NotApplicable:
    if isinstance(plugin, WaitingScore):
        return await await_scores(plugin, fleet, request, rows)
    return ask_scores(plugin, fleet, request, rows)


def blend(ratings: Sequence[Rating], size: int) -> Floats:
    """Return the weighted mean of the ratings, within 0..100; all 0 where nothing applies.

    Weights are taken relative to the largest, so that no finite weight can overflow the sum.
    """
    if not ratings:
        return np.zeros(size)
    largest = max(rating.weight for rating in ratings)
    shares = [rating.weight / largest for rating in ratings]
    whole = sum(shares)
    total = ratings[0].scores * (shares[0] / whole)
    highest = 100.0 * (shares[0] / whole)
    for rating, share in zip(ratings[1:], shares[1:], strict=True):
        total += rating.scores * (share / whole)
        highest += 100.0 * (share / whole)
    if highest > 100.0:  # else no sum of less is rounded to more either
        np.minimum(total, 100.0, out=total)
    return total
