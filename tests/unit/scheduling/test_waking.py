"""Waking: exactly the change that helps brings a waiting request back, in its turn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.unit.builders import a_pipeline
from tests.unit.scheduling.worlds import World, a_policy, in_world, settle

from cubesched.core.pipeline import NoCandidate
from cubesched.core.request import Request
from cubesched.core.snapshot import Ints, Snapshot

WITHIN = 0.2
"""Well within the half second of those that are not first, and a second's heartbeat."""


def full(world: World, name: str = "old", *, phase: str = "Running", cpu: int = 8000) -> None:
    """Something that leaves n1 no room."""
    world.server.create(name, phase=phase, node="n1", reservation={"cpuMillis": cpu})


@dataclass(slots=True)
class Looks:
    """Stands before all guards, keeps every node, and notes for whom it was asked."""

    name: str = "looks"
    names: list[str] = field(default_factory=list)

    @classmethod
    def at(cls, world: World) -> Looks:
        looks, policy = cls(), world.policy.current
        assert policy is not None
        profile = policy.profiles[0]
        pipeline = replace(profile.pipeline, guards=(looks, *profile.pipeline.guards))
        world.policy.current = replace(policy, profiles=(replace(profile, pipeline=pipeline),))
        return looks

    def keep(self, fleet: Snapshot, request: Request) -> None:
        self.names.append(request.name)

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> tuple[()]:
        return ()

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> None:
        return None


async def waits(world: World, *names: str, **fields: Any) -> None:
    """Requests that found no node, past their backoff."""
    world.start()
    for name in names or ("r1",):
        world.server.create(name, **fields)
    await settle(3.0)
    assert {world.phase(name) for name in names or ("r1",)} == {"Pending"}
    assert world.scheduler.queue.count("parked") == len(names or ("r1",))


def tries(world: World) -> int:
    return world.meter.counts["scheduler_attempts_total"]


@in_world()
async def test_room_that_becomes_free_wakes_at_once(world: World) -> None:
    full(world)
    await waits(world)
    world.server.patch_status("old", phase="Succeeded")
    await settle(WITHIN)

    assert world.phase() == "Bound"
    assert world.meter.counts["cubesched_flush_rescues_total"] == 0


@in_world()
async def test_a_new_node_wakes(world: World) -> None:
    full(world)
    await waits(world)
    world.put_node("n2")
    world.beat("n2", ago_seconds=1.0)
    world.beat("n2")
    await settle(WITHIN)

    assert world.status()["nodeName"] == "n2"


@in_world()
async def test_a_template_that_arrives_wakes(world: World) -> None:
    await waits(world, template="t1")
    world.put_node("n1", "MODIFIED", templates=["t1"])
    await settle(WITHIN)

    assert world.phase() == "Bound"


@in_world()
async def test_a_bigger_quota_wakes(world: World) -> None:
    await waits(world, cpu="12")
    world.put_node("n1", "MODIFIED", cpu="16")
    await settle(WITHIN)

    assert world.phase() == "Bound"


@in_world()
async def test_a_metric_that_turns_a_guard_wakes(world: World) -> None:
    world.is_beating = False
    world.beat("n1", cpu_util_percent=99.0)
    await waits(world)
    world.beat("n1", cpu_util_percent=98.0)
    await settle(WITHIN)
    assert world.phase() == "Pending"

    world.beat("n1", cpu_util_percent=10.0)
    await settle(WITHIN)
    assert world.phase() == "Bound"


@in_world(nodes=())
async def test_a_node_that_comes_back_from_staleness_wakes(world: World) -> None:
    world.is_beating = False
    world.put_node("n1")
    await waits(world)
    world.beat("n1", ago_seconds=0.5)
    world.beat("n1")
    await settle(WITHIN)

    assert world.phase() == "Bound"


@in_world(lambda: a_policy(flush_interval_seconds=1000.0))
async def test_the_end_of_a_create_wakes_those_that_wait_for_one(world: World) -> None:
    world.is_beating = False
    world.put_node("n1", "MODIFIED", spec={"quota": {"createConcurrency": 1}})
    full(world, phase="Starting", cpu=0)
    await waits(world)
    world.server.patch_status("old", phase="Running")
    await settle(WITHIN)

    assert world.phase() == "Bound"


@in_world()
async def test_a_deleted_request_makes_room_when_its_agent_has_let_go(world: World) -> None:
    full(world)
    await waits(world)
    world.is_beating = False
    deleted = world.server.version + 1
    world.server.delete("old")
    await settle(5.0)
    assert world.phase() == "Pending"

    world.beat("n1", applied_version=deleted)
    await settle(WITHIN)
    assert world.phase() == "Bound"


@in_world()
async def test_changes_that_do_not_help_lead_to_no_try(world: World) -> None:
    full(world)
    await waits(world)
    before = tries(world)

    world.put_node("n9", cpu="100m")
    world.put_node("n1", "MODIFIED", labels={"a": "b"})
    world.server.create("small", cpu="1m", phase="Succeeded")
    world.server.change("old", metadata={"labels": {"a": "b"}})
    await settle(20.0)

    assert tries(world) == before
    assert world.phase() == "Pending"


