"""Row by row the same verdicts that a decision counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tests.unit.builders import GIB, a_node, a_pipeline, a_request, a_snapshot
from tests.unit.core.test_properties import nodes, pipelines, requests

from cubesched.core.cycle import decide
from cubesched.core.decision import Placed
from cubesched.core.inspecting import FITS, Inspection, counted, inspect, only
from cubesched.core.pipeline import Pipeline, ScoreFailure, WeightedScore
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Floats, Ints, Safety, Snapshot, Taint

FLEET = [
    a_node("busy", cpu_util_percent=90.0),
    a_node("full", cpu_used_millis=63_500),
    a_node("fuller", cpu_used_millis=64_000),
    a_node("good", cpu_used_millis=6_400),
    a_node("best"),
    a_node("stale", safety=Safety.STALE),
    a_node("tainted", taints=(Taint("gpu", "", "NoSchedule"),)),
]


def inspected(**asked: Any) -> Inspection:
    pipeline = a_pipeline(("least_allocated", {}, 1.0))
    return inspect(a_snapshot(FLEET), a_request(**asked), pipeline)


def names(inspection: Inspection, rows: Ints) -> list[str]:
    return [inspection.fleet.names[row] for row in rows.tolist()]


def test_those_that_fit_come_by_score_then_those_that_came_furthest_nearest_first() -> None:
    inspection = inspected()

    assert names(inspection, inspection.ranked()) == [
        "best",
        "good",
        "tainted",
        "full",
        "busy",
        "fuller",
        "stale",
    ]


def test_why_names_numbers_where_there_are_any() -> None:
    inspection = inspected(cpu_millis=1000)
    row_of = inspection.fleet.row_of

    def why(name: str) -> str:
        return inspection.why(int(inspection.first[row_of[name]]), row_of[name])

    assert why("full") == "needs 1000m, 500m free"
    assert why("busy") == "cpu 90.0 % busy, must be below 80.0 %"
    assert why("stale") == "stale metrics"
    assert why("tainted") == "taint gpu:NoSchedule"


@given(nodes, requests, pipelines)
def test_it_counts_and_rates_as_the_decision_does(
    all_nodes: list[Any], request: Request, pipeline: Pipeline
) -> None:
    fleet = a_snapshot(all_nodes)

    inspection = inspect(fleet, request, pipeline)
    decision = decide(fleet, request, pipeline)

    found = [(count.stage.plugin.name, count.rejected) for count in counted(inspection)]
    assert found == [(count.plugin, count.rejected) for count in decision.counts]
    assert sorted(inspection.ranked().tolist()) == list(range(len(fleet)))
    if isinstance(decision, Placed):
        assert inspection.rows.size == decision.feasible
        assert inspection.scores[inspection.position(decision.row)] == decision.score
    else:
        assert inspection.rows.size == 0


@given(nodes, requests, pipelines)
def test_a_fleet_of_one_node_decides_as_that_node_did_among_all(
    all_nodes: list[Any], request: Request, pipeline: Pipeline
) -> None:
    fleet = a_snapshot(all_nodes)
    inspection = inspect(fleet, request, pipeline)

    for row, name in enumerate(fleet.names):
        decision = decide(only(fleet, row), request, pipeline)
        fits = inspection.first[row] == FITS
        assert isinstance(decision, Placed) is bool(fits)
        if isinstance(decision, Placed):
            assert decision.node == name
            assert decision.score == pytest.approx(inspection.scores[inspection.position(row)])


@dataclass(frozen=True)
class Broken:
    """Neither a filter nor a score that can answer."""

    name: str = "broken"

    def keep(self, fleet: Snapshot, request: Request) -> Bools:
        raise RuntimeError("no answer")

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        raise RuntimeError("no answer")

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> list[tuple[str, int]]:
        return []

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> None:
        return None


def test_a_filter_that_fails_keeps_all_and_says_so() -> None:
    pipeline = replace(a_pipeline(), filters=(Broken(),))

    inspection = inspect(a_snapshot(FLEET), a_request(), pipeline)

    assert inspection.rows.size == 2
    assert [stage.failure for stage in inspection.stages if stage.failure] == [
        "RuntimeError: no answer"
    ]


def test_scores_that_fail_closed_leave_none_and_say_so() -> None:
    pipeline = a_pipeline(WeightedScore(Broken(), 1.0, 0.0), score_failure=ScoreFailure.FAIL_CLOSED)

    inspection = inspect(a_snapshot(FLEET), a_request(), pipeline)

    assert inspection.failure == "broken: RuntimeError: no answer"
    assert inspection.scores.tolist() == [0.0, 0.0]


def test_one_node_is_cut_out_with_all_that_is_known_of_it() -> None:
    fleet = a_snapshot([a_node("a"), a_node("b", labels={"x": "1"}, templates=("t",))])

    one = only(fleet, 1)

    assert (len(one), one.names, one.row_of) == (1, ["b"], {"b": 0})
    assert one.templates["t"].tolist() == [True]
    assert one.labels["x"].tolist() == [1]
    assert np.shares_memory(one.cpu_limit_millis, fleet.cpu_limit_millis)
    assert decide(one, a_request(template_id="t", memory_bytes=GIB), a_pipeline()).total == 1
