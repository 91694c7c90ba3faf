"""What `failure.noCandidate` makes of each reason not to place: only two can be for good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.unit.builders import a_pipeline
from tests.unit.scheduling.plugins import Slow
from tests.unit.scheduling.worlds import World, a_policy, in_world, settle

from cubesched.core.pipeline import (
    Filter,
    Judged,
    Miss,
    NoCandidate,
    Pipeline,
    ScoreFailure,
    WaitingFilter,
    WeightedScore,
)
from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.policy.policyset import Route


@dataclass(frozen=True)
class Unsure:
    """Cannot tell about any node."""

    name: str = "unsure"

    def keep(self, fleet: Snapshot, request: Request) -> Judged:
        everywhere = np.ones(len(fleet), np.bool_)
        return Judged(everywhere, everywhere, "no such key: zone")

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> list[tuple[str, int]]:
        return [("error in unsure", int(rows.size))]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        return None


@dataclass(frozen=True)
class Wrong:
    """Rates outside of what is allowed."""

    name: str = "wrong"

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        return np.full(rows.size, 101.0)


def use(world: World, pipeline: Pipeline, no_candidate: str, route: Route | None = None) -> None:
    pipeline = replace(pipeline, no_candidate=NoCandidate(no_candidate))
    world.policy.current = a_policy(pipeline, route=route)


def a_filter(plugin: Filter | WaitingFilter) -> Pipeline:
    return replace(a_pipeline(("least_allocated", {}, 1.0)), filters=(plugin,))


def a_failing_score() -> Pipeline:
    failing = WeightedScore(Wrong(), weight=1.0, default_score=0.0)
    return a_pipeline(failing, score_failure=ScoreFailure.FAIL_CLOSED)


PLAIN = a_pipeline(("least_allocated", {}, 1.0))
FOR_GOOD: dict[str, tuple[Callable[[], Pipeline], dict[str, object], str]] = {
    "fits nowhere, empty or not": (lambda: PLAIN, {"cpu": "99"}, "NeverFits"),
    "its own selector": (lambda: PLAIN, {"spec": {"nodeSelector": {"a": "b"}}}, "Unschedulable"),
    "excluded by a filter": (
        lambda: a_filter(Slow(keeps=lambda _node: False)),
        {},
        "Unschedulable",
    ),
}
NEVER: dict[str, tuple[Callable[[], Pipeline], dict[str, object], str]] = {
    "a filter's call fails": (lambda: a_filter(Slow(fails=True)), {}, "PluginFailed"),
    "a filter fails on every node": (lambda: a_filter(Unsure()), {}, "PluginFailed"),
    "a score fails": (a_failing_score, {}, "PluginFailed"),
    "gated": (lambda: PLAIN, {"spec": {"schedulingGates": [{"name": "a"}]}, "cpu": "99"}, "Gated"),
    "invalid": (lambda: PLAIN, {"cpu": "lots"}, "InvalidSpec"),
}


@pytest.mark.parametrize("why", FOR_GOOD)
@in_world()
async def test_under_fail_a_verdict_on_the_fleet_is_final(world: World, why: str) -> None:
    pipeline, fields, _ = FOR_GOOD[why]
    use(world, pipeline(), "fail")
    world.start()
    world.server.create("r1", **fields)
    await settle(5.0)

    assert (world.phase(), world.scheduled()) == ("Failed", ("False", "NoCandidate"))


@pytest.mark.parametrize("why", NEVER)
@in_world()
async def test_under_fail_what_may_pass_by_itself_waits(world: World, why: str) -> None:
    pipeline, fields, reason = NEVER[why]
    use(world, pipeline(), "fail")
    world.start()
    world.server.create("r1", **fields)
    await settle(5.0)

    assert (world.phase(), world.scheduled()) == ("Pending", ("False", reason))


@in_world()
async def test_under_fail_a_request_that_no_profile_serves_waits(world: World) -> None:
    use(world, PLAIN, "fail", route=Route(labels=(("workload", "burst"),)))
    world.start()
    world.server.create("r1", cpu="99")
    await settle(5.0)

    assert (world.phase(), world.scheduled()) == ("Pending", ("False", "NoProfile"))


@pytest.mark.parametrize("why", [*FOR_GOOD, *NEVER])
@in_world()
async def test_under_backoff_everything_waits(world: World, why: str) -> None:
    pipeline, fields, reason = {**FOR_GOOD, **NEVER}[why]
    use(world, pipeline(), "backoff")
    world.start()
    world.server.create("r1", **fields)
    await settle(5.0)

    assert (world.phase(), world.scheduled()) == ("Pending", ("False", reason))


@in_world()
async def test_under_backoff_the_whole_pipeline_runs_again(world: World) -> None:
    slow = Slow(keeps=lambda _node: False)
    use(world, a_filter(slow), "backoff")
    world.start()
    world.server.create("r1")
    await settle(5.0)
    tries = len(slow.asked)
    slow.keeps = lambda _node: True
    await settle(70.0)

    assert tries >= 1
    assert len(slow.asked) > tries
    assert world.phase() == "Bound"
