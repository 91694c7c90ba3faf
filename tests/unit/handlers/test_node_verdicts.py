from __future__ import annotations

from typing import Any

import pytest
from tests.unit.handlers.fakes import Cluster, Replicas, a_body

from cubesched.api import NODES
from cubesched.core.writing import Outcome
from cubesched.fleet.rendezvous import Member, owner
from cubesched.handlers.node_verdicts import NodeVerdicts

GOOD = {"capacity": {"cpu": "4", "memory": "8Gi"}}


class World:
    """One replica with its nodes."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.replicas = Replicas()
        self.seconds = 0.0
        self.verdicts = NodeVerdicts(self.cluster, self.replicas, wall=self.tick, rng=lambda: 0.5)

    def tick(self) -> float:
        """A clock that never stands still."""
        self.seconds += 1.0
        return self.seconds

    def show(self, name: str, spec: Any, **meta: Any) -> None:
        """Store a node and let its event pass by."""
        self.cluster.put(NODES, a_body(name, spec, **meta))
        self.verdicts.observe(self.cluster.objects[f"sandboxnodes/{name}"])

    def show_again(self, name: str) -> None:
        """Let the node's event pass by as it now is."""
        self.verdicts.observe(self.cluster.objects[f"sandboxnodes/{name}"])


@pytest.fixture
def world() -> World:
    return World()


async def test_a_valid_node_is_accepted(world: World) -> None:
    world.show("n", GOOD)

    assert await world.verdicts.write_due()

    assert world.cluster.conditions(NODES, "n") == {"Accepted": ("True", "Valid")}
    assert world.cluster.writes == [("sandboxnodes/n", "cubesched-accepted")]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"capacity": {"cpu": "4", "memory": "lots"}}, "spec.capacity.memory: 'lots'"),
        ({"capacity": {"cpu": 0.5, "memory": "1Gi"}}, "spec.capacity.cpu: 0.5 is a YAML float"),
        ({"capacity": {"cpu": "4", "memory": "1Gi"}, "taint": []}, "spec.taint: unknown field"),
        (None, "spec.capacity: "),
        ("x", "spec: must be an object"),
    ],
)
async def test_an_invalid_node_is_told_what_and_where(world: World, spec: Any, path: str) -> None:
    world.show("bad", spec)
    world.show("good", GOOD)

    await world.verdicts.write_due()

    assert world.cluster.conditions(NODES, "bad") == {"Accepted": ("False", "InvalidSpec")}
    (condition,) = world.cluster.objects["sandboxnodes/bad"]["status"]["conditions"]
    assert path in condition["message"]
    assert world.cluster.conditions(NODES, "good") == {"Accepted": ("True", "Valid")}


async def test_an_event_that_changes_nothing_writes_nothing(world: World) -> None:
    world.show("n", GOOD)
    await world.verdicts.write_due()
    world.cluster.writes.clear()

    world.show_again("n")
    await world.verdicts.write_due()

    assert world.cluster.writes == []


async def test_a_new_generation_is_judged_anew_and_keeps_the_transition_time(world: World) -> None:
    world.show("n", GOOD)
    await world.verdicts.write_due()
    (before,) = world.cluster.objects["sandboxnodes/n"]["status"]["conditions"]

    world.show("n", GOOD | {"unschedulable": True}, generation=2)
    await world.verdicts.write_due()

    (after,) = world.cluster.objects["sandboxnodes/n"]["status"]["conditions"]
    assert after["observedGeneration"] == 2
    assert after["lastTransitionTime"] == before["lastTransitionTime"]


async def test_nodes_of_an_owner_that_vanished_are_written_by_the_next(world: World) -> None:
    names = [f"n{index}" for index in range(8)]
    world.replicas.live = [Member("me"), Member("other")]
    mine = {n for n in names if owner(f"uid-{n}", ["me", "other"]) == "me"}
    for name in names:
        world.show(name, GOOD)

    await world.verdicts.write_due()
    first = {key.split("/")[1] for key, _ in world.cluster.writes}
    world.replicas.live = [Member("me")]
    await world.verdicts.write_due()

    assert first == mine
    assert all(world.cluster.conditions(NODES, name) for name in names)


async def test_a_node_that_is_gone_is_forgotten(world: World) -> None:
    world.show("n", GOOD)
    world.verdicts.forget("uid-n")

    await world.verdicts.write_due()

    assert world.cluster.writes == []


@pytest.mark.parametrize(
    ("outcome", "writes"), [(Outcome.UNKNOWN, 2), (Outcome.REJECTED, 2), (Outcome.MISSING, 1)]
)
async def test_a_write_is_tried_again_unless_the_node_is_gone(
    world: World, outcome: Outcome, writes: int
) -> None:
    world.show("n", GOOD)
    world.cluster.outcome = outcome

    await world.verdicts.write_due()
    await world.verdicts.write_due()

    assert len(world.cluster.writes) == writes
