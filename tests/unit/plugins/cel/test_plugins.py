"""What an expression does as a filter and as a score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.builders import UNKNOWN, a_node, a_pipeline, a_request, a_snapshot
from tests.unit.plugins.cel.asking import scores, verdicts

from cubesched.core.cycle import decide
from cubesched.core.decision import Placed
from cubesched.core.errors import PluginArgsInvalid, PluginError
from cubesched.core.pipeline import Filter, Judged, Miss, Score, WeightedScore
from cubesched.plugins.cel.plugins import expr_filter, expr_score
from cubesched.plugins.kinds import build_filter, build_score
from cubesched.plugins.listing import Listing, Surroundings

NODES = [
    a_node("a", labels={"zone": "a"}, creating=3, cpu_util_percent=30.0),
    a_node("b", labels={"zone": "b", "x.io/gen": "2"}, creating=9, cpu_util_percent=UNKNOWN),
    a_node("c", creating=12, cpu_util_percent=70.0),
]
FLEET = a_snapshot(NODES)
ROWS = np.arange(len(NODES))


def test_a_filter_keeps_the_nodes_for_which_it_is_true() -> None:
    assert verdicts("node.creating < 8", FLEET) == [True, False, False]


def test_a_filter_that_is_true_of_every_node_says_so_without_a_mask() -> None:
    assert expr_filter("f", 'request.labels.workload == "x"').keep(
        FLEET, a_request(labels={"workload": "x"})
    ) is None  # fmt: skip


def test_a_filter_that_is_false_for_the_request_drops_every_node() -> None:
    assert verdicts("request.priority > 5", FLEET) == [False, False, False]


def test_an_error_on_one_node_leaves_the_others_judged() -> None:
    missing = "no such key: zone"

    assert verdicts('node.labels["zone"] == "a"', FLEET) == [True, False, missing]


def test_what_failed_is_not_kept() -> None:
    answer = expr_filter("f", 'node.labels.zone != "a"').keep(FLEET, a_request())

    assert isinstance(answer, Judged)
    assert answer.keep.tolist() == [False, True, False]
    assert answer.failed.tolist() == [False, False, True]


def test_an_unknown_metric_is_an_error_and_no_zero() -> None:
    unknown = "node.cpu_util is not known"

    assert verdicts("node.cpu_util < 60.0", FLEET) == [True, unknown, False]
    assert verdicts("node.cpu_util < 60.0 || node.creating > 8", FLEET) == [True, True, True]
    assert verdicts("has(node.cpu_util) && node.cpu_util < 60.0", FLEET) == [True, False, False]


def test_an_error_of_the_request_is_an_error_on_every_node() -> None:
    assert verdicts('request.labels.team == "a"', FLEET) == ["no such key: team"] * 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node.creating < 8", [("excluded by f", 3)]),
        (
            'node.labels.zone == "x"',
            [("excluded by f", 2), ("error in f: no such key: zone", 1)],
        ),
        ("request.cpu_millis / 0 == 1", [("error in f: division by zero", 3)]),
    ],
)
def test_reasons_tell_errors_from_exclusions(text: str, expected: list[tuple[str, int]]) -> None:
    assert expr_filter("f", text).reasons(FLEET, a_request(), ROWS) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node.creating < 8", Miss(1, "node.creating is 9, want < 8")),
        ("8 > node.creating", Miss(1, "node.creating is 9, want < 8")),
        ("node.cpu_util < 60.0", Miss(2, "node.cpu_util is 70, want < 60")),
        ("node.creating == 11", Miss(2, "node.creating is 12, want == 11")),
        ("node.creating != 9", None),
        ("node.creating < node.mvm_num", None),
        ("node.creating < 8 || false", None),
        ('node.zone == "x"', None),
        ("node.creating < request.cpu_millis / 0", None),
    ],
)
def test_the_nearest_miss_is_told_of_a_number_and_its_bound(text: str, expected: Any) -> None:
    rows = np.array([1, 2])

    assert expr_filter("f", text).nearest(FLEET, a_request(), rows) == expected


def test_nothing_is_near_where_no_value_is_known() -> None:
    flt = expr_filter("f", "node.cpu_util < 60.0")

    assert flt.nearest(FLEET, a_request(), np.array([1])) is None
    assert flt.nearest(FLEET, a_request(), np.array([], np.int64)) is None


def test_a_score_is_the_value_on_the_rows_asked_about() -> None:
    score = expr_score("s", "node.cpu_util < 60.0 ? 80.0 : 20.0")

    answer = score.score(FLEET, a_request(), np.array([2, 0]))

    assert isinstance(answer, np.ndarray)
    assert answer.tolist() == [20.0, 80.0]


def test_ints_become_doubles_and_constants_columns() -> None:
    assert scores("node.creating", FLEET) == [3.0, 9.0, 12.0]
    assert scores("80", FLEET) == [80.0] * 3
    assert scores("request.cpu_millis / 50", FLEET) == [20.0] * 3


def test_any_error_among_the_rows_of_a_score_is_a_failure_that_names_it() -> None:
    score = expr_score("by zone", 'node.labels.zone == "a" ? 1.0 : 2.0')

    with pytest.raises(PluginError) as caught:
        score.score(FLEET, a_request(), ROWS)
    assert str(caught.value) == "by zone: no such key: zone"
    assert score.score(FLEET, a_request(), ROWS[:2]).tolist() == [1.0, 2.0]


def test_an_entry_of_type_expr_is_built_from_its_text() -> None:
    flt = build_filter(Listing("f", type="expr", expr="node.creating < 8"), Surroundings())
    score = build_score(Listing("s", type="expr", expr="node.creating"), Surroundings())

    assert (flt.name, score.name) == ("f", "s")


def test_every_problem_of_an_entry_has_its_place() -> None:
    listing = Listing("f", type="expr", expr="node.nope < 1 &&\n 1 < node.cpu_util")

    with pytest.raises(PluginArgsInvalid) as caught:
        build_filter(listing, Surroundings())

    assert caught.value.problems == (
        ("expr 1:6", "undefined field 'nope' of node"),
        ("expr 2:2", "cannot compare int with double; write 1.0"),
    )


def test_a_pipeline_places_by_expressions() -> None:
    flt: Filter = expr_filter("calm", "node.creating < 10")
    score: Score = expr_score("s", "double(node.creating)")
    pipeline = replace(a_pipeline(WeightedScore(score, 1.0, 0.0)), filters=(flt,))

    decision = decide(FLEET, a_request(), pipeline)

    assert isinstance(decision, Placed)
    assert decision.node == "b"
