"""From the score plugins' answers to one score a node: the weighted mean of those that apply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cubesched.core.answers import ask_scores
from cubesched.core.errors import PluginError
from cubesched.core.pipeline import NotApplicable, Pipeline, ScoreFailure
from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Rating:
    """One applicable plugin's answer, a score in 0..100 for each feasible row."""

    plugin: str
    weight: float
    scores: Floats
    is_default: bool = False
    """The plugin failed and its default score stands in for all rows."""


def rate(fleet: Snapshot, request: Request, pipeline: Pipeline, rows: Ints) -> list[Rating]:
    """Ask every score plugin about `rows`; a failure takes the Profile's score policy.

    Raises PluginError under fail-closed.
    """
    ratings = []
    for entry in pipeline.scores:
        name = entry.plugin.name
        try:
            scores = ask_scores(entry.plugin, fleet, request, rows)
        except PluginError:
            if pipeline.score_failure is ScoreFailure.FAIL_CLOSED:
                raise
            default = np.full(rows.size, entry.default_score)
            ratings.append(Rating(name, entry.weight, default, is_default=True))
        else:
            if not isinstance(scores, NotApplicable):
                ratings.append(Rating(name, entry.weight, scores))
    return ratings


def blend(ratings: Sequence[Rating], size: int) -> Floats:
    """Return the weighted mean of the ratings, within 0..100; all 0 where nothing applies.

    Weights are taken relative to the largest, so that no finite weight can overflow the sum.
    """
    if not ratings:
        return np.zeros(size)
    largest = max(rating.weight for rating in ratings)
    shares = [rating.weight / largest for rating in ratings]
    total = ratings[0].scores * shares[0]
    for rating, share in zip(ratings[1:], shares[1:], strict=True):
        total += rating.scores if share == 1.0 else rating.scores * share
    total /= sum(shares)
    return np.minimum(total, 100.0, out=total)
