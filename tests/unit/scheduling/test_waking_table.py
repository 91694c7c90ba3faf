"""For each way of being kept out: exactly the change that helps wakes, and what does not does not.

A stage, a safety code or a reason without a row here fails a test below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.model.virtualtime import run_virtual
from tests.unit.builders import GIB, a_pipeline
from tests.unit.fleet.objects import a_request_object, reports
from tests.unit.scheduling.test_reasons import Judge
from tests.unit.scheduling.worlds import WALL_AT_START, World, a_policy, settle

from cubesched.api.timestamps import timestamp
from cubesched.core.decision import Reason
from cubesched.plugins.builtin.guards.node_safety import TEXTS
from cubesched.plugins.registry import CONSTRAINTS, FILTERS, GUARDS
from cubesched.policy.policyset import PolicySet, Route

WITHIN = 0.6
"""Less than a heartbeat and far less than a flush."""
OLD_STAMP_MS = int((WALL_AT_START - 1000.0) * 1000)
Act = Callable[[World], object]


def node(**fields: Any) -> Act:
    """The node's object changes to 8 cpus, 16 GiB and these."""
    return lambda world: world.put_node("n1", "MODIFIED", **fields)


def report(**fields: Any) -> Act:
    """The node reports, in Redis alone."""
    return lambda world: world.beat("n1", **fields)


def same_report(stamp_ms: int, uid: str = "uid-n1-new") -> Act:
    """A report with this stamp is read, perhaps once more."""
    return lambda world: world.fleet.take_reports(reports(stamp_ms, "n1", node_uid=uid))


def holds(phase: str = "Running", **reservation: int) -> Act:
    """A request stands on the node and counts."""
    weight = {"cpuMillis": 0, "memoryBytes": 0, **reservation}
    return lambda world: world.server.create("old", phase=phase, node="n1", reservation=weight)


def holds_too(**reservation: int) -> Act:
    weight = {"cpuMillis": 0, "memoryBytes": 0, **reservation}
    return lambda world: world.server.create(
        "other", phase="Running", node="n1", reservation=weight
    )


def ends(name: str = "old", phase: str = "Succeeded") -> Act:
    def act(world: World) -> None:
        world.server.patch_status(name, phase=phase)

    return act


def all_of(*acts: Act) -> Act:
    def act(world: World) -> None:
        for each in acts:
            each(world)

    return act


def recreated(world: World) -> None:
    """The node is a new machine under its old name, not heard of yet."""
    world.put_node("n1", "DELETED")
    world.put_node("n1", uid="uid-n1-new")


def is_gone(world: World) -> None:
    world.put_node("n1", "DELETED")


def joins(name: str, **fields: Any) -> Act:
    def act(world: World) -> None:
        world.put_node(name, **fields)
        world.beat(name, ago_seconds=1.0)
        world.beat(name)

    return act


def refuses_often(world: World) -> None:
    """The node has refused five requests just now."""
    refusal = {"node": "n1", "time": timestamp(WALL_AT_START)}
    for number in range(5):
        gone = a_request_object(f"refused{number}", phase="Succeeded", refusals=[refusal])
        world.fleet.ledger.event("ADDED", gone, 50)
    for part in world.scheduler.parts:
        part.sweep()


def time_passes(world: World) -> None:
    """Nothing is done."""


def relabels(**labels: str) -> Act:
    def act(world: World) -> None:
        world.server.change("r1", metadata={"labels": labels})

    return act


def respecs(**spec: Any) -> Act:
    def act(world: World) -> None:
        world.server.change("r1", spec=spec, metadata={"generation": 2})

    return act


def no_policy(world: World) -> None:
    world.policy.current = None


def policy(**settings: Any) -> Act:
    def act(world: World) -> None:
        world.policy.current = a_policy(revision="rev-2", **settings)
        world.scheduler.policy_changed()

    return act


def filtered(name: str, **args: Any) -> Callable[[], PolicySet]:
    return lambda: a_policy(a_pipeline(("least_allocated", {}, 1.0), filters={name: args}))


def routed() -> PolicySet:
    return a_policy(route=Route(labels=(("workload", "batch"),)))


tiny_joins = joins("n9", cpu="1m")


