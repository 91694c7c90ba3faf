from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from tests.unit.builders import a_node, a_snapshot
from tests.unit.handlers.fakes import Cluster, Records, Replicas, a_body

from cubesched.api import CONFIGS, PROFILES
from cubesched.core.errors import ApiError
from cubesched.core.writing import Outcome
from cubesched.fleet.rendezvous import Member, owner
from cubesched.handlers.fleet_looks import FleetLooks
from cubesched.handlers.policy_reconciler import PolicyReconciler
from cubesched.policy.active import ActivePolicy
from cubesched.policy.compiler import compile_set

ROUTE = {"labels": {"workload": "a"}}


class World:
    """One replica with its cluster."""

    def __init__(self, cluster: Cluster | None = None, records: Records | None = None) -> None:
        self.cluster = cluster or Cluster()
        self.replicas = Replicas()
        self.policy = ActivePolicy()
        self.seconds, self.note = 0.0, ""
        self.records = records or Records()
        self.fleet = a_snapshot([])
        self.looks = FleetLooks(self.policy, lambda: self.fleet, self.replicas)
        self.reconciler = PolicyReconciler(
            self.policy,
            self.cluster,
            self.cluster,
            self.replicas,
            records=self.records,
            compile_=compile_set,
            seen=self.looks.seen,
            note=lambda: self.note,
            wall=self.tick,
            rng=lambda: 0.5,
        )

    def tick(self) -> float:
        """A clock that never stands still."""
        self.seconds += 1.0
        return self.seconds

    def profile(self, name: str, spec: Any, **meta: Any) -> None:
        """Store a Profile."""
        self.cluster.put(PROFILES, a_body(name, spec, **meta))

    @property
    def running(self) -> list[str]:
        """Names of the Profiles that run."""
        return [p.name for p in self.policy.current.profiles] if self.policy.current else []


@pytest.fixture
def world() -> World:
    return World()


async def test_the_stored_objects_become_the_running_set_with_their_conditions(
    world: World,
) -> None:
    world.profile("a", {"route": ROUTE})
    world.cluster.put(CONFIGS, a_body("default", {}))

    assert await world.reconciler.reconcile()

    assert world.running == ["a"]
    assert world.cluster.conditions(PROFILES, "a")["Active"] == ("True", "Running")
    assert world.cluster.conditions(CONFIGS, "default")["FactoryProfilesActive"] == (
        "False",
        "ProfilesActive",
    )
    assert {manager for _, manager in world.cluster.writes} == {"cubesched"}


async def test_an_empty_cluster_runs_the_factory_profiles(world: World) -> None:
    await world.reconciler.reconcile()

    assert world.running == ["burst_balance", "template_reuse", "mixed_binpack"]


async def test_a_second_look_at_the_same_state_writes_nothing(world: World) -> None:
    world.profile("a", {"route": ROUTE})
    await world.reconciler.reconcile()
    world.cluster.writes.clear()

    await world.reconciler.reconcile()

    assert world.cluster.writes == []


async def test_what_is_to_be_known_of_the_config_is_in_its_condition_while_it_holds(
    world: World,
) -> None:
    def told() -> str:
        stored = world.cluster.objects["schedulerconfigs/default"]["status"]["conditions"]
        return str(next(c["message"] for c in stored if c["type"] == "Active"))

    world.cluster.put(CONFIGS, a_body("default", {}))
    for note in ("Beware.", ""):
        world.note = note
        await world.reconciler.reconcile()
        assert ("Beware." in told()) == bool(note)


async def test_a_profile_that_vanished_unseen_leaves_the_set(world: World) -> None:
    world.profile("a", {"route": ROUTE})
    world.profile("b", {"default": True})
    await world.reconciler.reconcile()
    world.cluster.drop(PROFILES, "b")

    await world.reconciler.reconcile()

    assert world.running == ["a"]


@pytest.mark.parametrize("spec", [None, 7, {"scores": [{"name": "x", "weight": "two"}]}])
async def test_a_malformed_object_gets_its_condition_and_stops_no_other(
    world: World, spec: Any
) -> None:
    world.profile("a", {"route": ROUTE})
    await world.reconciler.reconcile()
    world.profile("bad", spec)
    world.profile("a", {"route": ROUTE, "order": 3}, generation=2)

    await world.reconciler.reconcile()

    assert world.running == ["a"]
    assert world.cluster.conditions(PROFILES, "bad") == {
        "Accepted": ("False", "Invalid"),
        "Active": ("False", "SetRejected"),
    }
    assert world.cluster.conditions(PROFILES, "a") == {
        "Accepted": ("True", "Compiled"),
        "Active": ("False", "SetRejected"),
    }
    world.cluster.drop(PROFILES, "bad")
    await world.reconciler.reconcile()
    assert world.cluster.conditions(PROFILES, "a")["Active"] == ("True", "Running")


