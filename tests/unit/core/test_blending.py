"""The weighted mean of those that apply."""

from __future__ import annotations

import numpy as np
import pytest

from cubesched.core.blending import Rating, blend


def a_rating(weight: float, *scores: float) -> Rating:
    return Rating(f"plugin-{weight}", weight, np.array(scores))


def test_scores_are_averaged_by_weight() -> None:
    blended = blend([a_rating(1.0, 0.0, 100.0), a_rating(3.0, 100.0, 50.0)], 2)

    assert blended == pytest.approx([75.0, 62.5])


def test_one_rating_is_taken_as_it_is() -> None:
    assert blend([a_rating(0.1, 33.3, 100.0)], 2).tolist() == [33.3, 100.0]


def test_nothing_applicable_is_all_zero() -> None:
    assert blend([], 3).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1.0, 1e308, 1.7e308])
def test_no_finite_weight_overflows_the_mean(weight: float) -> None:
    blended = blend([a_rating(weight, 20.0, 100.0), a_rating(weight, 40.0, 100.0)], 2)

    assert blended == pytest.approx([30.0, 100.0])


def test_a_rating_is_not_changed_by_blending() -> None:
    ratings = [a_rating(2.0, 10.0, 20.0), a_rating(2.0, 30.0, 40.0)]

    blend(ratings, 2)

    assert ratings[0].scores.tolist() == [10.0, 20.0]
    assert ratings[1].scores.tolist() == [30.0, 40.0]
