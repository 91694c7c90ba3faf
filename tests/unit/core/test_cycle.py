"""One decision from guards to choice: reasons, counts, and what failing plugins do to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.unit.builders import GIB, a_node, a_pipeline, a_request, a_snapshot

from cubesched.core.cycle import decide
from cubesched.core.decision import Placed, Reason, Rejected, StageCount
from cubesched.core.errors import PluginError
from cubesched.core.pipeline import (
    NOT_APPLICABLE,
    Filter,
    Miss,
    ScoreFailure,
    SelectionMethod,
    WeightedScore,
)
from cubesched.core.request import Request
from cubesched.core.snapshot import Ints, Safety, Snapshot, Taint
from cubesched.plugins.builtin.guards.cpu import Cpu
from cubesched.plugins.builtin.guards.template_locality import TemplateLocality

LEAST_ALLOCATED: tuple[str, Mapping[str, object], float] = ("least_allocated", {}, 1.0)
NODES = [a_node(f"node-{number}", cpu_used_millis=1000 * number) for number in range(5)]


@dataclass(frozen=True)
class FakeScore:
    """Answers what it is told to, whatever that is."""

    answer: Callable[[int], Any]
    name: str = "fake"

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Any:
        return self.answer(rows.size)


@dataclass(frozen=True)
class FakeFilter:
    """Answers what it is told to, whatever that is."""

    answer: Callable[[int], Any]
    name: str = "fake"

    def keep(self, fleet: Snapshot, request: Request) -> Any:
        return self.answer(len(fleet))

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        return [("faked", int(rows.size))]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        return None


def broken(_: int) -> Any:
    raise ZeroDivisionError("division by zero")


def plugin_failing(_: int) -> Any:
    raise PluginError("inner", "no answer in 100 ms")


def a_fake_score(answer: Callable[[int], Any], *, default_score: float = 0.0) -> WeightedScore:
    return WeightedScore(FakeScore(answer), weight=1.0, default_score=default_score)


def one_bad(value: float) -> Callable[[int], Any]:
    """Good scores but for the last."""
    return lambda size: np.array([50.0] * (size - 1) + [value])


BAD_SCORES: dict[str, Callable[[int], Any]] = {
    "NaN": one_bad(float("nan")),
    "inf": one_bad(float("inf")),
    "-inf": one_bad(float("-inf")),
    "just above": one_bad(100.0000001),
    "just below": one_bad(-0.0001),
    "NaN beside -0": lambda size: np.array([-0.0] * (size - 1) + [float("nan")]),
    "just above beside -0": lambda size: np.array([-0.0] * (size - 1) + [100.0000001]),
    "raises": broken,
    "plugin error": plugin_failing,
    "none": lambda _: None,
    "empty": lambda _: np.array([]),
    "too short": lambda size: np.zeros(size - 1),
    "two-dimensional": lambda size: np.zeros((size, 1)),
    "a list": lambda size: [50.0] * size,
    "ints": lambda size: np.zeros(size, dtype=np.int64),
    "bools": lambda size: np.zeros(size, dtype=np.bool_),
}
BAD_MASKS: dict[str, Callable[[int], Any]] = {
    "raises": broken,
    "plugin error": plugin_failing,
    "a bool": lambda _: True,
    "a list": lambda size: [True] * size,
    "too long": lambda size: np.ones(size + 1, dtype=np.bool_),
    "ints": lambda size: np.ones(size, dtype=np.int64),
}


def test_the_emptiest_node_is_chosen_and_its_score_explained() -> None:
    pipeline = a_pipeline(("least_allocated", {}, 2.0), ("balanced_allocation", {}, 1.0))

    decision = decide(a_snapshot(NODES), a_request(), pipeline)

    assert isinstance(decision, Placed)
    assert decision.node == "node-0"
    assert [(part.plugin, part.weight) for part in decision.parts] == [
        ("least_allocated", 2.0),
        ("balanced_allocation", 1.0),
    ]
    least, balanced = (part.score for part in decision.parts)
    assert decision.score == pytest.approx((2 * least + balanced) / 3)
    assert [name for name, _ in decision.runners_up] == ["node-1", "node-2"]
    assert (decision.feasible, decision.total, decision.counts) == (5, 5, ())
    assert decision.faults == ()


def test_the_first_failing_stage_gets_the_node() -> None:
    nodes = [
        a_node("a", safety=Safety.STALE, cpu_limit_millis=0),
        a_node("b", cpu_limit_millis=0, memory_limit_bytes=0),
        a_node("c", memory_limit_bytes=0),
        a_node("d", taints=(Taint("t", "", "NoSchedule"),), labels={"zone": "a"}),
        a_node("e", labels={"zone": "b"}),
        a_node("f", labels={"zone": "a"}),
    ]
    pipeline = a_pipeline(filters={"node_labels": {"matchLabels": {"zone": "a"}}})

    decision = decide(a_snapshot(nodes), a_request(), pipeline)

    assert isinstance(decision, Placed)
    assert decision.node == "f"
    assert decision.counts == (
        StageCount("guard", "node_safety", 1),
        StageCount("guard", "cpu", 1),
        StageCount("guard", "mem", 1),
        StageCount("constraint", "taints", 1),
        StageCount("filter", "node_labels", 1),
    )


STALE = [a_node("a", safety=Safety.STALE), a_node("b", safety=Safety.NOT_READY)]
SMALL = [a_node("c", cpu_limit_millis=500), a_node("d", memory_limit_bytes=GIB // 2)]
FULL = [a_node("e", cpu_used_millis=64_000)]


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([], Reason.NO_NODES),
        (STALE, Reason.STALE_METRICS),
        ([a_node("x", safety=Safety.NEVER_REPORTED)], Reason.STALE_METRICS),
        ([a_node("x", safety=Safety.CLOCK_SKEW)], Reason.STALE_METRICS),
        ([a_node("x", safety=Safety.AWAITING_REPORT)], Reason.STALE_METRICS),
        ([*STALE, a_node("x", safety=Safety.UNSCHEDULABLE)], Reason.UNSCHEDULABLE),
        ([a_node("x", safety=Safety.STALE, cpu_limit_millis=0)], Reason.STALE_METRICS),
        (SMALL, Reason.NEVER_FITS),
        ([*SMALL, *STALE], Reason.UNSCHEDULABLE),
        ([*SMALL, a_node("x", disk_limit_bytes=0)], Reason.NEVER_FITS),
        ([*SMALL, *FULL], Reason.UNSCHEDULABLE),
    ],
)
def test_the_reason_blames_the_right_thing(nodes: list[Any], reason: Reason) -> None:
    decision = decide(a_snapshot(nodes), a_request(disk_bytes=1), a_pipeline())

    assert isinstance(decision, Rejected)
    assert decision.reason is reason
    assert sum(count.rejected for count in decision.counts) == decision.total == len(nodes)


def test_a_mixed_fleet_has_counts_for_each_stage_that_add_up() -> None:
    nodes = [
        *(a_node(f"stale-{number}", safety=Safety.STALE) for number in range(2)),
        *(a_node(f"small-{number}", cpu_limit_millis=10) for number in range(3)),
        a_node("filtered", labels={"gpu": "true"}),
    ]

    decision = decide(a_snapshot(nodes), a_request(), a_pipeline(filters={"scarce_resource": {}}))

    assert isinstance(decision, Rejected)
    assert decision.counts == (
        StageCount("guard", "node_safety", 2),
        StageCount("guard", "cpu", 3),
        StageCount("filter", "scarce_resource", 1),
    )


@pytest.mark.parametrize("answer", BAD_MASKS.values(), ids=list(BAD_MASKS))
@pytest.mark.parametrize("kind", ["guards", "constraints", "filters"])
def test_a_failing_mask_fails_the_attempt(kind: str, answer: Callable[[int], Any]) -> None:
    stage: Filter = FakeFilter(answer)
    pipeline = replace(a_pipeline(), **{kind: (stage,)})  # type: ignore[arg-type]

    decision = decide(a_snapshot(NODES), a_request(), pipeline)

    assert isinstance(decision, Rejected)
    assert decision.reason is Reason.PLUGIN_FAILED
    assert decision.failed_plugin in ("fake", "inner")
    assert decision.detail


def test_a_filter_behind_the_last_node_is_not_asked() -> None:
    pipeline = replace(a_pipeline(), filters=(FakeFilter(broken),))

    decision = decide(a_snapshot(FULL), a_request(), pipeline)

    assert isinstance(decision, Rejected)
    assert decision.reason is Reason.UNSCHEDULABLE


@pytest.mark.parametrize("answer", BAD_SCORES.values(), ids=list(BAD_SCORES))
def test_a_bad_score_becomes_the_default_for_all_and_the_others_decide(
    answer: Callable[[int], Any],
) -> None:
    alone = decide(a_snapshot(NODES), a_request(), a_pipeline(LEAST_ALLOCATED))

    decision = decide(
        a_snapshot(NODES),
        a_request(),
        a_pipeline(a_fake_score(answer, default_score=40.0), LEAST_ALLOCATED),
    )

    assert isinstance(decision, Placed)
    assert isinstance(alone, Placed)
    assert decision.node == alone.node
    assert [name for name, _ in decision.runners_up] == [name for name, _ in alone.runners_up]
    assert decision.score == pytest.approx((40.0 + alone.score) / 2)
    assert decision.parts[0].score == 40.0
    assert [fault.plugin for fault in decision.faults] == ["fake"]


@pytest.mark.parametrize("answer", BAD_SCORES.values(), ids=list(BAD_SCORES))
def test_a_bad_score_fails_the_attempt_under_fail_closed(answer: Callable[[int], Any]) -> None:
    pipeline = a_pipeline(a_fake_score(answer), score_failure=ScoreFailure.FAIL_CLOSED)

    decision = decide(a_snapshot(NODES), a_request(), pipeline)

    assert isinstance(decision, Rejected)
    assert decision.reason is Reason.PLUGIN_FAILED
    assert decision.detail


@pytest.mark.parametrize("policy", list(ScoreFailure))
def test_minus_zero_is_a_score(policy: ScoreFailure) -> None:
    pipeline = a_pipeline(a_fake_score(lambda size: np.full(size, -0.0)), score_failure=policy)

    decision = decide(a_snapshot(NODES), a_request(), pipeline)

    assert isinstance(decision, Placed)
    assert (decision.score, decision.faults) == (0.0, ())


@pytest.mark.parametrize("policy", list(ScoreFailure))
def test_not_applicable_carries_no_weight_and_is_no_failure(policy: ScoreFailure) -> None:
    silent = a_fake_score(lambda _: NOT_APPLICABLE, default_score=100.0)

    alone = decide(a_snapshot(NODES), a_request(), a_pipeline(LEAST_ALLOCATED))
    decision = decide(
        a_snapshot(NODES), a_request(), a_pipeline(silent, LEAST_ALLOCATED, score_failure=policy)
    )

    assert decision == alone


@pytest.mark.parametrize("scores", [(), (("image_score", {}, 1.0),)])
def test_without_an_applicable_score_all_are_zero_and_ties_spread(scores: Any) -> None:
    fleet = a_snapshot([a_node(f"node-{number}") for number in range(10)])

    chosen = [decide(fleet, a_request(f"uid-{n}"), a_pipeline(*scores)) for n in range(2000)]

    numbers = np.bincount([d.row for d in chosen if isinstance(d, Placed)], minlength=10)
    assert all(isinstance(d, Placed) and d.score == 0.0 and d.parts == () for d in chosen)
    assert numbers.sum() == 2000
    assert numbers.max() / numbers.min() < 2


def test_a_decision_leaves_the_fleet_untouched() -> None:
    fleet = a_snapshot(NODES)
    before = {name: getattr(fleet, name).copy() for name in ("cpu_used_millis", "safety", "own")}

    decide(fleet, a_request(), a_pipeline(("resource_fit_score", {}, 1.0)))

    for name, column in before.items():
        assert np.array_equal(getattr(fleet, name), column)


def test_a_template_mask_is_not_written_into() -> None:
    nodes = [a_node("a", templates=("t",)), a_node("b", templates=("t",), cpu_limit_millis=0)]
    fleet = a_snapshot(nodes)
    template_first = replace(a_pipeline(), guards=(TemplateLocality(), Cpu()))

    decide(fleet, a_request(template_id="t"), template_first)

    assert fleet.templates["t"].all()


def test_spread_takes_the_node_with_the_fewest_sandboxes_of_the_best() -> None:
    nodes = [
        a_node("best", sandboxes=9),
        a_node("next", cpu_used_millis=1000, sandboxes=2),
        a_node("third", cpu_used_millis=2000, sandboxes=2),
        a_node("empty", cpu_used_millis=30_000, sandboxes=0),
    ]
    pipeline = a_pipeline(("least_allocated", {}, 1.0), method=SelectionMethod.SPREAD, top_n=3)

    decision = decide(a_snapshot(nodes), a_request(), pipeline)

    assert isinstance(decision, Placed)
    assert decision.node == "next"
    assert [name for name, _ in decision.runners_up] == ["best", "third"]
