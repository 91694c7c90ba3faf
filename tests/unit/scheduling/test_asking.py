from __future__ import annotations

from dataclasses import replace

from tests.unit.scheduling.plugins import Fragile, Slow, waiting_for
from tests.unit.scheduling.worlds import World, a_policy, in_world, settle

from cubesched.policy.policyset import CompiledProfile, PolicySet, Route
from cubesched.scheduling.asking import MOST_AT_ONCE

SMALL = {"cpu": "100m", "memory": "64Mi"}


def beside_others(slow: Slow) -> PolicySet:
    """Return a set in which requests with the label workload=slow wait for a plugin."""
    policy = a_policy()
    waits = CompiledProfile(
        name="slow-profile",
        generation=1,
        route=Route(labels=(("workload", "slow"),)),
        is_default=False,
        pipeline=replace(waiting_for(slow), profile="slow-profile"),
    )
    return replace(policy, profiles=(waits, *policy.profiles))


def use(world: World, slow: Slow, failure: str = "fail-closed") -> None:
    world.policy.current = a_policy(waiting_for(slow, failure=failure))


@in_world(nodes=("n1", "n2"))
async def test_a_request_goes_where_its_plugin_lets_it(world: World) -> None:
    use(world, Slow(keeps=lambda node: node == "n2"))
    world.start()
    world.server.create("r1")

    await settle()

    assert (world.phase(), world.status()["nodeName"]) == ("Bound", "n2")
    assert world.is_at_rest()


@in_world(nodes=("n1", "n2"))
async def test_a_hanging_plugin_delays_no_other_profile(world: World) -> None:
    slow = Slow(seconds=1_000.0)
    world.policy.current = beside_others(slow)
    world.start()
    for number in range(40):
        world.server.create(f"s{number}", **SMALL, labels={"workload": "slow"})
    await settle(0.1)
    for number in range(40):
        world.server.create(f"r{number}", **SMALL)

    await settle(1.0)

    assert {world.phase(f"r{number}") for number in range(40)} == {"Bound"}
    assert len(slow.asked) == MOST_AT_ONCE


@in_world(nodes=("n1",))
async def test_a_profile_asks_a_few_at_a_time_and_the_first_in_turn_first(world: World) -> None:
    slow = Slow(seconds=0.1)
    use(world, slow)
    world.start()
    for number in range(MOST_AT_ONCE + 2):
        world.server.create(f"r{number:02}", **SMALL)
    await settle(0.05)
    world.server.create("urgent", **SMALL, spec={"priority": 5})

    await settle(2.0)

    assert slow.most_under_way == MOST_AT_ONCE
    uid = world.server.objects["urgent"]["metadata"]["uid"]
    assert uid in slow.asked[MOST_AT_ONCE : MOST_AT_ONCE + 2]
    assert {world.phase(name) for name in world.server.objects} == {"Bound"}


@in_world(nodes=("n1",))
async def test_those_in_turn_are_told_when_no_node_is_left_to_ask_about(world: World) -> None:
    use(world, Slow(seconds=0.5))
    world.start()
    for number in range(3 * MOST_AT_ONCE):
        world.server.create(f"r{number:02}", **SMALL)
    await settle(0.1)
    world.put_node("n1", "MODIFIED", spec={"unschedulable": True})

    await settle(4.0)

    told = {world.scheduled(name) for name in world.server.objects}
    assert told == {("False", "Unschedulable")}


@in_world(nodes=("n1",))
async def test_one_in_turn_that_leaves_this_replica_and_returns_is_placed(world: World) -> None:
    use(world, Slow(seconds=0.5))
    world.start()
    for number in range(MOST_AT_ONCE + 1):
        world.server.create(f"r{number:02}", **SMALL)
    await settle(0.1)
    world.scheduler.share(("other",))
    world.scheduler.share((world.scheduler.identity,))

    await settle(4.0)

    assert {world.phase(name) for name in world.server.objects} == {"Bound"}
    assert world.is_at_rest()


@in_world(nodes=("n1", "n2"))
async def test_the_guards_are_asked_again_when_the_answer_comes(world: World) -> None:
    use(world, Slow(seconds=1.0, keeps=lambda node: node == "n1"))
    world.start()
    world.server.create("r1")
    await settle(0.5)
    world.put_node("n1", "MODIFIED", spec={"unschedulable": True})

    await settle(3.0)

    assert world.phase() == "Pending"
    assert world.phases().count("Reserved") == 0


@in_world()
async def test_what_breaks_while_a_plugin_thinks_is_told(world: World) -> None:
    fragile = Fragile()
    world.policy.current = a_policy(waiting_for(fragile, Slow(seconds=1.0)))
    world.start()
    world.server.create("r1")
    await settle(0.5)
    fragile.fails = True

    await settle(3.0)

    assert world.scheduled() == ("False", "PluginFailed")


@in_world()
async def test_deleting_a_request_calls_its_question_off(world: World) -> None:
    slow = Slow(seconds=1_000.0)
    use(world, slow)
    world.start()
    world.server.create("r1")
    uid = world.server.objects["r1"]["metadata"]["uid"]
    await settle(0.1)
    world.server.delete("r1")
    slow.seconds = 0.05
    world.server.create("r2")

    await settle(1.0)

    assert slow.cancelled == [uid]
    assert world.phase("r2") == "Bound"
    assert world.is_at_rest()