@dataclass(frozen=True, slots=True)
class Row:
    """One way of being kept out."""

    stage: str
    """The guard, constraint or filter; empty where no node is looked at."""
    text: str
    """What the request is told."""
    block: Act
    helps: Act
    unrelated: tuple[Act, ...] = ()
    """Beside a tiny node that joins and a heartbeat like the last."""
    asks: Mapping[str, Any] = field(default_factory=dict)
    policy: Callable[[], PolicySet] = a_policy
    reason: Reason = Reason.UNSCHEDULABLE
    within: float = WITHIN

    @property
    def title(self) -> str:
        return f"{self.stage or self.reason}: {self.text}"


STALE = Reason.STALE_METRICS
GPU = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
FPGA = {"taints": [{"key": "fpga", "effect": "NoSchedule"}]}
DISK = {"resources": {"cpu": "1", "memory": "1Gi", "systemDisk": "8Gi"}}
ROWS: list[Row] = [
    # node_safety
    Row("node_safety", "invalid node spec", node(cpu="lots"), node(), (node(cpu="many"),),
        reason=Reason.NEVER_FITS),
    Row("node_safety", "node not ready", node(ready=False), node(),
        (node(ready=False, cpu="64"),), reason=STALE),
    Row("node_safety", "node unschedulable", node(spec={"unschedulable": True}), node(),
        (node(spec={"unschedulable": True}, cpu="64"),)),
    Row("node_safety", "quarantined after refusals", refuses_often, time_passes, (report(),),
        within=30.0),
    Row("node_safety", "metrics never reported", recreated,
        all_of(report(ago_seconds=0.5), report()),
        (same_report(OLD_STAMP_MS, uid="uid-n1"),), reason=STALE),
    Row("node_safety", "stale metrics", all_of(recreated, same_report(OLD_STAMP_MS)), report(),
        (same_report(OLD_STAMP_MS),), reason=STALE),
    Row("node_safety", "clock skew", report(ago_seconds=-100.0), report(),
        (report(ago_seconds=-90.0),), reason=STALE),
    Row("node_safety", "unreadable request on the node", holds(cpuMillis=-1), ends(),
        (lambda world: world.server.change("old", metadata={"labels": {"a": "b"}}),)),
    Row("node_safety", "awaiting a report", all_of(recreated, same_report(1_800_000_000_000)),
        report(), (same_report(1_800_000_000_000),), reason=STALE),
    Row("node_safety", "sandbox limit reached",
        all_of(node(spec={"quota": {"sandboxes": 1}}), holds()), ends(), (ends(phase="Paused"),)),
    Row("node_safety", "sandbox limit reached",
        all_of(node(spec={"quota": {"sandboxes": 9}}), report(sandboxes=10)), report(sandboxes=8),
        (report(sandboxes=9),)),
    Row("node_safety", "cpu load too high", report(cpu_load=9.0), report(cpu_load=8.0),
        (report(cpu_load=8.1),)),
    # cpu
    Row("cpu", "insufficient cpu", all_of(holds(cpuMillis=7500), holds_too(memoryBytes=GIB)),
        ends(), (ends("other"),)),
    Row("cpu", "insufficient cpu", report(foreign_cpu_millis=8000),
        report(foreign_cpu_millis=7000), (report(foreign_cpu_millis=7001),)),
    Row("cpu", "the largest has 8000m", time_passes, node(cpu="12"), (node(cpu="11"),),
        {"cpu": "12"}, reason=Reason.NEVER_FITS),
    Row("cpu", "the largest has 8000m", time_passes, policy(overcommit_cpu=2),
        asks={"cpu": "12"}, reason=Reason.NEVER_FITS),
    Row("cpu", "cpu utilisation too high", report(cpu_util_percent=99.0),
        report(cpu_util_percent=79.0), (report(cpu_util_percent=80.0),)),
    # mem
    Row("mem", "insufficient memory",
        all_of(holds(memoryBytes=15 * GIB + 1), holds_too(cpuMillis=1000)),
        ends(), (ends("other"),)),
    Row("mem", "insufficient memory", report(foreign_memory_bytes=16 * GIB),
        report(foreign_memory_bytes=15 * GIB), (report(foreign_memory_bytes=15 * GIB + 1),)),
    Row("mem", "insufficient free memory on the machine", report(memory_used_bytes=15 * GIB),
        report(memory_used_bytes=13 * GIB), (report(memory_used_bytes=14 * GIB),)),
    # disk
    Row("disk", "insufficient disk",
        all_of(node(spec={"quota": {"systemDisk": "10Gi"}}), holds(diskBytes=5 * GIB),
               holds_too(cpuMillis=1000)),
        ends(), (ends("other"),), {"spec": DISK}),
    Row("disk", "insufficient disk",
        all_of(node(spec={"quota": {"systemDisk": "10Gi"}}), report(foreign_disk_bytes=5 * GIB)),
        report(foreign_disk_bytes=2 * GIB), (report(foreign_disk_bytes=3 * GIB),),
        {"spec": DISK}),
    Row("disk", "disk too full", report(storage_disk_percent=90.0),
        report(storage_disk_percent=79.0), (report(storage_disk_percent=80.0),)),
    # template_locality
    Row("template_locality", "no local template", time_passes, node(templates=["t1"]),
        (node(templates=["t2"]),), {"template": "t1"}),
    Row("template_locality", "outside the template node scope", time_passes, joins("n2"),
        (joins("n3"),), {"spec": {"templateNodeScope": ["n2"]}}),
    # realtime_create_num
    Row("realtime_create_num", "too many creates in flight",
        all_of(node(spec={"quota": {"createConcurrency": 1}}), holds("Starting")),
        ends(phase="Running"),
        (lambda world: world.server.change("old", metadata={"labels": {"a": "b"}}),)),
    Row("realtime_create_num", "too many creates in flight", report(creating=101),
        report(creating=99), (report(creating=100),)),
    # constraints
    Row("refused", "refused this request lately", time_passes, time_passes,
        asks={"refusals": [{"node": "n1", "time": timestamp(WALL_AT_START - 290.0)}]},
        within=10.0),
    Row("instance_type", "other instance type", node(spec={"instanceType": "gpu"}), node(),
        (node(spec={"instanceType": "fpga"}),)),
    Row("node_selector", "node selector not matched", time_passes, node(labels={"zone": "a"}),
        (node(labels={"zone": "b"}),), {"spec": {"nodeSelector": {"zone": "a"}}}),
    Row("taints", "taint not tolerated", node(spec=GPU), node(), (node(spec=FPGA),)),
    # filters
    Row("node_labels", "node labels not matched", time_passes, node(labels={"zone": "a"}),
        (node(labels={"zone": "b"}),), policy=filtered("node_labels", matchLabels={"zone": "a"})),
    Row("scarce_resource", "kept for scarce resources", node(labels={"gpu": "1"}),
        node(labels={"gpu": "false"}), (node(labels={"gpu": "2"}),),
        policy=filtered("scarce_resource")),
    # before any node is looked at
    Row("", "there is no SandboxNode", is_gone, joins("n1"), reason=Reason.NO_NODES),
    Row("", "no SchedulerProfile matches", time_passes, relabels(workload="batch"),
        (node(labels={"workload": "batch"}),), policy=routed, reason=Reason.NO_PROFILE),
    Row("", "no SchedulerProfile matches", time_passes, policy(), policy=routed,
        reason=Reason.NO_PROFILE),
    Row("", "no policy set is active", no_policy, policy(), (node(cpu="64"),),
        reason=Reason.NO_ACTIVE_POLICY),
    Row("", "spec.resources.cpu", time_passes,
        respecs(resources={"cpu": "1", "memory": "1Gi"}), (node(cpu="64"),), {"cpu": "lots"},
        reason=Reason.INVALID_SPEC),
    Row("", "held back by schedulingGates: quota", time_passes, respecs(schedulingGates=[]),
        (node(cpu="64"),), {"spec": {"schedulingGates": [{"name": "quota"}]}},
        reason=Reason.GATED),
]  # fmt: skip


