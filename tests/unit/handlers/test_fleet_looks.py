from __future__ import annotations

import asyncio
import contextlib

import pytest
from tests.unit.builders import a_node, a_snapshot
from tests.unit.handlers.fakes import Replicas
from tests.unit.policy.builders import a_config, a_profile, offer

from cubesched.core.snapshot import Safety
from cubesched.fleet.rendezvous import Member, owner
from cubesched.handlers.fleet_looks import FleetLooks
from cubesched.policy.active import ActivePolicy
from cubesched.policy.objects import PolicyObject

ZONE = [{"name": "node_labels", "args": {"matchLabels": {"zone": "b"}}}]
NONE_PASSES = a_snapshot([a_node("n1", labels={"zone": "a"})])
ONE_PASSES = a_snapshot([a_node("n1", labels={"zone": "b"})])


class World:
    """One replica and its fleet."""

    def __init__(self, *profiles: PolicyObject, config: PolicyObject | None = None) -> None:
        self.policy, self.replicas, self.fleet = ActivePolicy(()), Replicas(), NONE_PASSES
        self.told = 0
        self.looks = FleetLooks(self.policy, lambda: self.fleet, self.replicas)
        self.looks.on_change.append(self._tell)
        self.policy.on_change.append(self.looks.look_soon)
        offer(self.policy, profiles, config)

    def _tell(self) -> None:
        self.told += 1

    def lints(self, subject: PolicyObject) -> list[str] | None:
        """Names of what was seen."""
        seen = self.looks.seen(subject)
        return None if seen is None else [problem.lint for problem in seen]


async def test_the_first_look_at_a_generation_is_shown_at_once() -> None:
    profile = a_profile("a", filters=ZONE)
    world = World(profile)
    assert world.lints(profile) is None

    await world.looks.look()

    assert world.lints(profile) == ["FilterPassesNoNode"]
    assert world.told == 1


async def test_later_changes_are_shown_once_they_were_seen_twice_in_a_row() -> None:
    profile = a_profile("a", filters=ZONE)
    world = World(profile)
    await world.looks.look()

    for fleet in (ONE_PASSES, NONE_PASSES, ONE_PASSES):
        world.fleet = fleet
        await world.looks.look()
    assert world.lints(profile) == ["FilterPassesNoNode"]
    assert world.told == 1

    await world.looks.look()
    assert world.lints(profile) == []
    assert world.told == 2


async def test_what_was_seen_of_one_generation_says_nothing_of_the_next() -> None:
    world = World(a_profile("a", filters=ZONE))
    await world.looks.look()
    fixed = a_profile("a", generation=2)
    offer(world.policy, [fixed], None)
    assert world.lints(fixed) is None

    await world.looks.look()

    assert world.lints(fixed) == []


@pytest.mark.parametrize("state", [Safety.STALE, Safety.AWAITING_REPORT])
async def test_before_nodes_are_heard_of_nothing_is_told(state: Safety) -> None:
    profile = a_profile("a", filters=ZONE)
    world = World(profile)
    world.fleet = a_snapshot([a_node("n1", safety=state)])

    await world.looks.look()

    assert world.lints(profile) is None
    assert world.told == 0


async def test_a_replica_looks_at_what_it_owns() -> None:
    names = [f"p{number}" for number in range(8)]
    profiles = [a_profile(name, filters=ZONE) for name in names]
    world = World(*profiles)
    world.replicas.live = [Member("me"), Member("other")]

    await world.looks.look()

    mine = [each for each in profiles if world.lints(each)]
    assert mine == [each for each in profiles if owner(each.uid, ["me", "other"]) == "me"]
    assert 0 < len(mine) < len(names)


async def test_the_limits_of_nodes_are_the_configs() -> None:
    config = a_config(overcommit={"cpu": 2})
    world = World(config=config)
    world.fleet = a_snapshot([a_node("n1", cpu_limit_millis=64_000, cpus=16.0)])

    await world.looks.look()

    assert world.lints(config) == ["OvercommitTwice"]


async def test_factory_profiles_are_not_looked_at() -> None:
    world = World()

    await world.looks.look()

    assert world.told == 0


async def test_a_new_set_is_looked_at_without_waiting() -> None:
    world = World(a_profile("a"))
    told = asyncio.Event()
    loop = asyncio.create_task(world.looks.run())
    await asyncio.sleep(0.01)  # the first set is looked at
    world.looks.on_change.append(told.set)
    profile = a_profile("a", filters=ZONE, generation=2)
    offer(world.policy, [profile], None)
    async with asyncio.timeout(5):
        await told.wait()

    loop.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await loop
    assert world.lints(profile) == ["FilterPassesNoNode"]