async def test_a_condition_somebody_else_wrote_decides_nothing(world: World) -> None:
    world.profile("a", {"route": ROUTE})
    lie = {"type": "Active", "status": "False", "reason": "Lie", "lastTransitionTime": "x"}
    world.cluster.objects["schedulerprofiles/a"]["status"] = {"conditions": [lie]}

    await world.reconciler.reconcile()

    assert world.running == ["a"]
    assert world.cluster.conditions(PROFILES, "a")["Active"] == ("True", "Running")


async def test_only_the_owner_writes_and_another_takes_over_when_it_vanishes(
    world: World,
) -> None:
    names = [f"p{index}" for index in range(8)]
    for name in names:
        world.profile(name, {"route": ROUTE})
    world.replicas.live = [Member("me"), Member("other")]
    mine = [n for n in names if owner(f"uid-{n}", ["me", "other"]) == "me"]

    await world.reconciler.reconcile()
    written = {key.split("/")[1] for key, _ in world.cluster.writes}
    world.replicas.live = [Member("me")]
    await world.reconciler.reconcile()

    assert written == set(mine)
    assert 0 < len(mine) < len(names)
    assert all(world.cluster.conditions(PROFILES, name) for name in names)


async def test_the_count_of_replicas_follows_their_revisions(world: World) -> None:
    world.profile("a", {"route": ROUTE})
    await world.reconciler.reconcile()
    assert world.policy.current is not None
    revision = world.policy.current.revision
    status = world.cluster.objects["schedulerprofiles/a"]
    assert status["status"]["replicasOnRevision"] == "0/1"

    world.replicas.live = [Member("me", policy_revision=revision)]
    await world.reconciler.reconcile()

    assert status["status"]["replicasOnRevision"] == "1/1"


async def test_without_an_answer_the_running_set_stays(world: World) -> None:
    world.profile("a", {"route": ROUTE})
    await world.reconciler.reconcile()
    world.cluster.is_down = True

    with pytest.raises(ApiError):
        await world.reconciler.reconcile()

    assert world.running == ["a"]


@pytest.mark.parametrize(
    ("outcome", "settled"),
    [
        (Outcome.UNKNOWN, False),
        (Outcome.REJECTED, False),
        (Outcome.MISSING, True),
        (Outcome.REFUSED, True),
    ],
)
async def test_a_write_is_tried_again_unless_the_object_is_gone(
    world: World, outcome: Outcome, *, settled: bool
) -> None:
    world.profile("a", {"route": ROUTE})
    world.cluster.outcome = outcome

    assert await world.reconciler.reconcile() is settled


async def test_the_loop_acts_on_a_poke_and_survives_an_outage(world: World) -> None:
    swapped = asyncio.Event()
    world.policy.on_change.append(lambda _: swapped.set())
    world.cluster.is_down = True

    async with asyncio.timeout(5):
        loop = asyncio.create_task(world.reconciler.run())
        await asyncio.sleep(0.02)
        world.cluster.is_down = False
        world.profile("a", {"route": ROUTE})
        await swapped.wait()
        assert world.running == ["a"]

        swapped.clear()
        world.profile("b", {"default": True})
        world.reconciler.poke()
        await swapped.wait()
        assert world.running == ["a", "b"]

    loop.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await loop


BROKEN = {"route": ROUTE, "filters": [{"name": "nobody"}]}


def restarted(world: World) -> World:
    """Return a replica that has just started on the same cluster."""
    return World(world.cluster, world.records)


async def test_a_set_that_runs_is_kept_once(world: World) -> None:
    world.profile("a", {"route": ROUTE})

    await world.reconciler.reconcile()
    await world.reconciler.reconcile()

    assert len(world.records.kept) == 1
    assert world.policy.current is not None
    assert world.records.kept[0][0].startswith(f"cubesched-policy-{world.policy.current.revision}-")


async def test_after_a_restart_the_last_good_set_runs_while_the_stored_one_is_refused(
    world: World,
) -> None:
    world.profile("a", {"route": ROUTE})
    await world.reconciler.reconcile()
    good = world.policy.current
    assert good is not None
    world.profile("a", BROKEN, generation=2)
    world.profile("b", {"route": {"labels": {"workload": "b"}}})
    again = restarted(world)

    await again.reconciler.reconcile()

    assert again.running == ["a"]
    assert again.policy.current is not None
    assert again.policy.current.revision == good.revision
    assert again.cluster.conditions(PROFILES, "a")["Active"] == ("False", "SetRejected")
    assert again.cluster.conditions(PROFILES, "b")["Active"] == ("False", "SetRejected")

    again.profile("a", {"route": ROUTE}, generation=3)
    await again.reconciler.reconcile()

    assert again.running == ["a", "b"]
    assert again.cluster.conditions(PROFILES, "a")["Active"] == ("True", "Running")


async def test_a_profile_that_did_not_change_since_is_active_in_the_restored_set(
    world: World,
) -> None:
    world.profile("a", {"route": ROUTE})
    world.profile("b", {"route": {"labels": {"workload": "b"}}})
    await world.reconciler.reconcile()
    world.profile("a", BROKEN, generation=2)
    again = restarted(world)

    await again.reconciler.reconcile()

    assert again.cluster.conditions(PROFILES, "b")["Active"] == ("True", "Running")


