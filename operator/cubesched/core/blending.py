"""From the score plugins' answers to one score a node: the weighted mean of those that apply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cubesched.core.answers import ask_scores, await_scores
from cubesched.core.errors import PluginError
from cubesched.core.pipeline import (
    Adjustment,
    NotApplicable,
    Pipeline,
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
            plugin = entry.plugin
            try:
                if isinstance(plugin, WaitingScore):
                    scores = await await_scores(plugin, fleet, request, rows)
                else:
                    scores = ask_scores(plugin, fleet, request, rows)
            except PluginError as error:
                ratings.append(_default(entry, rows.size, error, pipeline.score_failure))
                continue
            if not isinstance(scores, NotApplicable):
                ratings.append(Rating(plugin.name, entry.weight, scores))
    return ratings


def _default(entry: WeightedScore, size: int, error: PluginError, failure: ScoreFailure) -> Rating:
    """Return what stands in for a plugin that failed; raise its error under fail-closed."""
    if failure is ScoreFailure.FAIL_CLOSED:
        raise error
    default = np.full(size, entry.default_score)
    return Rating(entry.plugin.name, entry.weight, default, failure=error.message)


def final_scores(
    fleet: Snapshot, rows: Ints, ratings: Sequence[Rating], adjustments: Sequence[Adjustment]
) -> Floats:
    """Return the blended scores, adjusted; nodes that nothing rates have nothing to adjust."""
    scores = blend(ratings, rows.size)
    if adjustments and ratings:
        for adjustment in adjustments:
            scores = adjustment.adjust(fleet, rows, scores)
    return scores


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
