"""What every failure of every kind of plugin leads to, under every policy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.builders import a_node, a_request, a_snapshot
from tests.unit.plugins.failing import expressions, servers, synchronous, threads
from tests.unit.plugins.failing.cells import (
    COLUMNS,
    IMPOSSIBLE,
    REFUSED,
    Cell,
    Fault,
    cells,
    left_out,
    summary,
)
from tests.unit.policy.builders import a_profile, compiled

from cubesched.core.cycle import decide_waiting
from cubesched.core.decision import Decision, Placed, Reason, Rejected, StageCount
from cubesched.core.errors import PluginArgsInvalid
from cubesched.core.pipeline import Pipeline, WeightedScore
from cubesched.core.snapshot import Snapshot
from cubesched.plugins.registry import build_score

PluginOf = Callable[[str, Fault], AbstractAsyncContextManager[Any]]
"""Gives the plugin, a filter or a score, that fails so."""
DEFAULT_SCORE, WEIGHT = 55.0, 2.0


@pytest.fixture(scope="module")
def ran(request: pytest.FixtureRequest) -> Iterator[list[Cell]]:
    """The cells that ran; how many they are is printed at the end."""
    found: list[Cell] = []
    yield found
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        sys.stdout.write(f"\n{summary(len(found))}\n")


@pytest.fixture(scope="module")
def plugin_of() -> Iterator[Mapping[str, PluginOf]]:
    """Who gives the plugins of each kind; those in another process have a real one."""
    with servers.wrong_server() as server:
        yield {
            "builtin": synchronous.plugin,
            "python": threads.plugin,
            "expr": expressions.plugin,
            "grpc": server.plugin,
        }


@pytest.mark.parametrize("cell", list(cells()), ids=str)
async def test_a_failure_leads_to_what_the_policy_says(
    cell: Cell, plugin_of: Mapping[str, PluginOf], ran: list[Cell]
) -> None:
    check = _filter_checks(cell) if cell.where == "filter" else _score_checks(cell)
    if (cell.kind, cell.where, cell.fault) in REFUSED:
        with pytest.raises(PluginArgsInvalid):
            await _decided(cell, plugin_of)
    else:
        decision = await _decided(cell, plugin_of)
        check(decision)
        assert _has_run_out_of_time(decision) == (cell.fault is Fault.TIMEOUT)
    ran.append(cell)


async def _decided(cell: Cell, plugin_of: Mapping[str, PluginOf]) -> Decision:
    """Run the whole cycle with the one plugin that fails."""
    request = a_request(labels={"fault": cell.fault.name})
    pipeline = compiled([a_profile(failure={cell.where: cell.policy})], None).profiles[0].pipeline
    async with plugin_of[cell.kind](cell.where, cell.fault) as plugin:
        pipeline = _with(pipeline, cell.where, plugin)
        return (await decide_waiting(_fleet(cell), request, pipeline))[0]


def _fleet(cell: Cell) -> Snapshot:
    """Return four nodes; n1 carries more text than one decision reads, if it never saw it."""
    is_long = (cell.kind, cell.fault) == ("expr", Fault.TIMEOUT)
    essay = str(cell) * 300_000 if is_long else ""
    return a_snapshot(
        [
            a_node("n1", labels={"rack": "r1", "essay": essay}),
            a_node("n2", labels={"essay": ""}),
            a_node("n3", labels={"rack": "r3", "essay": ""}),
            a_node("n4", labels={"rack": "r4", "essay": ""}),
        ]
    )


def _with(pipeline: Pipeline, where: str, plugin: Any) -> Pipeline:
    """List the plugin beside a sound score."""
    sound = WeightedScore(build_score("least_allocated", {}), 1.0, 0.0)
    if where == "filter":
        return replace(pipeline, filters=(plugin,), scores=(sound,))
    return replace(pipeline, scores=(WeightedScore(plugin, WEIGHT, DEFAULT_SCORE), sound))


def _filter_checks(cell: Cell) -> Callable[[Decision], None]:
    if cell.fault is Fault.ON_A_NODE and cell.kind != "grpc":  # whose protocol has no word for it
        return _loses_the_node if cell.policy == "fail-closed" else _keeps_the_node
    return _ends_the_attempt if cell.policy == "fail-closed" else _skips_the_filter


def _score_checks(cell: Cell) -> Callable[[Decision], None]:
    if cell.fault is Fault.NOT_APPLICABLE:
        return _leaves_the_score_out
    return _ends_the_attempt if cell.policy == "fail-closed" else _takes_the_default


def _has_run_out_of_time(decision: Decision) -> bool:
    words = ("no answer within", "too much new text")
    return any(fault.message.startswith(words) for fault in decision.faults)


def _ends_the_attempt(decision: Decision) -> None:
    assert isinstance(decision, Rejected)
    assert decision.reason is Reason.PLUGIN_FAILED
    assert decision.failed_plugin == "wrong"
    assert decision.detail
    assert [(fault.plugin, fault.policy) for fault in decision.faults] == [("wrong", "fail-closed")]


def _skips_the_filter(decision: Decision) -> None:
    """All stay: those that it would have kept, and those that it would not."""
    assert isinstance(decision, Placed)
    assert decision.feasible == 4
    assert decision.counts == ()
    assert [(fault.plugin, fault.policy) for fault in decision.faults] == [("wrong", "fail-open")]


def _loses_the_node(decision: Decision) -> None:
    """n2 is out because it failed there, and n4 because it says so."""
    assert isinstance(decision, Placed)
    assert decision.feasible == 2
    assert decision.counts == (StageCount("filter", "wrong", 2, failed=1),)
    [fault] = decision.faults
    assert (fault.plugin, fault.policy, fault.nodes) == ("wrong", "fail-closed", 1)


def _keeps_the_node(decision: Decision) -> None:
    """n2 stays though it failed there, and n4 is out because it says so."""
    assert isinstance(decision, Placed)
    assert decision.feasible == 3
    assert decision.counts == (StageCount("filter", "wrong", 1, failed=0),)
    [fault] = decision.faults
    assert (fault.plugin, fault.policy, fault.nodes) == ("wrong", "fail-open", 1)


def _takes_the_default(decision: Decision) -> None:
    """The default counts for all nodes, with the weight of the score."""
    assert isinstance(decision, Placed)
    assert decision.feasible == 4
    wrong, sound = decision.parts
    assert (wrong.plugin, wrong.weight, wrong.score) == ("wrong", WEIGHT, DEFAULT_SCORE)
    assert decision.score == pytest.approx((WEIGHT * DEFAULT_SCORE + sound.score) / (WEIGHT + 1))
    assert [(f.plugin, f.policy) for f in decision.faults] == [("wrong", "default-score")]


def _leaves_the_score_out(decision: Decision) -> None:
    assert isinstance(decision, Placed)
    assert [part.plugin for part in decision.parts] == ["least_allocated"]
    assert decision.score == decision.parts[0].score
    assert decision.faults == ()


def test_every_cell_is_run_or_left_out_for_a_reason() -> None:
    assert len(list(cells())) + len(list(left_out())) == len(Fault) * len(COLUMNS)
    assert all(IMPOSSIBLE.values())