def tries(world: World) -> int:
    return world.meter.counts["scheduler_attempts_total"]


async def goes_through(row: Row, world: World) -> None:
    world.is_beating = False
    row.block(world)
    world.start()
    world.server.create("r1", **row.asks)
    await settle(3.0)
    no = world.scheduler.waking.nos["uid-r1"]
    assert (no.blocked_by, no.reason) == (row.stage, row.reason)
    assert row.text in world.scheduler.attempts.explain(no)[1] + no.message

    before = tries(world)
    for unrelated in (tiny_joins, *row.unrelated):
        unrelated(world)
        await settle(WITHIN)
        assert tries(world) == before, "what does not help leads to no try"
        assert world.phase() == "Pending"

    row.helps(world)
    await settle(row.within)
    assert world.phase() == "Bound"
    assert world.meter.counts["cubesched_flush_rescues_total"] == 0


@pytest.mark.parametrize("row", ROWS, ids=[row.title for row in ROWS])
def test_exactly_the_change_that_helps_wakes(row: Row) -> None:
    async def main() -> None:
        world = World(row.policy())
        world.list_requests()
        world.list_nodes("n1")
        await goes_through(row, world)

    run_virtual(main)


def test_every_stage_has_a_row() -> None:
    stages = {stage.name for stage in (*GUARDS, *CONSTRAINTS)} | FILTERS.keys()

    assert {row.stage for row in ROWS} - {""} == stages


