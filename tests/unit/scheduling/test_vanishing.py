"""What vanishes at any step, or is edited by people: counted to the end, and never twice."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.fleet.objects import GIB
from tests.unit.scheduling.worlds import World, a_policy, in_world, settle

from cubesched.core.scheduler_settings import GuardSettings
from cubesched.policy.policyset import PolicySet, Route

COUNTED = ("Bound", "Starting", "Running", "Paused", "Evicting", "Unheard")
PAUSED = {"cpuMillis": 250, "memoryBytes": GIB // 4}
MAX_AGE = 20.0


def a_policy_of_short_memory() -> PolicySet:
    return a_policy(guards=GuardSettings(metrics_max_age_seconds=MAX_AGE))


def placed(world: World, phase: str, name: str = "r1", **fields: Any) -> None:
    reservation = {"nodeUID": "uid-n1", "cpuMillis": 6000, **fields.pop("reservation", {})}
    world.server.create(name, phase=phase, node="n1", reservation=reservation, **fields)


def taken(world: World, node: str = "n1") -> tuple[int, int]:
    """Return cpu millis and sandboxes that count on a node, as decisions see them."""
    row = world.fleet.columns.row_of[node]
    view = world.fleet.snapshot
    return int(view.cpu_used_millis[row]), int(view.sandboxes[row])


def counts(world: World) -> list[int]:
    """Return every number that is kept of what counts anywhere."""
    return [
        number
        for usage in world.fleet.ledger.usages.values()
        for number in (usage.cpu_millis, usage.memory_bytes, usage.sandboxes, usage.creating)
    ]


# A request


@pytest.mark.parametrize("phase", COUNTED)
@in_world()
async def test_a_deleted_request_counts_until_its_agent_has_acted_on_it(
    world: World, phase: str
) -> None:
    world.start()
    world.is_beating = False
    placed(world, phase)
    await settle(0.1)
    world.beat("n1", applied_version=world.server.version)
    world.server.delete("r1")
    deleted_at = world.server.version
    await settle(0.1)
    world.beat("n1", applied_version=deleted_at - 1)
    assert taken(world) == (6000, 1)

    world.server.create("next", cpu="3")
    await settle(3.0)
    assert world.scheduled("next") == ("False", "Unschedulable")

    world.beat("n1", applied_version=deleted_at)
    await settle(1.0)
    assert world.phase("next") == "Bound"
    assert taken(world) == (3000, 1)


@pytest.mark.parametrize("phase", COUNTED)
@in_world(a_policy_of_short_memory)
async def test_one_whose_agent_stays_silent_counts_until_reports_are_not_believed_any_more(
    world: World, phase: str
) -> None:
    world.scheduler.policy_changed()
    world.start()
    placed(world, phase)
    await settle(0.1)
    world.is_beating = False
    world.server.delete("r1")
    await settle(MAX_AGE - 5.0)
    assert taken(world) == (6000, 1)

    await settle(10.0)
    assert taken(world) == (0, 0)
    world.beat("n1", foreign_cpu_millis=6000, foreign_sandboxes=1, sandboxes=1)
    assert taken(world) == (6000, 1), "what still runs there is foreign from now on"


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
@in_world()
async def test_one_that_is_on_no_node_leaves_nothing(world: World, phase: str) -> None:
    world.server.create("r1", phase=phase, spec={"schedulingGates": [{"name": "a"}]})
    world.start()
    await settle(1.0)
    world.server.delete("r1")
    await settle(1.0)

    assert (taken(world), world.fleet.ledger.ghosts, world.is_at_rest()) == ((0, 0), {}, True)


@in_world()
async def test_one_that_is_only_reserved_is_dropped_at_once(world: World) -> None:
    placed(world, "Reserved")
    await settle(0.1)
    world.server.delete("r1")
    await settle(0.1)

    assert (taken(world), world.fleet.ledger.ghosts) == ((0, 0), {})


@pytest.mark.parametrize("phase", ["Paused", "Evicting"])
@in_world()
async def test_a_paused_one_goes_on_counting_what_it_kept(world: World, phase: str) -> None:
    placed(world, phase, reservation={"paused": PAUSED}, spec={"paused": True})
    await settle(0.1)
    assert taken(world) == (250, 1)

    world.server.delete("r1")
    await settle(0.1)
    assert taken(world) == (250, 1)
    world.beat("n1", applied_version=world.server.version)
    assert taken(world) == (0, 0)


@in_world()
async def test_one_created_anew_under_the_name_is_another_and_both_count(world: World) -> None:
    world.start()
    world.is_beating = False
    placed(world, "Running")
    await settle(0.1)
    world.server.delete("r1")
    world.server.create("r1", uid="another", cpu="1")
    await settle(1.0)

    assert world.phase() == "Bound"
    assert taken(world) == (7000, 2)
    world.beat("n1", applied_version=world.server.version)
    assert taken(world) == (1000, 1)


@pytest.mark.parametrize("phase", [*COUNTED, "Reserved"])
@in_world()
async def test_a_deletion_that_only_a_new_list_shows_counts_on_as_well(
    world: World, phase: str
) -> None:
    placed(world, phase)
    await settle(0.1)
    world.cut_off = True
    world.server.delete("r1")
    world.list_anew()
    assert taken(world) == (6000, 1)

    world.beat("n1", applied_version=world.server.version)
    assert taken(world) == (0, 0)


# A node


@in_world()
async def test_a_node_of_another_size_under_the_name_counts_by_its_own_limits_alone(
    world: World,
) -> None:
    world.start()
    placed(world, "Running", "ran")
    placed(world, "Bound", "bound", reservation={"cpuMillis": 1000})
    await settle(0.1)
    world.put_node("n1", "DELETED")
    world.put_node("n1", "ADDED", uid="another", cpu="2")
    world.beat("n1", ago_seconds=1.0)
    world.beat("n1")
    await settle(3.0)

    assert (world.phase("ran"), world.phase("bound")) == ("Failed", "Bound")
    assert world.status("bound")["reservation"]["nodeUID"] == "another"
    assert taken(world) == (1000, 1)
    world.server.create("big", cpu="2")
    await settle(3.0)
    assert world.scheduled("big") == ("False", "Unschedulable")
    world.server.create("fits", cpu="1")
    await settle(1.0)
    assert world.phase("fits") == "Bound"


@in_world(nodes=("n1", "n2"))
async def test_ghosts_of_a_deleted_node_do_not_haunt_the_next_of_its_name(world: World) -> None:
    placed(world, "Running")
    await settle(0.1)
    world.server.delete("r1")
    await settle(0.1)
    assert taken(world) == (6000, 1)

    world.put_node("n1", "DELETED")
    world.put_node("n1", "ADDED", uid="another")
    assert taken(world) == (0, 0)


@in_world(nodes=("n1", "n2"))
async def test_a_node_that_vanishes_before_its_reservation_is_met_loses_nothing(
    world: World,
) -> None:
    world.server.latency_seconds = 0.05
    world.start()
    world.server.create("r1")
    await settle(0.01)
    (put,) = world.server.puts
    world.put_node(put.status["nodeName"], "DELETED")
    await settle(2.0)

    assert world.phase() == "Bound"
    assert world.status()["nodeName"] != put.status["nodeName"]
    assert min(counts(world)) == 0
    assert world.is_at_rest()


# A Profile, a template


@in_world(lambda: a_policy(route=Route(labels=(("workload", "batch"),))))
async def test_a_profile_that_vanishes_takes_nothing_from_what_is_placed(world: World) -> None:
    world.start()
    world.server.create("placed", labels={"workload": "batch"})
    await settle(1.0)
    world.policy.current = a_policy(revision="rev-2", route=Route(labels=(("workload", "x"),)))
    world.scheduler.policy_changed()
    world.server.create("late", labels={"workload": "batch"})
    await settle(3.0)

    assert world.phase("placed") == "Bound"
    assert world.scheduled("late") == ("False", "NoProfile")


@in_world()
async def test_a_template_that_vanishes_between_decision_and_binding_is_its_agents_to_miss(
    world: World,
) -> None:
    world.put_node("n1", "MODIFIED", templates=["t1"])
    world.server.latency_seconds = 0.05
    world.start()
    world.server.create("r1", template="t1")
    await settle(0.01)
    world.put_node("n1", "MODIFIED", templates=[])
    await settle(1.0)
    assert world.phase() == "Bound", "a confirmation asks for room alone"

    world.server.create("r2", template="t1")
    await settle(3.0)
    assert world.scheduled("r2") == ("False", "Unschedulable")


# A status that somebody has edited


EDITS: dict[str, dict[str, Any]] = {
    "another node": {"nodeName": "n2"},
    "a node that is not": {"nodeName": "nowhere"},
    "no reservation": {"reservation": None},
    "a negative weight": {"reservation": {"id": "x" * 16, "replica": "r", "cpuMillis": -5000}},
    "a huge weight": {"reservation": {"id": "x" * 16, "replica": "r", "cpuMillis": 1 << 70}},
    "a text for a number": {"reservation": {"id": "x" * 16, "replica": "r", "cpuMillis": "many"}},
    "another phase": {"phase": "Reserved"},
    "an unknown phase": {"phase": "Sleeping"},
    "no phase": {"phase": None},
    "a number for a phase": {"phase": 7},
    "garbage refusals": {"refusals": "all"},
    "garbage conditions": {"conditions": [7, {"type": "Ready"}]},
    "finished": {"phase": "Succeeded"},
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("phase", ["Reserved", "Running", "Paused"])
@in_world(a_policy_of_short_memory, nodes=("n1", "n2"))
async def test_an_edited_status_leaves_no_wrong_count_behind(
    world: World, phase: str, edit: dict[str, Any]
) -> None:
    world.scheduler.policy_changed()
    world.start()
    placed(world, phase, spec={"paused": phase == "Paused"})
    await settle(0.002)
    world.server.patch_status("r1", **edit)
    await settle(10.0)
    assert min(counts(world), default=0) >= 0

    world.server.delete("r1")
    await settle(MAX_AGE + 10.0)
    assert {taken(world, "n1"), taken(world, "n2")} == {(0, 0)}
    assert world.is_at_rest()
    world.server.create("next", cpu="8")
    await settle(2.0)
    assert world.phase("next") == "Bound"
