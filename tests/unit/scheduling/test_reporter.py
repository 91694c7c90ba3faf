"""What waiting requests are told, when, and that telling them starts nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.unit.scheduling.worlds import World, a_policy, in_world, rejected, settle

from cubesched.scheduling import reporter


def told(world: World, name: str = "r1") -> list[tuple[float, str]]:
    """When and with which reason a waiting request was written to."""
    return [
        (put.at, put.status["conditions"][0]["reason"])
        for put in world.server.puts
        if put.name == name and put.priority == 2
    ]


@in_world()
async def test_the_first_word_comes_after_two_seconds(world: World) -> None:
    world.start()
    world.server.create("r1", cpu="99")
    await settle(1.9)
    assert told(world) == []

    await settle(0.6)
    assert [reason for _, reason in told(world)] == ["NeverFits"]
    status = world.status()
    assert status["conditions"][0]["message"].startswith("0/1 nodes are available: ")
    assert status["explanation"].startswith("0/1 nodes are available: ")
    assert (status["profile"], status["policyRevision"], status["attempts"]) == (
        "a-profile",
        "rev-1",
        1,
    )
    assert world.events.notes == [("r1", "FailedScheduling", status["conditions"][0]["message"])]


@in_world()
async def test_a_request_that_is_placed_soon_is_told_nothing_else(world: World) -> None:
    world.start()
    world.server.create("r1")
    await settle(100.0)

    assert world.phases() == ["Reserved", "Bound"]
    assert [reason for _, reason, _ in world.events.notes] == ["Bound"]


@in_world()
async def test_nothing_new_is_not_written(world: World) -> None:
    world.start()
    world.server.create("r1", cpu="99")
    await settle(600.0)

    assert len(told(world)) == 1
    assert len(world.events.notes) == 1


@in_world(lambda: a_policy(flush_interval_seconds=5.0))
async def test_a_report_leads_to_no_try_and_tries_lead_to_no_report(world: World) -> None:
    world.start()
    world.server.create("r1", cpu="99")
    await settle(1.0)
    before = world.meter.counts["scheduler_attempts_total"]
    await settle(1.6)
    assert len(told(world)) == 1
    assert world.meter.counts["scheduler_attempts_total"] == before

    await settle(60.0)
    assert world.meter.counts["scheduler_attempts_total"] >= 10
    assert len(told(world)) == 1


@in_world()
async def test_new_counts_are_told_once_a_minute_at_most(world: World) -> None:
    world.start()
    world.server.create("r1", cpu="99")
    for number in range(180):
        world.put_node(f"m{number:03}", cpu="100m")
        await settle(1.0)

    times = [at for at, _ in told(world)]
    assert len(times) == 3
    assert all(later - sooner >= 60.0 for sooner, later in pairwise(times))
    assert len(world.events.notes) == 1, "the reason is the same"


@in_world()
async def test_a_new_reason_is_told_at_once(world: World) -> None:
    world.start()
    world.server.create("r1", cpu="12")
    await settle(5.0)
    world.server.create("old", phase="Running", node="n1", reservation={"cpuMillis": 8000})
    await settle(0.1)
    world.put_node("n1", "MODIFIED", cpu="16")
    await settle(1.0)

    assert [reason for _, reason in told(world)] == ["NeverFits", "Unschedulable"]
    assert world.status()["attempts"] == 2, "each told verdict is one of its attempts"
    assert [reason for _, reason, _ in world.events.notes] == ["FailedScheduling"] * 2


@in_world()
async def test_when_placed_the_reason_and_explanation_are_those_of_the_placement(
    world: World,
) -> None:
    world.start()
    world.server.create("r1", cpu="12")
    await settle(5.0)
    world.put_node("n1", "MODIFIED", cpu="16")
    await settle(5.0)

    assert world.scheduled() == ("True", "Bound")
    assert world.status()["explanation"].startswith("score ")
    assert "nextAttemptTime" not in world.status()
    assert world.scheduler.reporter.told == {}


@in_world()
async def test_after_a_restart_what_is_already_said_is_not_said_again(world: World) -> None:
    world.start()
    world.server.create("r1", cpu="99")
    await settle(5.0)
    said = world.status()
    world.server.create("r2", cpu="99", **said)
    await settle(30.0)

    assert told(world, "r2") == []
    assert [name for name, _, _ in world.events.notes] == ["r1"]


@in_world()
async def test_a_reason_that_something_else_overwrote_is_put_right(world: World) -> None:
    world.start()
    world.server.create("r1", cpu="99")
    await settle(10.0)
    condition = {**world.status()["conditions"][0], "reason": "Conflict"}
    world.server.patch_status("r1", phase="Reserved", nodeName="n1", reservation=a_lost_one())
    world.server.change("r1", status={"phase": "Pending", "conditions": [condition]})
    await settle(5.0)

    assert world.scheduled() == ("False", "NeverFits")


def a_lost_one() -> dict[str, object]:
    return {"id": "x", "replica": "replica-x", "cpuMillis": 1, "memoryBytes": 1}


@in_world()
async def test_few_reports_are_under_way_at_once(world: World) -> None:
    world.server.latency_seconds = 1.0
    world.start()
    for number in range(20):
        world.server.create(f"r{number}", cpu=f"{90 + number}")
    await settle(2.9)
    assert len(world.server.puts) == 4

    await settle(20.0)
    assert len(world.server.puts) == 20


@in_world()
async def test_each_is_told_a_first_reason_before_any_is_told_new_counts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter, "MOST_AT_ONCE", 1)
    names = [f"r{number}" for number in range(300)]
    world.start()
    for name in names:
        world.server.create(name, cpu="99")
    for number in range(100):
        world.put_node(f"m{number:03}", cpu="100m")
        await settle(1.0)

    assert all(told(world, name) for name in names)


@in_world()
async def test_words_take_no_more_than_their_turn_and_the_rest_is_told_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter, "TURN_SECONDS", -1.0)
    world.start()
    world.server.create("r1", cpu="99")
    await settle(5.0)
    assert told(world) == []

    monkeypatch.undo()
    await settle(1.0)
    assert len(told(world)) == 1


@in_world()
async def test_a_report_that_the_server_rejects_is_not_tried_in_a_hurry(world: World) -> None:
    world.server.otherwise = rejected
    world.start()
    world.server.create("r1", cpu="99")
    await settle(50.0)
    assert len(world.server.puts) == 1

    await settle(60.0)
    assert len(world.server.puts) <= 3


@in_world()
async def test_a_held_request_is_not_tried_before_its_time_because_a_report_is_due(
    world: World,
) -> None:
    world.server.create("r1")
    await settle(0.1)
    item = world.scheduler.queue.items["uid-r1"]
    world.scheduler.queue.hold(item, world.clock.monotonic() + 30.0)
    entry = world.fleet.ledger.entries["uid-r1"]
    world.server.create("big", cpu="99")
    world.start()
    await settle(3.0)
    world.scheduler.reporter.note(item, entry, world.scheduler.waking.nos["uid-big"])
    await settle(20.0)
    assert world.phase() == "Pending"

    await settle(10.0)
    assert world.phase() == "Bound"
