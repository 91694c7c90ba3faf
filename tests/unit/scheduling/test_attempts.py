"""One attempt: lease, route, decide; what helps one member of a class helps all."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.scheduling.worlds import WALL_AT_START, World, a_policy, in_world, settle

from cubesched.api.timestamps import timestamp
from cubesched.core.decision import Reason
from cubesched.fleet.entries import Entry
from cubesched.scheduling.attempts import MOST_WOKEN, REFUSAL_SECONDS, No, Undecided, Yes


async def an_entry(world: World, name: str = "r1", **fields: object) -> Entry:
    world.server.create(name, **fields)
    await settle(0.01)
    return world.fleet.ledger.entries[f"uid-{name}"]


def attempt(world: World, entry: Entry) -> Yes | No:
    answer = world.scheduler.attempts.attempt(entry, 0)
    assert not isinstance(answer, Undecided)
    return answer


@in_world()
async def test_a_refusal_keeps_a_request_off_its_node_for_five_minutes(world: World) -> None:
    refusals = [{"node": "n1", "reason": "NoRoom", "time": timestamp(WALL_AT_START)}]
    entry = await an_entry(world, refusals=refusals)
    answer = attempt(world, entry)
    assert isinstance(answer, No)
    assert answer.blocked_by == "refused"

    world.is_beating = True
    world.start()
    await settle(REFUSAL_SECONDS)
    assert isinstance(attempt(world, entry), Yes)


@in_world()
async def test_a_refusal_without_a_readable_time_keeps_nobody_off(world: World) -> None:
    entry = await an_entry(world, refusals=[{"node": "n1", "time": "soon"}])

    assert isinstance(attempt(world, entry), Yes)


@in_world()
async def test_an_attempt_keeps_the_policy_that_it_leased(world: World) -> None:
    entry = await an_entry(world)
    answer = attempt(world, entry)
    world.policy.current = a_policy(revision="rev-2")

    assert isinstance(answer, Yes)
    assert answer.policy.revision == "rev-1"


@in_world()
async def test_requests_alike_are_one_class_and_others_are_not(world: World) -> None:
    like = [await an_entry(world, name, cpu="99") for name in ("r1", "r2")]
    unlike = [
        await an_entry(world, "r3", cpu="98"),
        await an_entry(world, "r4", cpu="99", template="t1"),
        await an_entry(world, "r5", cpu="99", labels={"workload": "burst"}),
        await an_entry(world, "r6", cpu="99", spec={"nodeSelector": {"zone": "a"}}),
    ]

    keys = [answer.key for e in like + unlike if isinstance(answer := attempt(world, e), No)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 5


@in_world()
async def test_plugins_see_only_the_labels_that_the_config_lists(world: World) -> None:
    world.policy.current = a_policy(profile_route_label_keys=("workload", "team"))
    entry = await an_entry(world, labels={"workload": "burst", "secret": "x"})

    answer = attempt(world, entry)

    assert isinstance(answer, Yes)
    assert answer.request.labels == {"workload": "burst"}


@in_world()
async def test_bad_specs_are_each_a_class_of_their_own(world: World) -> None:
    entries = [await an_entry(world, name, cpu="lots") for name in ("r1", "r2")]

    answers = [attempt(world, entry) for entry in entries]
    assert [a.reason for a in answers if isinstance(a, No)] == [Reason.INVALID_SPEC] * 2
    assert len({a.key for a in answers if isinstance(a, No)}) == 2


@in_world(nodes=("n1", "n2"))
async def test_room_is_counted_over_all_feasible_nodes_in_the_scarcest_resource(
    world: World,
) -> None:
    answer = attempt(world, await an_entry(world, cpu="3"))
    assert isinstance(answer, Yes)
    assert world.scheduler.attempts.room_like(answer) == 4

    many = attempt(world, await an_entry(world, "small", cpu="1m", memory="1Mi"))
    assert isinstance(many, Yes)
    assert world.scheduler.attempts.room_like(many) == 200, "creates in flight are the scarcest"
    view = world.fleet.snapshot
    view.create_limit[:] = 1_000
    assert world.scheduler.attempts.room_like(many) == MOST_WOKEN


@in_world()
async def test_a_no_is_explained_in_one_line_and_in_several(world: World) -> None:
    answer = attempt(world, await an_entry(world, cpu="99"))
    assert isinstance(answer, No)
    line, text = world.scheduler.attempts.explain(answer)
    assert line.count("\n") == 0
    assert text.startswith(line)
    assert "cpu: 1 node rejected" in text

    plain = replace(answer, rejected=None, message="as it is")
    assert world.scheduler.attempts.explain(plain) == ("as it is", "")


@in_world()
async def test_what_would_help_is_told_and_true(world: World) -> None:
    answer = attempt(world, await an_entry(world, cpu="12"))
    assert isinstance(answer, No)
    _, text = world.scheduler.attempts.explain(answer)
    assert text.splitlines()[-1] == "  1 node would fit with cpu <= 8000m: n1"

    assert isinstance(attempt(world, await an_entry(world, "r2", cpu="8000m")), Yes)


@in_world()
async def test_those_of_one_class_are_told_the_same_until_the_fleet_changes(world: World) -> None:
    answers = [attempt(world, await an_entry(world, name, cpu="99")) for name in ("r1", "r2")]
    texts = [world.scheduler.attempts.explain(no) for no in answers if isinstance(no, No)]
    assert texts[0] is texts[1]

    world.put_node("n2", cpu="16")
    again = attempt(world, world.fleet.ledger.entries["uid-r1"])
    assert isinstance(again, No)
    _, text = world.scheduler.attempts.explain(again)
    assert text.startswith("0/2 nodes are available")


@in_world(lambda: a_policy(own_nodes_first=True), nodes=tuple(f"n{n}" for n in range(8)))
async def test_own_nodes_come_first_only_among_several_replicas(world: World) -> None:
    entries = [await an_entry(world, f"r{number}") for number in range(20)]
    world.scheduler.share(("replica-me", "replica-x", "replica-y"))
    own = {name for name, mine in zip(world.fleet.columns.names, world.fleet.snapshot.own.tolist(),
                                      strict=True) if mine}  # fmt: skip
    shared = [attempt(world, entry) for entry in entries]
    assert {answer.placed.node for answer in shared if isinstance(answer, Yes)} <= own

    world.scheduler.attempts.alone = True
    alone = [attempt(world, entry) for entry in entries]
    assert len({answer.placed.node for answer in alone if isinstance(answer, Yes)} - own) > 0


@in_world()
async def test_a_gate_holds_a_request_back_and_is_named(world: World) -> None:
    gates = {"schedulingGates": [{"name": "acme.io/quota"}]}
    gated = attempt(world, await an_entry(world, "r1", spec=gates))
    paused = attempt(world, await an_entry(world, "r2", spec={"paused": True}))

    assert isinstance(gated, No)
    assert isinstance(paused, No)
    assert (gated.reason, paused.reason) == (Reason.GATED, Reason.GATED)
    assert "acme.io/quota" in gated.message
    assert "spec.paused" in paused.message


@in_world()
async def test_a_gated_request_is_placed_once_its_gates_are_gone(world: World) -> None:
    world.start()
    world.server.create("r1", spec={"schedulingGates": [{"name": "a"}]})
    await settle(5.0)
    assert world.phase("r1") == "Pending"

    world.server.change("r1", spec={"schedulingGates": []})
    await settle(1.0)
    assert world.phase("r1") == "Bound"
