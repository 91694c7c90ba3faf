"""Numbers and announcements: each once, with labels from fixed sets only."""

from __future__ import annotations

from typing import Any

from tests.unit.scheduling.worlds import (
    World,
    in_world,
    resent_after_landing,
    settle,
    unknown,
)

from cubesched.scheduling.pace import MOST_UNRESOLVED


def labels_of(world: World, name: str) -> list[dict[str, Any]]:
    return [dict(labels) for found, labels in world.meter.labels if found == name]


@in_world()
async def test_a_placement_is_counted_by_its_profile_and_template(world: World) -> None:
    world.put_node("n1", "MODIFIED", templates=["t1"])
    world.start()
    world.server.create("r1", template="t1")
    world.server.create("r2")
    world.server.create("r3", template="t2", spec={"allowNonLocalTemplate": True})
    await settle()

    assert {labels["template_hit"] for labels in labels_of(world, "scheduler_decisions_total")} == {
        "true",
        "none",
        "false",
    }
    assert (
        labels_of(world, "scheduler_attempts_total")
        == [{"profile": "a-profile", "result": "reserved", "reason": "none"}] * 3
    )
    assert world.meter.counts["scheduler_duration_seconds"] == 3
    assert world.meter.counts["cubesched_bind_conflicts_total"] == 0


@in_world()
async def test_a_verdict_is_counted_by_its_reason(world: World) -> None:
    world.start()
    world.server.create("r1", cpu="99")
    await settle()

    assert labels_of(world, "scheduler_attempts_total") == [
        {"profile": "a-profile", "result": "unschedulable", "reason": "NeverFits"}
    ]


@in_world()
async def test_a_request_that_the_budget_keeps_out_is_counted_once(world: World) -> None:
    world.server.otherwise = unknown
    world.start()
    for index in range(MOST_UNRESOLVED + 3):
        world.server.create(f"r{index:02}", cpu="1m", memory="1Mi")
    await settle(2.0)

    limited = [
        labels
        for labels in labels_of(world, "scheduler_attempts_total")
        if labels["reason"] == "concurrency_limit"
    ]
    assert len(limited) == 1


@in_world()
async def test_a_binding_is_announced_once_however_often_it_is_written(world: World) -> None:
    world.start()
    world.server.create("r1")
    while "Bound" not in world.phases():
        await settle(0.0005)
    world.server.change("r1", metadata={"labels": {"a": "b"}})
    world.server.script.append(resent_after_landing)
    await settle()
    world.list_anew()
    await settle()

    assert [(name, reason, note) for name, reason, note in world.events.notes] == [
        ("r1", "Bound", "bound to n1")
    ]


@in_world()
async def test_a_create_is_timed_from_its_first_sight_to_its_end(world: World) -> None:
    world.start()
    world.server.create("r1")
    await settle(1.0)
    assert labels_of(world, "sandbox_create_duration_seconds") == []

    world.server.patch_status("r1", phase="Starting")
    world.server.patch_status("r1", phase="Running")
    world.server.patch_status("r1", phase="Failed")
    await settle(1.0)
    assert labels_of(world, "sandbox_create_duration_seconds") == [
        {"profile": "a-profile", "result": "running"}
    ]


@in_world()
async def test_a_deleted_request_is_no_conflict(world: World) -> None:
    world.start()
    world.server.create("r1")
    await settle(0.0015)
    world.server.delete("r1")
    await settle(1.0)

    assert world.meter.counts["cubesched_bind_conflicts_total"] == 0
    assert world.scheduler.counting.first_seen == {}
