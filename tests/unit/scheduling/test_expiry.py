"""Finished requests go when their time has come: the very object, once, and not in a rush."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.unit.scheduling.worlds import WALL_AT_START, World, in_world, settle

from cubesched.api.timestamps import timestamp
from cubesched.core.writing import Outcome, WriteResult

REJECTED = WriteResult(Outcome.REJECTED, 403, "", "403 forbidden")


def finished(
    world: World, name: str = "r1", *, ttl: int | None = 10, phase: str = "Succeeded", **status: Any
) -> None:
    spec = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    status.setdefault("finishedTime", timestamp(world.clock.wall()))
    world.server.create(name, phase=phase, spec=spec, **status)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@in_world()
async def test_a_finished_request_is_deleted_after_its_ttl(world: World, phase: str) -> None:
    world.start()
    finished(world, phase=phase)
    await settle(9.0)
    assert "r1" in world.server.objects

    await settle(2.0)
    assert world.server.objects == {}
    assert len(world.remover.asked) == 1


@in_world()
async def test_a_ttl_of_0_deletes_at_once_and_none_never(world: World) -> None:
    world.start()
    finished(world, "now", ttl=0)
    finished(world, "never", ttl=None)
    await settle(1.0)
    assert list(world.server.objects) == ["never"]

    await settle(10_000.0)
    assert list(world.server.objects) == ["never"]


@pytest.mark.parametrize("phase", ["Pending", "Reserved", "Running", "Paused", "Unheard"])
@in_world()
async def test_what_has_not_finished_is_not_deleted(world: World, phase: str) -> None:
    world.start()
    node = {} if phase == "Pending" else {"node": "n1", "reservation": {"nodeUID": "uid-n1"}}
    stamp = timestamp(WALL_AT_START)
    spec = {"ttlSecondsAfterFinished": 0, "schedulingGates": [{"name": "a"}]}
    world.server.create("r1", phase=phase, spec=spec, finishedTime=stamp, **node)
    await settle(100.0)

    assert world.remover.asked == []


@in_world()
async def test_the_time_since_its_end_counts_for_a_replica_that_starts(world: World) -> None:
    world.cut_off = True
    finished(world, "old", ttl=100, finishedTime=timestamp(WALL_AT_START - 95.0))
    world.start()
    world.list_anew()
    await settle(4.0)
    assert world.remover.asked == []

    await settle(2.0)
    assert [name for name, _ in world.remover.asked] == ["old"]


@pytest.mark.parametrize(
    "stamp", ["soon", "", 7, None, "2100-01-01T00:00:00Z", "0000-00-00T00:00:00Z"]
)
@in_world()
async def test_a_finished_time_that_says_nothing_counts_from_first_sight(
    world: World, stamp: Any
) -> None:
    world.start()
    finished(world, finishedTime=stamp)
    await settle(5.0)
    world.server.change("r1", metadata={"labels": {"touched": "1"}})
    await settle(4.0)
    assert world.remover.asked == []

    await settle(2.0)
    assert len(world.remover.asked) == 1


@in_world()
async def test_only_the_owner_deletes_and_the_next_owner_goes_on(world: World) -> None:
    world.scheduler.share(("replica-x",))
    world.start()
    finished(world)
    await settle(60.0)
    assert world.remover.asked == []

    world.scheduler.share((world.scheduler.identity,))
    await settle(1.0)
    assert world.server.objects == {}


@in_world()
async def test_what_was_changed_meanwhile_is_looked_at_again(world: World) -> None:
    world.start()
    world.lag_seconds = 3.0
    finished(world, ttl=5)
    await settle(4.0)
    world.server.change("r1", metadata={"labels": {"touched": "1"}})
    await settle(2.0)
    assert len(world.remover.asked) == 1, "and refused: it was of an older version"

    await settle(10.0)
    assert (world.server.objects, len(world.remover.asked)) == ({}, 2)


@in_world()
async def test_a_new_object_of_the_same_name_is_not_taken_for_the_old(world: World) -> None:
    world.start()
    world.lag_seconds = 3.0
    finished(world, ttl=4)
    await settle(4.0)
    world.server.delete("r1")
    world.server.create("r1", uid="another")
    await settle(10.0)

    assert world.server.objects["r1"]["metadata"]["uid"] == "another"


@in_world()
async def test_a_deletion_that_fails_is_tried_again_but_not_in_a_hurry(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.remover.answers.extend([REJECTED] * 3)
    world.start()
    finished(world, ttl=0)
    await settle(30.0)

    times = [at for _, at in world.remover.asked]
    assert len(times) == 4
    assert all(5.0 <= later - at < 6.0 for at, later in pairwise(times))
    assert world.server.objects == {}
    assert caplog.text.count("default/r1 is past its ttl and cannot be deleted: 403") == 1


@in_world()
async def test_what_a_finalizer_holds_is_asked_for_once(world: World) -> None:
    world.remover.answers.append(WriteResult(Outcome.LANDED, 200, "", ""))
    world.start()
    finished(world, ttl=0)
    await settle(1.0)
    world.server.change("r1", metadata={"deletionTimestamp": timestamp(WALL_AT_START)})
    await settle(100.0)

    assert len(world.remover.asked) == 1


@in_world()
async def test_many_go_a_few_at_a_time(world: World) -> None:
    world.start()
    for number in range(100):
        finished(world, f"r{number}", ttl=0)
    await settle(1.0)
    assert 10 <= len(world.remover.asked) <= 20

    await settle(6.0)
    assert world.server.objects == {}
    assert len(world.remover.asked) == 100
