"""Which reason is given: one for each way of waiting, and the first of those that apply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.model.virtualtime import run_virtual
from tests.unit.builders import a_pipeline
from tests.unit.scheduling.worlds import World, a_policy, in_world, settle

from cubesched.core.decision import Reason
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Snapshot
from cubesched.policy.policyset import Route


@dataclass(frozen=True, slots=True)
class Judge:
    """A filter that keeps nodes not named; asked about any, it may fail."""

    refuses: tuple[str, ...] = ()
    fails: bool = False
    name: str = "judge"

    def keep(self, fleet: Snapshot, request: Request) -> Bools:
        if self.fails:
            raise ConnectionError("socket is gone")
        return np.array([name not in self.refuses for name in fleet.names], dtype=np.bool_)

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> list[tuple[str, int]]:
        return [("not to the judge's liking", int(rows.size))]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> None:
        return None


@dataclass(slots=True)
class Setting:
    """What a world is made of; each cause spoils a part of it."""

    has_policy: bool = True
    route: Route | None = None
    judge: Judge = field(default_factory=Judge)
    nodes: list[str] = field(default_factory=lambda: ["n1"])
    beat: list[str] = field(default_factory=lambda: ["n1"])
    full: list[str] = field(default_factory=list)
    cpu: str = "1"
    memory: str = "1Gi"
    spec: dict[str, Any] = field(default_factory=dict)

    def world(self) -> World:
        pipeline = replace(a_pipeline(("least_allocated", {}, 1.0)), filters=(self.judge,))
        world = World(a_policy(pipeline, route=self.route))
        if not self.has_policy:
            world.policy.current = None
        world.list_requests()
        world.fleet.reset()
        world.fleet.complete(world.server.version)
        for name in self.nodes:
            world.put_node(name)
        for name in (name for name in self.beat if name in self.nodes):
            world.beat(name, ago_seconds=1.0)
            world.beat(name)
        for name in self.full:
            world.server.create(
                f"old-{name}", phase="Running", node=name, reservation={"cpuMillis": 8000}
            )
        return world


Cause = Callable[[Setting], None]


def a_gate_stands(setting: Setting) -> None:
    setting.spec = {"schedulingGates": [{"name": "quota"}]}


def spec_is_invalid(setting: Setting) -> None:
    setting.memory = "lots"


def no_policy_runs(setting: Setting) -> None:
    setting.has_policy = False


def no_profile_matches(setting: Setting) -> None:
    setting.route = Route(labels=(("workload", "other"),))


def there_is_no_node(setting: Setting) -> None:
    setting.nodes = []


def a_plugin_fails(setting: Setting) -> None:
    setting.judge = Judge(fails=True)


def all_nodes_are_silent(setting: Setting) -> None:
    setting.beat = []


def it_is_too_big_for_any(setting: Setting) -> None:
    setting.cpu = "99"


def every_node_is_full(setting: Setting) -> None:
    setting.full = ["n1"]


ORDER: dict[Reason, Cause] = {
    Reason.GATED: a_gate_stands,
    Reason.INVALID_SPEC: spec_is_invalid,
    Reason.NO_ACTIVE_POLICY: no_policy_runs,
    Reason.NO_PROFILE: no_profile_matches,
    Reason.NO_NODES: there_is_no_node,
    Reason.PLUGIN_FAILED: a_plugin_fails,
    Reason.STALE_METRICS: all_nodes_are_silent,
    Reason.NEVER_FITS: it_is_too_big_for_any,
    Reason.UNSCHEDULABLE: every_node_is_full,
}
"""The first that applies is the reason."""
NOT_ASKED = {Reason.STALE_METRICS, Reason.NEVER_FITS, Reason.UNSCHEDULABLE}
"""Where these hold of every node, no filter is asked, so none can fail."""
ELSEWHERE = {
    Reason.CONFLICT,
    Reason.REFUSED,
    Reason.NODE_LOST,
    Reason.START_DEADLINE,
    Reason.DRAINED,
    Reason.NO_CANDIDATE,
}
"""Written with what happened to a placement, not found by an attempt."""


def reason_in(setting: Setting) -> Reason:
    found: list[Reason] = []

    async def main() -> None:
        world = setting.world()
        world.server.create("r1", cpu=setting.cpu, memory=setting.memory, spec=setting.spec)
        await settle(0.01)
        answer = world.scheduler.attempts.attempt(world.fleet.ledger.entries["uid-r1"], 0)
        found.append(answer.reason)  # type: ignore[union-attr]

    run_virtual(main)
    return found[0]


def test_every_reason_stands_in_the_order_or_is_no_answer_of_an_attempt() -> None:
    assert ORDER.keys() | ELSEWHERE == set(Reason)
    assert not ORDER.keys() & ELSEWHERE


@pytest.mark.parametrize("reason", ORDER)
def test_each_cause_alone_has_its_own_reason(reason: Reason) -> None:
    setting = Setting()
    ORDER[reason](setting)

    assert reason_in(setting) is reason


@pytest.mark.parametrize(("first", "second"), list(combinations(ORDER, 2)))
def test_of_two_causes_the_first_in_order_is_the_reason(first: Reason, second: Reason) -> None:
    setting = Setting()
    ORDER[second](setting)
    ORDER[first](setting)
    expected = second if first is Reason.PLUGIN_FAILED and second in NOT_ASKED else first

    assert reason_in(setting) is expected


@pytest.mark.parametrize("second", [all_nodes_are_silent, every_node_is_full])
def test_a_plugin_that_fails_for_one_node_is_the_reason_beside_nodes_that_are_out(
    second: Cause,
) -> None:
    setting = Setting(nodes=["n1", "n2"])
    second(setting)
    setting.judge, setting.beat = Judge(fails=True), [*setting.beat, "n2"]

    assert reason_in(setting) is Reason.PLUGIN_FAILED


# Seven ways of waiting are seven reasons


async def told(world: World) -> tuple[str, str]:
    """Return reason and message as people see them."""
    world.start()
    world.server.create("r1", cpu="8")
    await settle(3.0)
    (condition,) = world.status()["conditions"]
    return condition["reason"], condition["message"]


SEVEN: list[tuple[Setting, str, str]] = [
    (Setting(nodes=[]), "NoNodes", "0/0 nodes are available: there is no SandboxNode."),
    (
        Setting(nodes=["n1", "n2", "n3"], beat=[]),
        "StaleMetrics",
        "0/3 nodes are available: no node is Ready with fresh metrics: 3 metrics never reported.",
    ),
    (
        Setting(
            nodes=["s1", "s2", "t1", "t2", "t3", "p1"],
            beat=["t1", "t2", "t3", "p1"],
            full=["t1", "t2", "t3"],
            judge=Judge(refuses=("p1",)),
        ),
        "Unschedulable",
        (
            "0/6 nodes are available: 3 insufficient cpu, 2 metrics never reported, "
            "1 not to the judge's liking."
        ),
    ),
    (
        Setting(route=Route(labels=(("workload", "other"),))),
        "NoProfile",
        "no SchedulerProfile matches this request and there is no default",
    ),
    (Setting(has_policy=False), "NoActivePolicy", "no policy set is active"),
    (
        Setting(judge=Judge(fails=True)),
        "PluginFailed",
        (
            "Not decided: plugin judge failed (ConnectionError: socket is gone); "
            "tried again after a pause."
        ),
    ),
]


@pytest.mark.parametrize(("setting", "reason", "message"), SEVEN, ids=[each[1] for each in SEVEN])
def test_each_way_of_waiting_is_told_by_its_own_reason_and_message(
    setting: Setting, reason: str, message: str
) -> None:
    async def main() -> None:
        world = setting.world()
        world.is_beating = False
        assert await told(world) == (reason, message)

    run_virtual(main)


@in_world()
async def test_the_seventh_is_room_that_another_replica_took_first(world: World) -> None:
    world.start()
    world.lag_seconds = 0.05
    world.server.create("r1", cpu="8")
    await settle(0.01)
    world.server.create("thief", phase="Bound", node="n1", reservation={"cpuMillis": 8000})
    await settle(0.5)

    assert world.scheduled() == ("False", "Conflict")


def test_the_seven_reasons_differ() -> None:
    assert len({reason for _, reason, _ in SEVEN} | {"Conflict"}) == 7


def test_a_world_without_a_cause_places_the_request() -> None:
    with pytest.raises(AttributeError, match="reason"):
        reason_in(Setting())
