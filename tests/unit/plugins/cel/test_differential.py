"""Our expressions agree with Google's C++ runtime: a slice of what tests/differential runs."""

from __future__ import annotations

import pytest
from tests.unit.plugins.cel.oracle import Trial


@pytest.mark.parametrize("seed", [1, 2])
def test_random_expressions_have_the_same_values_and_errors(seed: int) -> None:
    outcome = Trial(seed).compare(1_250)

    assert outcome.disagreements == []
    assert 0.1 < outcome.errors / outcome.results < 0.5


def test_no_mutated_expression_is_accepted_that_is_refused_there() -> None:
    trial = Trial(3)

    ours, both = trial.mutate(1_000)

    assert trial.outcome.disagreements == []
    assert ours == both > 100