def test_every_safety_code_has_a_row() -> None:
    texts = {row.text for row in ROWS if row.stage == "node_safety"}

    assert texts == {*TEXTS.values(), "sandbox limit reached", "cpu load too high"}


def test_every_reason_has_a_row_or_comes_back_by_time() -> None:
    by_time = {Reason.PLUGIN_FAILED, Reason.CONFLICT}
    at_once = {Reason.REFUSED, Reason.NODE_LOST, Reason.START_DEADLINE, Reason.DRAINED}
    never = {Reason.NO_CANDIDATE}

    assert {row.reason for row in ROWS} == set(Reason) - by_time - at_once - never


# Refusals


def in_a_world(*nodes: str) -> World:
    world = World()
    world.list_requests()
    world.list_nodes(*nodes)
    return world


def refused_by(node: str, *, seconds_ago: float) -> dict[str, str]:
    return {"node": node, "reason": "NoRoom", "time": timestamp(WALL_AT_START - seconds_ago)}


def test_a_refusal_that_passes_wakes_its_own_request_and_no_other_of_its_class() -> None:
    async def main() -> None:
        world = in_a_world("n1")
        world.start()
        world.server.create("early", refusals=[refused_by("n1", seconds_ago=290.0)])
        world.server.create("late", refusals=[refused_by("n1", seconds_ago=270.0)])
        await settle(9.5)
        assert world.phase("early") == "Pending"
        before = tries(world)

        await settle(1.5)
        assert (world.phase("early"), world.phase("late")) == ("Bound", "Pending")
        assert tries(world) == before + 1

        await settle(20.0)
        assert world.phase("late") == "Bound"
        assert world.scheduler.waking.passing == {}

    run_virtual(main)


def test_a_refusal_that_passes_while_nothing_fits_leads_to_no_try_but_to_the_new_reason() -> None:
    async def main() -> None:
        world = in_a_world("n1", "n2")
        world.put_node("n2", "MODIFIED", cpu="100m")
        world.start()
        world.server.create("r1", refusals=[refused_by("n1", seconds_ago=285.0)])
        await settle(10.0)
        assert world.scheduler.waking.nos["uid-r1"].blocked_by in {"cpu", "refused"}
        before = tries(world)
        holds(cpuMillis=8000)(world)
        await settle(6.0)
        assert tries(world) == before
        assert world.scheduler.waking.nos["uid-r1"].blocked_by == "cpu"

        ends()(world)
        await settle(WITHIN)
        assert world.phase() == "Bound"

    run_virtual(main)


def test_a_refusal_is_not_looked_at_before_its_time_when_clocks_disagree() -> None:
    async def main() -> None:
        world = in_a_world("n1")
        world.start()
        world.server.create("r1", refusals=[refused_by("n1", seconds_ago=290.0)])
        await settle(3.0)
        world.scheduler.waking.passing["uid-r1"] = world.clock.monotonic()
        before = tries(world)
        await settle(1.0)
        assert world.phase() == "Pending"
        assert tries(world) == before

        await settle(7.0)
        assert world.phase() == "Bound"

    run_virtual(main)


# What comes back by time


def test_a_plugin_that_failed_is_asked_again_ever_more_slowly() -> None:
    async def main() -> None:
        pipeline = a_pipeline(("least_allocated", {}, 1.0))
        world = World(a_policy(replace(pipeline, filters=(Judge(fails=True),))))
        world.list_requests()
        world.list_nodes("n1")
        world.start()
        world.server.create("r1")
        await settle(120.0)
        assert world.scheduled() == ("False", "PluginFailed")
        assert 12 <= tries(world) <= 20, "after 1, 2, 4, 8 and then every 10 s, give or take"

        world.policy.current = a_policy(replace(pipeline, filters=(Judge(),)))
        await settle(13.0)
        assert world.phase() == "Bound"

    run_virtual(main)
