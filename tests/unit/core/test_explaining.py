"""Decisions in words: right counts, bounded, one line where one line is promised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.unit.builders import GIB, NodeFacts, a_node, a_pipeline, a_request, a_snapshot

from cubesched.core import explaining
from cubesched.core.counterfactuals import MOST, counterfactuals
from cubesched.core.cycle import decide
from cubesched.core.decision import Fault, Placed, Reason, Rejected, ScorePart
from cubesched.core.pipeline import Filter, Miss, Pipeline
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Safety, Snapshot


@dataclass(frozen=True)
class Chatty:
    """A filter that keeps nothing and says too much."""

    text: str
    name: str = "chatty"

    def keep(self, fleet: Snapshot, request: Request) -> Bools:
        return np.zeros(len(fleet), dtype=np.bool_)

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        return [(self.text, int(rows.size))]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        return Miss(0, self.text)


@dataclass(frozen=True)
class Tongueless:
    """A filter that keeps nothing and cannot say why."""

    name: str = "tongueless"

    def keep(self, fleet: Snapshot, request: Request) -> Bools:
        return np.zeros(len(fleet), dtype=np.bool_)

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        raise RuntimeError("no words")

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        raise RuntimeError("no words")


def with_filters(*filters: Filter) -> Pipeline:
    return replace(a_pipeline(), filters=filters)


def told(
    nodes: Sequence[NodeFacts], pipeline: Pipeline | None = None, **request_facts: Any
) -> tuple[str, str]:
    fleet, request = a_snapshot(nodes), a_request(**request_facts)
    pipeline = pipeline or a_pipeline()
    rejected = decide(fleet, request, pipeline)
    assert isinstance(rejected, Rejected)
    parts = (rejected, fleet, request, pipeline)
    helps = counterfactuals(*parts)
    return explaining.message(*parts), explaining.explanation(*parts, helps=helps)


MIXED = [
    *(a_node(f"full-{number}", cpu_used_millis=62_200 + number) for number in range(3)),
    *(a_node(f"stale-{number}", safety=Safety.STALE) for number in range(2)),
    *(a_node(f"busy-{number}", cpu_util_percent=90.0) for number in range(2)),
    a_node("other"),
]


def test_the_message_counts_by_text_most_first_then_by_name() -> None:
    message, _ = told(MIXED, cpu_millis=2000, refused_nodes=("other",))

    assert message == (
        "0/8 nodes are available: 3 insufficient cpu, 2 cpu utilisation too high, "
        "2 stale metrics, 1 refused this request lately."
    )


def test_the_explanation_has_a_line_for_each_stage_with_its_nearest_miss() -> None:
    message, explanation = told(MIXED, cpu_millis=2000, refused_nodes=("other",))

    assert explanation.splitlines() == [
        message,
        "  node_safety: 2 nodes rejected: stale metrics",
        (
            "  cpu: 5 nodes rejected (3 insufficient cpu, 2 cpu utilisation too high); "
            "nearest full-0: needs 2000m, 1800m free"
        ),
        "  refused: 1 node rejected: refused this request lately",
        "What would help:",
        "  2 nodes would fit once cpu utilisation there is lower: busy-0, busy-1",
        "  2 nodes would fit once metrics are fresh: stale-0, stale-1",
        "  1 node would fit with cpu <= 1800m: full-0",
        "  1 node would fit once the refusals there have passed: other",
    ]


def test_where_no_single_change_helps_it_is_said_so() -> None:
    nodes = [a_node("a", safety=Safety.STALE, sandbox_limit=0, cpu_util_percent=99.0)]

    _, explanation = told(nodes, cpu_millis=1000)

    assert explanation.splitlines()[-1] == explaining.NO_HELP


def test_no_nodes_is_said_plainly() -> None:
    message, explanation = told([])

    assert message == explanation == "0/0 nodes are available: there is no SandboxNode."


def test_stale_metrics_are_said_plainly() -> None:
    nodes = [a_node("a", safety=Safety.STALE), a_node("b", safety=Safety.NOT_READY)]

    message, _ = told(nodes)

    assert message == (
        "0/2 nodes are available: no node is Ready with fresh metrics: "
        "1 node not ready, 1 stale metrics."
    )


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"cpu_millis": 70_000}, "needs cpu 70000m, the largest has 64000m"),
        (
            {"cpu_millis": 70_000, "memory_bytes": 256 * GIB},
            "needs cpu 70000m, the largest has 64000m; needs memory 256Gi, the largest has 128Gi",
        ),
        (
            {"cpu_millis": 8000, "memory_bytes": 64 * GIB},
            "needs cpu 8000m, memory 64Gi, and no node has all of it",
        ),
    ],
)
def test_never_fits_names_the_largest_node(asked: dict[str, Any], text: str) -> None:
    nodes = [a_node("a", memory_limit_bytes=GIB), a_node("b", cpu_limit_millis=1000)]

    message, _ = told(nodes, **asked)

    assert message == f"0/2 nodes are available: even an empty node is too small: {text}."


def test_a_failed_plugin_is_named_with_what_it_said() -> None:
    rejected = Rejected(Reason.PLUGIN_FAILED, (), 3, "cel-1", "ZeroDivisionError: by\nzero")

    message = explaining.message(rejected, a_snapshot([]), a_request(), a_pipeline())

    assert "cel-1" in message
    assert "ZeroDivisionError: by zero" in message


HOSTILE = "a\x00b\nc\x1b[31md\u2028e\u202ef\tg" + "x" * 5000


def test_plugin_text_is_cut_and_stripped_of_what_does_not_print() -> None:
    message, explanation = told([a_node("a")], with_filters(Chatty(HOSTILE)))

    assert message.isprintable()
    assert len(message.encode()) <= explaining.MESSAGE_MAX_BYTES
    assert all(line.isprintable() for line in explanation.split("\n"))
    assert explanation.split("\n")[1].startswith("  chatty: 1 node rejected; nearest a: a b c ")
    assert explanation.split("\n")[2] == "What would help:"
    assert len(explanation.split("\n")) == 4


def test_a_stage_that_cannot_explain_itself_is_still_counted() -> None:
    message, explanation = told([a_node("a"), a_node("b")], with_filters(Tongueless()))

    assert message == "0/2 nodes are available: 2 rejected by tongueless."
    assert "  tongueless: 2 nodes rejected: rejected by tongueless" in explanation


def test_an_explanation_never_exceeds_its_bound_and_ends_on_a_whole_line() -> None:
    stages = [OneNode(number, f"filter-{number:03}-" + "é" * 100) for number in range(60)]
    nodes = [a_node(f"node-{number:03}") for number in range(60)]

    message, explanation = told(nodes, with_filters(*stages))

    assert len(message.encode()) <= explaining.MESSAGE_MAX_BYTES
    assert len(explanation.encode()) <= explaining.EXPLANATION_MAX_BYTES
    before, _, after = explanation.partition("What would help:\n")
    assert before.splitlines()[-1].startswith("  and ")
    assert len(after.splitlines()) == MOST


@dataclass(frozen=True)
class OneNode:
    """A filter that rejects one row."""

    row: int
    name: str

    def keep(self, fleet: Snapshot, request: Request) -> Bools:
        kept: Bools = np.arange(len(fleet)) != self.row
        return kept

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        return [(f"by {self.name}", int(rows.size))]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        return None


def test_a_fleet_that_has_changed_since_is_admitted() -> None:
    rejected = Rejected(Reason.UNSCHEDULABLE, (), 1)

    message = explaining.message(rejected, a_snapshot([a_node("a")]), a_request(), a_pipeline())

    assert message == "0/1 nodes are available: the fleet has changed."


def test_first_failures_and_feasible_rows_share_out_the_fleet() -> None:
    twice = a_node("twice", safety=Safety.STALE, cpu_limit_millis=0)
    fleet = a_snapshot([*MIXED, twice])

    rejects = explaining.rejects(fleet, a_request(cpu_millis=2000), a_pipeline())

    rows = np.concatenate([part.rows for part in rejects])
    assert [fleet.names[row] for row in np.setdiff1d(np.arange(9), rows).tolist()] == ["other"]
    assert len(set(rows.tolist())) == rows.size == 8


def test_a_placement_is_one_line_with_its_parts_and_the_next_two() -> None:
    nodes = [a_node(f"node-{number}", cpu_used_millis=6400 * number) for number in range(4)]
    pipeline = a_pipeline(("least_allocated", {}, 1.0), ("image_score", {}, 0.5))
    request = a_request(cpu_millis=6400, memory_bytes=128 * GIB // 10)
    placed = decide(a_snapshot(nodes), request, pipeline)
    assert isinstance(placed, Placed)

    assert explaining.placed_line(placed) == (
        "score 90.00 (least_allocated 90.00); next node-1 85.00, node-2 80.00; "
        "4 of 4 nodes feasible"
    )


def test_a_placement_names_weights_and_what_failed() -> None:
    placed = Placed(
        row=0,
        node="a",
        score=1.0,
        parts=(ScorePart("x", 0.7, 50.0), ScorePart("y", 1.0, 0.0)),
        runners_up=(),
        feasible=1,
        total=2,
        counts=(),
        faults=(Fault("y", "default-score", "broke"),),
    )

    assert explaining.placed_line(placed) == (
        "score 1.00 (x 50.00 x0.7, y 0.00 (failed: default)); 1 of 2 nodes feasible"
    )


@pytest.mark.parametrize("number", [0, 1, 3, 50])
def test_a_placement_line_never_exceeds_its_bound(number: int) -> None:
    placed = Placed(
        row=0,
        node="n" * 253,
        score=100.0,
        parts=tuple(ScorePart("é" * 63, 0.123456, 100.0) for _ in range(number)),
        runners_up=(("n" * 253, 99.9), ("m" * 253, 99.8)),
        feasible=10**6,
        total=10**6,
        counts=(),
    )

    line = explaining.placed_line(placed)

    assert len(line.encode()) <= explaining.PLACED_LINE_MAX_BYTES
    assert line.endswith("1000000 of 1000000 nodes feasible")