@in_world()
async def test_room_that_is_too_small_leads_to_no_try(world: World) -> None:
    full(world, cpu=7000)
    full(world, "tiny", cpu=1000)
    await waits(world, cpu="2")
    before = tries(world)
    world.server.patch_status("tiny", phase="Succeeded")
    await settle(WITHIN)

    assert tries(world) == before


@in_world()
async def test_a_reservation_that_landed_frees_nothing_and_wakes_nobody(world: World) -> None:
    full(world, cpu=7000)
    await waits(world, "r1", cpu="2")
    looks = Looks.at(world)
    world.is_beating = False
    await settle(1.5)
    looks.names.clear()
    world.server.create("fits", cpu="1")
    await settle(0.5)

    assert world.phase("fits") == "Bound"
    assert "r1" not in looks.names


# In whose turn


@in_world()
async def test_those_first_by_priority_and_age_get_the_room_and_others_look_later(
    world: World,
) -> None:
    full(world)
    await waits(world, "r1", "r2", "r3", cpu="4")
    world.server.create("urgent", cpu="4", spec={"priority": 9})
    await settle(3.0)
    before = tries(world)
    world.server.patch_status("old", phase="Succeeded")
    await settle(WITHIN)

    bound = {name for name in ("r1", "r2", "r3", "urgent") if world.phase(name) == "Bound"}
    assert bound == {"urgent", "r1"}
    assert tries(world) == before + 2


@in_world()
async def test_one_member_answers_for_its_whole_class(world: World) -> None:
    full(world)
    names = [f"r{number}" for number in range(40)]
    await waits(world, *names)
    looks = Looks.at(world)
    world.put_node("n9", cpu="100m")
    await settle(WITHIN)

    assert 1 <= len(looks.names) <= 3


@in_world()
async def test_when_there_is_room_for_all_all_are_placed(world: World) -> None:
    full(world)
    names = [f"r{number}" for number in range(30)]
    await waits(world, *names)
    world.put_node("n2", cpu="64", memory="256Gi")
    world.beat("n2", ago_seconds=1.0)
    world.beat("n2")
    await settle(3.0)

    assert {world.phase(name) for name in names} == {"Bound"}
    assert world.meter.counts["cubesched_flush_rescues_total"] == 0


@in_world(lambda: a_policy(initial_backoff_seconds=5.0))
async def test_a_woken_request_keeps_the_least_time_between_two_tries(world: World) -> None:
    full(world)
    world.start()
    world.server.create("r1")
    await settle(0.5)
    world.server.patch_status("old", phase="Succeeded")
    await settle(4.0)
    assert world.phase() == "Pending"

    await settle(1.0)
    assert world.phase() == "Bound"


# The safety net


@in_world(lambda: a_policy(flush_interval_seconds=10.0))
async def test_what_no_change_woke_is_tried_by_the_flush_and_counted_as_a_rescue(
    world: World,
) -> None:
    full(world)
    await waits(world)
    world.fleet.helped = lambda: None
    world.scheduler.reporter.told.clear()
    await settle(0.5)
    world.server.patch_status("old", phase="Succeeded")
    await settle(15.0)

    assert world.phase() == "Bound"
    assert world.meter.counts["cubesched_flush_rescues_total"] == 1


@in_world(lambda: a_policy(flush_interval_seconds=5.0, initial_backoff_seconds=10.0))
async def test_a_flush_that_is_only_faster_than_its_turn_is_no_rescue(world: World) -> None:
    full(world)
    world.start()
    world.server.create("r1", cpu="5")
    await settle(2.0)
    world.server.create("r2", cpu="5")
    await settle(4.8)
    world.server.patch_status("old", phase="Succeeded")
    await settle(0.4)

    assert (world.phase("r1"), world.phase("r2")) == ("Pending", "Bound")
    assert world.meter.counts["cubesched_flush_rescues_total"] == 0


# What it waits for now


@in_world()
async def test_a_class_that_now_waits_for_something_else_is_told(world: World) -> None:
    await waits(world, "r1", "r2", cpu="12")
    await settle(3.0)
    assert {world.scheduled(name)[1] for name in ("r1", "r2")} == {"NeverFits"}
    full(world)
    await settle(0.1)
    world.put_node("n1", "MODIFIED", cpu="16")
    await settle(2.0)

    assert {world.scheduled(name)[1] for name in ("r1", "r2")} == {"Unschedulable"}


@pytest.mark.parametrize("edit", ["priority", "label"])
@in_world()
async def test_an_edit_of_the_request_itself_leads_to_a_try_at_once(
    world: World, edit: str
) -> None:
    full(world)
    await waits(world)
    before = tries(world)
    if edit == "priority":
        world.server.change("r1", spec={"priority": 5}, metadata={"generation": 2})
    else:
        world.server.change("r1", metadata={"labels": {"workload": "burst"}})
    await settle(WITHIN)

    assert tries(world) == before + 1


def a_failing_policy() -> Any:
    return a_policy(
        a_pipeline(("least_allocated", {}, 1.0), no_candidate=NoCandidate.FAIL),
    )


@in_world(a_failing_policy)
async def test_a_look_never_fails_a_request_only_a_try_does(world: World) -> None:
    world.fleet.snapshot.safety[:] = 9
    world.fleet.columns.reported.awaited[:] = True
    world.is_beating = False
    full(world)
    await waits(world)
    world.put_node("n9", cpu="100m")
    await settle(WITHIN)

    assert world.phase() == "Pending"
