"""One replica's loop: budgets, verdicts, outages; and in the end nothing is left over."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from tests.unit.builders import a_pipeline
from tests.unit.fleet.objects import a_request_object
from tests.unit.scheduling.worlds import (
    ME,
    World,
    a_policy,
    breaks,
    in_world,
    lands,
    lost_after_landing,
    rejected,
    resent_after_landing,
    settle,
    unknown,
    unsent,
)

from cubesched.core.errors import PluginError
from cubesched.core.pipeline import NoCandidate
from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.policy.policyset import PolicySet, Route
from cubesched.scheduling.pace import MOST_UNRESOLVED


def failing() -> PolicySet:
    """A policy whose Profile fails what finds no candidate."""
    return a_policy(a_pipeline(("least_allocated", {}, 1.0), no_candidate=NoCandidate.FAIL))


def reserved(world: World) -> int:
    return sum(put.status["phase"] == "Reserved" for put in world.server.puts)


def create(world: World, number: int, **fields: object) -> None:
    for index in range(number):
        world.server.create(f"r{index:03}", **{"cpu": "1m", "memory": "1Mi", **fields})


# Budgets


@in_world()
async def test_no_more_than_sixteen_reservations_are_unresolved(world: World) -> None:
    world.server.otherwise = unknown
    world.start()
    create(world, 40)
    await settle(1.0)

    assert len({put.name for put in world.server.puts}) == MOST_UNRESOLVED == 16


@in_world(lambda: a_policy(max_in_flight=12))
async def test_each_replica_takes_its_share_of_what_may_be_in_flight(world: World) -> None:
    world.scheduler.share((ME, "replica-x", "replica-y"))
    world.server.otherwise = unknown
    world.start()
    create(world, 60)
    await settle(1.0)

    assert len({put.name for put in world.server.puts}) == 4


@in_world(lambda: a_policy(max_in_flight=1))
async def test_a_share_is_at_least_one(world: World) -> None:
    world.scheduler.share((ME, "replica-x", "replica-y"))
    world.start()
    create(world, 30)
    await settle(5.0)

    assert reserved(world) > 3


@in_world()
async def test_a_slow_stream_halves_the_budget(world: World) -> None:
    world.lag_seconds = 0.6
    world.start()
    create(world, 60)
    await settle(0.9)
    assert reserved(world) == 16, "the lag shows when the first ones are acknowledged"

    await settle(0.65)
    unresolved = []
    for _ in range(20):
        await settle(0.05)
        unresolved.append(world.scheduler.reservations.unresolved)
    assert max(unresolved[10:]) <= 8


@in_world()
async def test_behind_a_stuck_stream_nothing_is_decided(world: World) -> None:
    world.start()
    create(world, 1)
    await settle(0.0015)
    world.cut_off = True  # the reservation lands and is never shown
    await settle(2.5)
    world.cut_off = False
    before = len(world.server.puts)
    world.server.create("late")
    await settle(20.0)

    assert len(world.server.puts) == before


@in_world()
async def test_nothing_is_decided_before_every_list_is_complete(world: World) -> None:
    world.fleet.nodes_listed = False
    world.start()
    world.server.create("r1")
    world.server.create("big", cpu="99")
    await settle(10.0)
    assert world.server.puts == []
    assert world.scheduler.queue.items["uid-big"].attempts == 0

    world.fleet.nodes_listed = True
    world.fleet.ledger.exact = False
    await settle(10.0)
    assert world.server.puts == []

    world.fleet.ledger.exact = True
    await settle(1.0)
    assert world.phase() == "Bound"


@in_world()
async def test_a_stopping_replica_decides_nothing_more_and_finishes_what_is_under_way(
    world: World,
) -> None:
    world.start()
    world.server.create("r1")
    await settle(0.0015)
    world.scheduler.stopping = True
    world.server.create("r2")
    await world.scheduler.inflight.drain(5.0)

    assert (world.phase("r1"), world.phase("r2")) == ("Bound", "Pending")
    assert world.clock.monotonic() < 1.0


# Verdicts


@pytest.mark.parametrize("cpu", ["99", "4"])
@in_world(failing)
async def test_no_candidate_fails_what_never_or_now_does_not_fit(world: World, cpu: str) -> None:
    world.server.create("old", phase="Running", node="n1", reservation={"cpuMillis": 8000})
    world.start()
    world.server.create("r1", cpu=cpu)
    await settle(0.5)

    assert world.phase() == "Failed"
    assert world.scheduled() == ("False", "NoCandidate")
    assert world.status()["conditions"][0]["message"].startswith("0/1 nodes are available: ")
    assert world.status()["finishedTime"]
    assert set(world.scheduler.queue.items) == set()


@in_world(failing, nodes=())
async def test_no_candidate_never_fails_for_want_of_nodes(world: World) -> None:
    world.start()
    world.server.create("r1")
    await settle(5.0)

    assert (world.phase(), world.scheduled()[1]) == ("Pending", "NoNodes")


@in_world(failing)
async def test_no_candidate_never_fails_for_stale_metrics(world: World) -> None:
    world.is_beating = False
    await settle(301.0)
    world.fleet.sweep()
    world.start()
    world.server.create("r1")
    await settle(5.0)

    assert (world.phase(), world.scheduled()[1]) == ("Pending", "StaleMetrics")


@in_world(failing)
async def test_no_candidate_waits_for_nodes_that_have_yet_to_be_heard_of(world: World) -> None:
    world.put_node("n2")
    world.put_node("n1", "MODIFIED", spec={"unschedulable": True})
    world.beat("n2", ago_seconds=1.0)
    world.start()
    world.server.create("r1")
    await settle(0.9)
    assert world.phase() == "Pending"

    await settle(3.0)
    assert world.status()["nodeName"] == "n2"


@in_world(failing)
async def test_a_bad_spec_waits_for_its_owner_and_says_where_it_is_wrong(world: World) -> None:
    world.start()
    world.server.create("r1", cpu="lots")
    world.server.create("good")
    await settle(3.0)

    assert (world.phase(), world.scheduled()[1]) == ("Pending", "InvalidSpec")
    assert world.status()["conditions"][0]["message"].startswith("spec.resources.cpu: ")
    assert world.phase("good") == "Bound"


@in_world()
async def test_without_an_active_policy_everything_waits_and_then_goes_on(world: World) -> None:
    policy, world.policy.current = world.policy.current, None
    world.start()
    world.server.create("r1")
    await settle(5.0)
    assert world.scheduled()[1] == "NoActivePolicy"
    assert world.status()["attempts"] == 0

    world.policy.current = policy
    world.scheduler.policy_changed()
    await settle(0.5)
    assert world.phase() == "Bound"


@in_world(lambda: a_policy(route=Route(labels=(("workload", "burst"),))))
async def test_what_no_profile_matches_waits_until_its_labels_or_the_policy_change(
    world: World,
) -> None:
    world.start()
    world.server.create("r1")
    world.server.create("r2")
    await settle(5.0)
    assert world.scheduled("r1")[1] == "NoProfile"

    world.server.change("r1", metadata={"labels": {"workload": "burst"}})
    await settle(0.5)
    assert (world.phase("r1"), world.phase("r2")) == ("Bound", "Pending")

    world.policy.current = a_policy(revision="rev-2")
    world.scheduler.policy_changed()
    await settle(0.5)
    assert (world.phase("r2"), world.status("r2")["policyRevision"]) == ("Bound", "rev-2")


@in_world(lambda: a_policy(max_in_flight=16))
async def test_an_edit_is_placed_by_its_newest_spec(world: World) -> None:
    world.put_node("big", cpu="32")
    world.beat("big", ago_seconds=1.0)
    world.beat("big")
    world.server.latency_seconds = 0.1
    world.start()
    world.server.create("r1", cpu="500m")
    await settle(0.05)
    world.server.change("r1", spec={"resources": {"cpu": "20", "memory": "1Gi"}})
    await settle(2.0)

    status = world.status()
    assert (status["nodeName"], status["reservation"]["cpuMillis"]) == ("big", 20_000)
    assert status["conditions"][0]["observedGeneration"] == 2


# What is not the request's fault


@in_world(lambda: a_policy(flush_interval_seconds=10.0))
async def test_an_outage_of_the_metrics_lengthens_no_backoff(world: World) -> None:
    world.is_beating = False
    await settle(301.0)
    world.fleet.sweep()
    world.start()
    create(world, 50)
    await settle(300.0)
    items = world.scheduler.queue.items.values()
    assert {(item.attempts, item.rejections) for item in items} == {(0, 0)}

    world.is_beating = True
    await settle(5.0)
    assert {stored["status"]["phase"] for stored in world.server.objects.values()} == {"Bound"}
    assert {stored["status"]["attempts"] for stored in world.server.objects.values()} == {1}


@pytest.mark.parametrize("outage", [unsent, unknown, rejected, breaks])
@in_world()
async def test_after_an_outage_of_the_server_everything_is_bound_within_seconds(
    world: World, outage: object, caplog: pytest.LogCaptureFixture
) -> None:
    world.server.otherwise = outage  # type: ignore[assignment]
    world.start()
    create(world, 50)
    await settle(300.0)
    tries = len(world.server.puts)
    assert tries < 50 * 300 / 4, "nobody hammers a server that is down"

    world.server.otherwise = lands
    await settle(12.0)
    assert {stored["status"]["phase"] for stored in world.server.objects.values()} == {"Bound"}
    assert world.is_at_rest()


class Broken:
    """A score that fails until it is mended."""

    name = "broken"
    is_mended = False

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        if not self.is_mended:
            raise PluginError(self.name, "out of order")
        return np.zeros(rows.size)


@in_world()
async def test_a_failing_plugin_is_asked_again_after_a_pause_whatever_else_happens(
    world: World,
) -> None:
    from cubesched.core.pipeline import ScoreFailure, WeightedScore

    broken = Broken()
    world.policy.current = a_policy(
        a_pipeline(WeightedScore(broken, 1.0, 0.0), score_failure=ScoreFailure.FAIL_CLOSED)
    )
    world.start()
    world.server.create("r1")
    await settle(60.0)
    assert (world.phase(), world.scheduled()[1]) == ("Pending", "PluginFailed")
    assert 5 <= world.scheduler.queue.items["uid-r1"].attempts <= 12

    broken.is_mended = True
    await settle(13.0)
    assert world.phase() == "Bound"


# Shares


@in_world()
async def test_only_the_own_share_is_tried_and_more_is_taken_up_when_a_replica_goes(
    world: World,
) -> None:
    world.scheduler.share((ME, "replica-x"))
    world.start()
    create(world, 40)
    await settle(2.0)
    mine = {put.name for put in world.server.puts}
    assert 8 < len(mine) < 32

    world.scheduler.share((ME,))
    await settle(2.0)
    assert {put.name for put in world.server.puts} == set(world.server.objects)
    assert world.is_at_rest()


@in_world()
async def test_what_became_anothers_share_is_left_to_it(world: World) -> None:
    world.start()
    create(world, 40, cpu="99")
    await settle(1.0)
    world.scheduler.share((ME, "replica-x"))

    left = {item.uid for item in world.scheduler.queue.items.values()}
    assert 8 < len(left) < 32
    assert all(world.scheduler.owns(uid) for uid in left)


@in_world()
async def test_the_old_event_again_after_the_binding_starts_nothing(world: World) -> None:
    world.start()
    world.server.create("r1")
    old = a_request_object("r1", version=world.server.version)
    await settle()
    ledger, version = world.fleet.ledger, world.server.version
    ledger.event("MODIFIED", old, version)
    await settle(0.5)

    assert Counter(world.phases()) == {"Reserved": 2, "Bound": 1}, "it was tried in good faith"
    assert world.status()["reservation"]["id"] == "id-of-mine-1", "and refused by its version"
    assert len([note for note in world.events.notes if note[1] == "Bound"]) == 1


@in_world()
async def test_an_impossible_request_never_delays_others(world: World) -> None:
    world.start()
    world.server.create("impossible", cpu="100", spec={"priority": 100})
    for number in range(10):
        world.server.create(f"r{number}", cpu="500m")
    await settle(0.5)

    assert [world.phase(f"r{number}") for number in range(10)] == ["Bound"] * 10


@in_world()
async def test_five_hundred_impossible_requests_are_quiet_and_a_fitting_node_serves_all(
    world: World,
) -> None:
    world.start()
    for number in range(500):
        world.server.create(f"r{number:03}", cpu="9", memory="1Mi")
    await settle(90.0)
    puts, tries = len(world.server.puts), world.meter.counts["scheduler_attempts_total"]
    await settle(120.0)
    assert len(world.server.puts) == puts
    assert world.meter.counts["scheduler_attempts_total"] - tries <= 500 * 3

    world.put_node("big", cpu="9000", memory="1Ti", spec={"quota": {"createConcurrency": 1000}})
    await settle(60.0)
    assert Counter(s["status"]["phase"] for s in world.server.objects.values()) == {"Bound": 500}


# Leaks


@pytest.mark.parametrize("seed", range(6))
@in_world(nodes=("n1", "n2", "n3"))
async def test_whatever_happens_to_many_requests_nothing_is_left_over(
    world: World, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(seed)
    ends = [lands] * 12 + [
        unknown,
        unsent,
        rejected,
        breaks,
        lost_after_landing,
        resent_after_landing,
    ]
    world.start()
    for number in range(200):
        world.server.script.extend(rng.choices(ends, k=3))
        world.server.create(f"r{number}", cpu=rng.choice(["1m", "1", "99"]), uid=f"u{number}")
        await settle(rng.choice([0.0, 0.001, 0.002, 0.005, 0.05]))
        victim = rng.choice(sorted(world.server.objects))
        step = rng.random()
        if step < 0.3:
            world.server.delete(victim)
        elif step < 0.5:
            world.server.change(victim, metadata={"labels": {"a": str(number)}})
        elif step < 0.6 and world.phase(victim) == "Bound":
            world.server.patch_status(victim, phase=rng.choice(["Starting", "Failed"]))
        elif step < 0.65:
            world.list_anew()
    world.server.script.clear()
    await settle(60.0)
    for name in sorted(world.server.objects):
        world.server.delete(name)
    await settle(400.0)

    assert world.is_at_rest()
    scheduler, ledger = world.scheduler, world.fleet.ledger
    left = (scheduler.queue.items, scheduler.reservations.met, scheduler.reporter.told)
    assert left == ({}, {}, {})
    assert (scheduler.waking.nos, scheduler.counting.first_seen) == ({}, {})
    for part in scheduler.parts:
        kept = [getattr(part, name) for name in getattr(part, "__slots__", ())]
        assert not [held for held in kept if isinstance(held, dict | set | list) and held]
    assert (ledger.entries, ledger.ghosts) == ({}, {})
    assert not world.fleet.snapshot.creating_ledger.any()
    assert not world.fleet.snapshot.cpu_used_millis.any()
