"""20,000 random expressions on 24 hostile nodes, and 6,000 mutated ones, beside Google's C++ CEL.

Prints how often each operator and function occurred.
"""

from __future__ import annotations

import pytest
from tests.unit.plugins.cel.oracle import Trial

EXPRESSIONS = 20_000
MUTATED = 6_000
LEAST_OCCURRENCES = 100


@pytest.mark.timeout(600)
def test_random_expressions_have_the_same_values_and_errors() -> None:
    outcome = Trial(20_000).compare(EXPRESSIONS)

    for name, number in sorted(outcome.used.items()):
        print(f"{number:6} {name}")
    print(f"{outcome.results} results, {outcome.errors} of them errors; refused {outcome.refused}")
    assert outcome.disagreements == []
    assert outcome.compared == EXPRESSIONS
    assert min(outcome.used.values()) >= LEAST_OCCURRENCES


@pytest.mark.timeout(600)
def test_no_mutated_expression_is_accepted_that_is_refused_there() -> None:
    trial = Trial(6_000)

    ours, both = trial.mutate(MUTATED)

    print(f"{ours} of {MUTATED} mutated expressions accepted here, {both} by both")
    assert trial.outcome.disagreements == []
    assert ours == both
