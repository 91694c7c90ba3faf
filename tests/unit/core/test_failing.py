"""What a plugin's failure leads to: on single nodes, and as a whole."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.unit.builders import a_node, a_pipeline, a_request, a_snapshot
from tests.unit.scheduling.plugins import Slow, waiting_for
from typing_extensions import override

from cubesched.core import explaining
from cubesched.core.cycle import at_once, decide, decide_waiting, feasible_rows
from cubesched.core.decision import Fault, Placed, Reason, Rejected
from cubesched.core.errors import PluginError
from cubesched.core.pipeline import Filter, FilterFailure, Judged, Miss, Pipeline
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Snapshot

FLEET = a_snapshot([a_node("n1"), a_node("n2"), a_node("n3", cpu_used_millis=64_000)])


@dataclass
class Unsure:
    """Keeps some nodes, and cannot judge others."""

    keeps: tuple[bool, ...]
    fails: tuple[bool, ...]
    name: str = "unsure"

    def keep(self, fleet: Snapshot, request: Request) -> Bools | Judged | None:
        return Judged(np.array(self.keeps), np.array(self.fails), "no such key: zone")

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> list[tuple[str, int]]:
        return [("error in unsure", int(rows.size))]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        return None


class Broken(Unsure):
    @override
    def keep(self, fleet: Snapshot, request: Request) -> Bools | Judged | None:
        raise PluginError(self.name, "broke")


def filtered(plugin: Filter, failure: str) -> Pipeline:
    pipeline = a_pipeline(("least_allocated", {}, 1.0))
    return replace(pipeline, filters=(plugin,), filter_failure=FilterFailure(failure))


def test_fail_closed_loses_the_nodes_it_failed_on_and_counts_them_apart() -> None:
    pipeline = filtered(Unsure((True, True, True), (True, False, False)), "fail-closed")

    decision = decide(FLEET, a_request(), pipeline)

    assert isinstance(decision, Placed)
    assert decision.node == "n2"
    assert decision.faults == (Fault("unsure", "fail-closed", "no such key: zone", 1),)
    assert [(c.plugin, c.rejected, c.failed) for c in decision.counts] == [
        ("cpu", 1, 0),
        ("unsure", 1, 1),
    ]


def test_fail_open_keeps_them() -> None:
    pipeline = filtered(Unsure((False, False, True), (True, False, False)), "fail-open")

    decision = decide(FLEET, a_request(), pipeline)

    assert isinstance(decision, Placed)
    assert decision.node == "n1"
    assert decision.faults == (Fault("unsure", "fail-open", "no such key: zone", 1),)


@pytest.mark.parametrize("failure", ["fail-closed", "fail-open"])
def test_a_failure_on_a_node_that_is_out_already_is_none(failure: str) -> None:
    pipeline = filtered(Unsure((True, True, True), (False, False, True)), failure)

    decision = decide(FLEET, a_request(), pipeline)

    assert isinstance(decision, Placed)
    assert decision.faults == ()


def test_if_none_is_left_and_one_fell_to_an_error_the_plugin_failed() -> None:
    pipeline = filtered(Unsure((True, False, True), (True, False, False)), "fail-closed")

    decision = decide(FLEET, a_request(), pipeline)

    assert isinstance(decision, Rejected)
    assert (decision.reason, decision.failed_plugin) == (Reason.PLUGIN_FAILED, "unsure")
    assert explaining.message(decision, FLEET, a_request(), pipeline) == (
        "0/3 nodes are available: 2 error in unsure, 1 insufficient cpu."
    )


def test_if_none_is_left_and_none_fell_to_an_error_the_nodes_are_why() -> None:
    pipeline = filtered(Unsure((False, False, True), (False, False, False)), "fail-closed")

    decision = decide(FLEET, a_request(), pipeline)

    assert isinstance(decision, Rejected)
    assert decision.reason is Reason.UNSCHEDULABLE


def test_a_failed_call_ends_the_attempt_or_is_skipped() -> None:
    closed = decide(FLEET, a_request(), filtered(Broken((), ()), "fail-closed"))
    opened = decide(FLEET, a_request(), filtered(Broken((), ()), "fail-open"))

    assert isinstance(closed, Rejected)
    assert (closed.reason, closed.detail) == (Reason.PLUGIN_FAILED, "broke")
    assert isinstance(opened, Placed)
    assert opened.feasible == 2
    assert opened.faults == (Fault("unsure", "fail-open", "broke"),)


@pytest.mark.parametrize(
    "pipeline",
    [
        replace(a_pipeline(), guards=(Broken((), ()),)),
        replace(a_pipeline(), constraints=(Broken((), ()),)),
    ],
)
def test_a_guard_that_fails_ends_the_attempt_whatever_the_policy(pipeline: Pipeline) -> None:
    decision = decide(FLEET, a_request(), replace(pipeline, filter_failure=FilterFailure.FAIL_OPEN))

    assert isinstance(decision, Rejected)
    assert decision.reason is Reason.PLUGIN_FAILED


def test_a_mask_of_the_wrong_length_is_a_breach() -> None:
    pipeline = filtered(Unsure((True,), (False, False, False)), "fail-closed")

    decision = decide(FLEET, a_request(), pipeline)

    assert isinstance(decision, Rejected)
    assert decision.detail == "the mask is not 3 bools"


async def test_a_filter_that_is_waited_for_sees_only_what_is_left() -> None:
    slow = Slow(seconds=0.0, keeps=lambda node: node == "n2")

    decision, told = await decide_waiting(FLEET, a_request(), waiting_for(slow))

    assert isinstance(decision, Placed)
    assert (decision.node, decision.feasible) == ("n2", 1)
    assert [(c.plugin, c.rejected) for c in decision.counts] == [("cpu", 1), ("slow", 1)]
    assert not told.waits


async def test_its_answer_can_be_explained_on_a_fleet_that_has_changed() -> None:
    slow = Slow(seconds=0.0, keeps=lambda _node: False)
    decision, told = await decide_waiting(FLEET, a_request(), waiting_for(slow))
    now = a_snapshot([a_node("n2"), a_node("n4")])
    assert isinstance(decision, Rejected)

    text = explaining.message(decision, now, a_request(), told)

    assert text.endswith("1 excluded by slow, 1 not asked about by slow yet.")


async def test_its_answer_keeps_the_same_nodes_on_a_fleet_that_has_changed() -> None:
    slow = Slow(seconds=0.0, keeps=lambda node: node == "n2")
    _, told = await decide_waiting(FLEET, a_request(), waiting_for(slow))
    now = a_snapshot([a_node("n0"), a_node("n1"), a_node("n2")])

    assert feasible_rows(now, a_request(), told).tolist() == [2]
    assert feasible_rows(a_snapshot([a_node("n1")]), a_request(), told).tolist() == []


async def test_its_failure_is_judged_as_any_other() -> None:
    slow = Slow(seconds=0.0, fails=True)

    closed, _ = await decide_waiting(FLEET, a_request(), waiting_for(slow))
    opened, told = await decide_waiting(FLEET, a_request(), waiting_for(slow, failure="fail-open"))

    assert isinstance(closed, Rejected)
    assert closed.reason is Reason.PLUGIN_FAILED
    assert isinstance(opened, Placed)
    assert (opened.feasible, [f.policy for f in opened.faults]) == (2, ["fail-open"])
    assert isinstance(decide(FLEET, a_request(), told), Placed)


async def test_a_filter_that_fails_as_a_whole_has_rejected_no_node() -> None:
    decision, told = await decide_waiting(
        FLEET, a_request(), waiting_for(Slow(seconds=0.0, fails=True))
    )
    assert isinstance(decision, Rejected)

    lines = explaining.explanation(decision, FLEET, a_request(), told, helps=None).splitlines()

    assert lines[0].startswith("Not decided: plugin slow failed (")
    assert [line.split(":")[0] for line in lines[1:]] == ["  cpu"]


def test_what_never_waits_is_decided_without_suspending() -> None:
    steps = decide_waiting(FLEET, a_request(), a_pipeline(("least_allocated", {}, 1.0)))

    with pytest.raises(StopIteration) as end:
        steps.send(None)

    assert isinstance(end.value.value[0], Placed)


def test_what_waits_cannot_be_decided_at_once() -> None:
    with pytest.raises(RuntimeError, match="waited for"):
        at_once(decide_waiting(FLEET, a_request(), waiting_for(Slow(seconds=0.0))))