@in_world()
async def test_a_request_that_changes_meanwhile_is_decided_anew(world: World) -> None:
    slow = Slow(seconds=0.5)
    use(world, slow)
    world.start()
    world.server.create("r1")
    await settle(0.1)
    world.server.change("r1", metadata={"labels": {"team": "a"}})

    await settle(2.0)

    assert len(slow.asked) == 2
    assert world.phase() == "Bound"


@in_world(nodes=("n1", "n2"))
async def test_what_a_plugin_excludes_is_told(world: World) -> None:
    use(world, Slow(keeps=lambda _node: False))
    world.start()
    world.server.create("r1")

    await settle(4.0)

    assert world.scheduled() == ("False", "Unschedulable")
    lines = world.status()["explanation"].splitlines()
    assert lines[0] == "0/2 nodes are available: 2 excluded by slow."
    assert (
        lines[-1] == "What would help is not told: a filter outside the operator has its own say."
    )


@in_world(nodes=("n1", "n2"))
async def test_what_fails_as_a_whole_is_told_and_tried_again(world: World) -> None:
    slow = Slow(fails=True)
    use(world, slow)
    world.start()
    world.server.create("r1")
    await settle(4.0)
    assert world.scheduled() == ("False", "PluginFailed")
    slow.fails = False

    await settle(12.0)

    assert world.phase() == "Bound"
    failures = [labels for name, labels in world.meter.labels if "plugin_failures" in name]
    assert failures[0] == {"profile": "a-profile", "plugin": "slow", "policy": "fail-closed"}


@in_world(nodes=("n1", "n2"))
async def test_under_fail_open_a_failed_call_keeps_every_node(world: World) -> None:
    use(world, Slow(fails=True), failure="fail-open")
    world.start()
    world.server.create("r1")

    await settle(1.0)

    assert world.phase() == "Bound"
    failures = [labels for name, labels in world.meter.labels if "plugin_failures" in name]
    assert failures == [{"profile": "a-profile", "plugin": "slow", "policy": "fail-open"}]


@in_world(nodes=("n1", "n2"))
async def test_one_of_a_class_asks_for_all_until_it_is_let_through(world: World) -> None:
    slow = Slow(keeps=lambda _node: False)
    use(world, slow)
    world.start()
    for number in range(20):
        world.server.create(f"r{number}", **SMALL)
    await settle(1.0)
    first = len(slow.asked)
    assert first == 20

    await settle(20.0)  # a report each second may have helped; only asking can tell
    assert first < len(slow.asked) < first + 25
    slow.keeps = lambda _node: True
    await settle(15.0)

    assert {world.phase(f"r{number}") for number in range(20)} == {"Bound"}


@in_world()
async def test_no_plugin_is_asked_where_no_node_is_left(world: World) -> None:
    slow = Slow()
    use(world, slow)
    world.start()
    world.server.create("r1", spec={"nodeSelector": {"zone": "nowhere"}})

    await settle(4.0)

    assert world.scheduled() == ("False", "Unschedulable")
    assert slow.asked == []


@in_world()
async def test_stopping_gives_up_what_is_being_asked(world: World) -> None:
    slow = Slow(seconds=1_000.0)
    use(world, slow)
    world.start()
    world.server.create("r1")
    await settle(0.1)

    world.scheduler.asking.stop()
    await settle(0.1)

    assert len(slow.cancelled) == 1
    assert not world.scheduler.asking.tasks


@in_world(nodes=("n1", "n2"))
async def test_a_profile_that_drops_its_plugin_leaves_nobody_waiting_for_a_turn(
    world: World,
) -> None:
    use(world, Slow(seconds=1.0))
    world.start()
    for number in range(5 * MOST_AT_ONCE):
        world.server.create(f"r{number}", **SMALL)
    await settle(0.1)
    world.policy.current = a_policy()
    world.scheduler.policy_changed()

    await settle(0.5)
    bound_meanwhile = sum(world.phase(name) == "Bound" for name in world.server.objects)
    await settle(2.0)

    assert bound_meanwhile == 4 * MOST_AT_ONCE
    assert {world.phase(name) for name in world.server.objects} == {"Bound"}


@in_world(nodes=("n1",))
async def test_those_whose_turn_comes_when_no_node_is_left_are_told_so(world: World) -> None:
    use(world, Slow(seconds=0.5))
    world.start()
    for number in range(5 * MOST_AT_ONCE):
        world.server.create(f"r{number}", **SMALL)
    await settle(0.1)
    world.put_node("n1", "MODIFIED", spec={"unschedulable": True})

    await settle(10.0)

    assert {world.scheduled(name) for name in world.server.objects} == {("False", "Unschedulable")}


@in_world(nodes=("n1",))
async def test_a_request_that_left_and_came_back_takes_its_turn_once(world: World) -> None:
    slow = Slow(seconds=0.5)
    use(world, slow)
    world.start()
    for number in range(MOST_AT_ONCE + 2):
        world.server.create(f"r{number:02}", **SMALL)
    await settle(0.1)
    world.scheduler.share(("someone-else",))
    world.scheduler.share((world.scheduler.identity,))
    for item in world.scheduler.queue.items.values():
        item.tried_at += 1.0

    await settle(4.0)

    assert {world.phase(name) for name in world.server.objects} == {"Bound"}