async def test_records_that_are_of_no_use_are_passed_over(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.profile("a", {"route": ROUTE})
    await world.reconciler.reconcile()
    world.records.kept.insert(0, ("from-the-future", {"format": 99}))
    world.records.kept.insert(0, ("garbage", None))
    world.profile("a", BROKEN, generation=2)
    again = restarted(world)

    await again.reconciler.reconcile()

    assert again.running == ["a"]
    assert "garbage" in caplog.text
    assert "from-the-future" in caplog.text


async def test_without_any_record_nothing_runs(world: World) -> None:
    world.profile("a", BROKEN)

    await world.reconciler.reconcile()

    assert world.policy.current is None


async def test_a_refused_set_neither_replaces_what_runs_nor_the_record(world: World) -> None:
    world.profile("a", {"route": ROUTE})
    await world.reconciler.reconcile()
    world.profile("a", BROKEN, generation=2)

    await world.reconciler.reconcile()

    assert world.running == ["a"]
    assert len(world.records.kept) == 1


async def test_what_runs_is_kept_by_the_next_owner_also_while_the_stored_set_is_refused(
    world: World,
) -> None:
    world.replicas.live = [Member("me"), Member("other")]
    world.replicas.me = next(
        name for name in ("me", "other") if owner("policy-history", ["me", "other"]) != name
    )
    world.profile("a", {"route": ROUTE})
    await world.reconciler.reconcile()
    world.profile("a", BROKEN, generation=2)
    world.replicas.live = [Member(world.replicas.me)]

    await world.reconciler.reconcile()

    assert world.policy.current is not None
    assert [name.split("-")[2] for name, _ in world.records.kept] == [world.policy.current.revision]


async def test_a_set_that_is_back_is_the_newest_whoever_kept_the_one_between(
    world: World,
) -> None:
    world.profile("a", {"route": ROUTE})
    await world.reconciler.reconcile()
    first = world.records.kept[0]
    world.replicas.live = [Member("other")]
    world.profile("a", {"route": ROUTE, "order": 3}, generation=2)
    await world.reconciler.reconcile()
    world.records.kept.insert(0, ("the-one-between", {}))
    world.replicas.live = [Member("me")]
    world.profile("a", {"route": ROUTE}, generation=1)

    await world.reconciler.reconcile()

    assert world.records.kept[0] == first


async def test_only_the_owner_of_the_records_keeps_them(world: World) -> None:
    world.replicas.live = [Member("me"), Member("other")]
    world.replicas.me = next(
        name for name in ("me", "other") if owner("policy-history", ["me", "other"]) != name
    )
    world.profile("a", {"route": ROUTE})

    await world.reconciler.reconcile()

    assert world.records.kept == []


async def test_warnings_stand_as_a_condition_while_there_are_any(world: World) -> None:
    world.profile("a", {"route": ROUTE, "scores": []})
    await world.reconciler.reconcile()
    assert world.cluster.conditions(PROFILES, "a")["Warnings"] == ("True", "NoScores")
    world.profile("a", {"route": ROUTE}, generation=2)

    await world.reconciler.reconcile()

    assert "Warnings" not in world.cluster.conditions(PROFILES, "a")


async def test_what_no_live_node_passes_is_seen_on_the_fleet(world: World) -> None:
    world.fleet = a_snapshot([a_node("n1"), a_node("n2", labels={"zone": "a"})])
    filters = [{"name": "node_labels", "args": {"matchLabels": {"zone": "b"}}}]
    world.profile("a", {"route": ROUTE, "filters": filters})

    await world.reconciler.reconcile()
    await world.looks.look()
    await world.reconciler.reconcile()

    assert world.cluster.conditions(PROFILES, "a")["Warnings"] == ("True", "FilterPassesNoNode")


async def test_what_another_replica_saw_stands_until_this_one_has_looked(world: World) -> None:
    world.fleet = a_snapshot([a_node("n1")])
    filters = [{"name": "node_labels", "args": {"matchLabels": {"zone": "b"}}}]
    world.profile("a", {"route": ROUTE, "filters": filters})
    await world.reconciler.reconcile()
    await world.looks.look()
    await world.reconciler.reconcile()
    again = restarted(world)

    await again.reconciler.reconcile()
    assert "Warnings" in again.cluster.conditions(PROFILES, "a")

    again.fleet = a_snapshot([a_node("n1", labels={"zone": "b"})])
    await again.looks.look()
    await again.reconciler.reconcile()
    assert "Warnings" not in again.cluster.conditions(PROFILES, "a")


async def test_a_filter_that_fails_open_is_a_risk_that_somebody_accepts(world: World) -> None:
    filters = [{"name": "zone", "type": "expr", "expr": "node.labels['zone'] == 'a'"}]
    spec = {"route": ROUTE, "filters": filters, "failure": {"filter": "fail-open"}}
    world.profile("a", spec)

    await world.reconciler.reconcile()

    assert world.cluster.conditions(PROFILES, "a")["RiskAccepted"] == ("True", "FailOpen")
