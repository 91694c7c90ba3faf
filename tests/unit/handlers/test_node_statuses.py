"""The writer of nodes' statuses: what changed and no more, seldom, and only what it owns."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.fleet.objects import a_node_object, a_request_object, reports
from tests.unit.handlers.fakes import Cluster, Replicas

from cubesched.api import NODES
from cubesched.api.timestamps import timestamp
from cubesched.api.v1alpha1 import SandboxNodeStatus
from cubesched.core.scheduler_settings import GuardSettings, Settings
from cubesched.core.writing import Outcome
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.metrics_layout import NodeReport, decode_all, encode
from cubesched.fleet.quarantine import Quarantine
from cubesched.fleet.rendezvous import Member, owner
from cubesched.fleet.survey import LEAST_SECONDS, REDATE_SECONDS, SETTLE_SECONDS
from cubesched.handlers import node_statuses
from cubesched.handlers.node_statuses import NodeStatuses

EPOCH = 1_796_032_800.0
WHOLE = {
    "foreign_cpu_millis": 0, "foreign_memory_bytes": 0, "foreign_disk_bytes": 0,
    "cpu_util_percent": 1.0, "cpu_load": 1.0, "memory_used_bytes": 1, "data_disk_percent": 1.0,
    "storage_disk_percent": 1.0, "system_disk_percent": 1.0, "sandboxes": 0, "creating": 0,
}  # fmt: skip


class World:
    """One replica, its fleet, and the nodes as the server holds them."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.version = 1
        self.cluster, self.replicas = Cluster(), Replicas()
        self.fleet = Fleet(monotonic=self.monotonic, wall=self.wall)
        self.fleet.reset()
        self.fleet.complete(1)
        self.fleet.ledger.reset()
        self.fleet.ledger.complete(1)
        self.statuses = NodeStatuses(self.fleet, self.cluster, self.replicas, self)

    def monotonic(self) -> float:
        return self.seconds

    def wall(self) -> float:
        return EPOCH + self.seconds - 1000.0

    def put(self, name: str, *, generation: int = 1, **fields: Any) -> None:
        """Store a node and let its events pass by."""
        self.version += 1
        raw = a_node_object(name, **fields)
        body = json.loads(raw)
        del body["status"]
        body["metadata"]["generation"] = generation
        self.cluster.put(NODES, body)
        self.fleet.event("MODIFIED", raw, self.version)
        self.show(name)

    def show(self, name: str) -> None:
        """Let the node's event pass by as it now is."""
        self.statuses.observe(json.loads(json.dumps(self.cluster.objects[f"sandboxnodes/{name}"])))

    def request(
        self, name: str = "r1", *, node: str = "n", phase: str = "Running", **held: Any
    ) -> None:
        self.version += 1
        raw = a_request_object(name, phase=phase, node=node, reservation=held)
        self.fleet.ledger.event("MODIFIED", raw, self.version)

    def report(self, *names: str, **fields: Any) -> None:
        self.fleet.take_reports(reports(int(self.wall() * 1000), *names, **{**WHOLE, **fields}))

    async def turns(self, seconds: float, *reporting: str, **fields: Any) -> list[str]:
        """Let the writer have its turns for so long; return the nodes that were written."""
        already = len(self.cluster.writes)
        for number in range(round(seconds / 0.5)):
            self.seconds += 0.5
            if reporting and number % 2:
                self.report(*reporting, **fields)
            self.fleet.sweep()
            await self.statuses.write_due()
            for key, _ in self.cluster.writes[already:]:
                self.show(key.split("/")[1])
        return [key.split("/")[1] for key, _ in self.cluster.writes[already:]]

    def status(self, name: str = "n") -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.objects[f"sandboxnodes/{name}"]["status"]
        SandboxNodeStatus.model_validate(found)
        return found

    def reasons(self, name: str = "n") -> dict[str, tuple[str, str]]:
        return self.cluster.conditions(NODES, name)

    def message(self, kind: str, name: str = "n") -> str:
        (found,) = (c for c in self.status(name)["conditions"] if c["type"] == kind)
        return str(found["message"])


@pytest.fixture
def world() -> World:
    return World()


# What is written of one node


async def test_a_node_that_reports_all_is_shown_whole_in_one_write(world: World) -> None:
    world.put("n")

    assert await world.turns(SETTLE_SECONDS + 2, "n") == ["n"]

    assert world.reasons() == {
        "Accepted": ("True", "Valid"),
        "MetricsComplete": ("True", "Complete"),
        "Overcommitted": ("False", "WithinLimits"),
    }
    status = world.status()
    del status["conditions"]
    assert status == {
        "schedulable": "True",
        "metricsTime": "2026-11-30T10:00:02Z",
        "allocated": {
            "cpu": "0", "memory": "0", "systemDisk": "0", "sandboxes": 0, "creating": 0,
            "cpuPercent": 0, "memoryPercent": 0,
        },
        "effectiveCapacity": {
            "cpu": "8", "memory": "16Gi", "sandboxes": 3000, "createConcurrency": 100,
            "pausedResourceReleaseRatio": 0.0,
        },
    }  # fmt: skip


async def test_nothing_is_written_while_nothing_changes_but_the_date(world: World) -> None:
    world.put("n")
    await world.turns(4, "n")

    assert await world.turns(REDATE_SECONDS - 3, "n") == []
    before = world.status()
    assert await world.turns(5, "n") == ["n"]
    after = world.status()
    assert after["metricsTime"] > before["metricsTime"]
    assert {**after, "metricsTime": ""} == {**before, "metricsTime": ""}


async def test_a_restarted_replica_finds_what_stands_and_writes_nothing(world: World) -> None:
    world.put("n")
    await world.turns(4, "n")
    restarted = World()
    restarted.seconds = world.seconds
    restarted.cluster = world.cluster
    restarted.statuses = NodeStatuses(restarted.fleet, world.cluster, restarted.replicas, restarted)
    restarted.put("n")

    assert await restarted.turns(20, "n") == []


async def test_before_redis_was_read_nothing_is_said_of_metrics(world: World) -> None:
    world.put("n")
    await world.turns(4, "n")
    restarted = World()
    restarted.seconds = world.seconds
    restarted.cluster = world.cluster
    restarted.statuses = NodeStatuses(restarted.fleet, world.cluster, restarted.replicas, restarted)
    restarted.put("n", generation=2, spec={"quota": {"cpu": "16"}})

    assert await restarted.turns(10) == ["n"]
    assert restarted.reasons()["MetricsComplete"] == ("True", "Complete")
    status = restarted.status()
    assert (status["schedulable"], status["metricsTime"]) == ("True", "2026-11-30T10:00:02Z")
    assert status["effectiveCapacity"]["cpu"] == "16"


async def test_what_is_allocated_counts_requests_and_others_and_no_plan(world: World) -> None:
    world.put("n", spec={"capacity": {"cpu": "3", "memory": "8Gi", "systemDisk": "10Gi"}})
    world.request("a", phase="Starting", cpuMillis=1500, diskBytes=1 << 30)
    await world.turns(4, "n", foreign_cpu_millis=1000, foreign_disk_bytes=1, sandboxes=4)

    assert world.status()["allocated"] == {
        "cpu": "2500m", "memory": "1Gi", "systemDisk": "1073741825", "sandboxes": 4, "creating": 1,
        "cpuPercent": 83, "memoryPercent": 12,
    }  # fmt: skip


async def test_a_change_of_what_is_allocated_is_shown_at_most_every_five_seconds(
    world: World,
) -> None:
    world.put("n")
    await world.turns(4, "n")
    written = []
    for number in range(20):
        world.request(f"r{number}")
        written += await world.turns(1, "n")

    assert 3 <= len(written) <= 20 / LEAST_SECONDS + 1
    await world.turns(LEAST_SECONDS, "n")
    assert world.status()["allocated"]["sandboxes"] == 20


async def test_over_commit_quota_and_limits_make_the_effective_capacity_once(world: World) -> None:
    # 4 cpus told as 8 by the node's quota, times 3: 24, never 4 x 2 x 3 x 3.
    quota = {"cpu": "8", "sandboxes": 7, "pausedResourceReleaseRatio": 0.25}
    world.put("n", cpu="4", memory="4Gi", spec={"quota": quota})
    world.fleet.configure(
        Settings(
            overcommit_cpu=3,  # type: ignore[arg-type]
            guards=GuardSettings(create_concurrency_limit=9),
        )
    )
    await world.turns(4, "n")

    assert world.status()["effectiveCapacity"] == {
        "cpu": "24", "memory": "4Gi", "sandboxes": 7, "createConcurrency": 9,
        "pausedResourceReleaseRatio": 0.25,
    }  # fmt: skip


async def test_an_invalid_spec_is_named_and_has_no_capacity(world: World) -> None:
    world.put("bad", memory="lots", generation=3)
    await world.turns(4)

    assert world.reasons("bad")["Accepted"] == ("False", "InvalidSpec")
    assert "spec.capacity.memory: 'lots'" in world.message("Accepted", "bad")
    assert "effectiveCapacity" not in world.status("bad")
    assert {c["observedGeneration"] for c in world.status("bad")["conditions"]} == {3}

    world.put("bad", generation=4)
    await world.turns(6)
    assert world.reasons("bad")["Accepted"] == ("True", "Valid")
    assert world.status("bad")["effectiveCapacity"]["memory"] == "16Gi"


# Metrics


async def test_a_node_that_never_reports_says_so(world: World) -> None:
    world.put("n")
    world.put("other")
    await world.turns(4, "other")

    assert world.reasons()["MetricsComplete"] == ("False", "NeverReported")
    assert world.status()["schedulable"] == "NoMetrics"
    assert "metricsTime" not in world.status()


async def test_missing_fields_are_named_with_what_is_not_looked_at(world: World) -> None:
    world.put("n")
    await world.turns(4, "n", cpu_load=float("nan"), foreign_memory_bytes=-1)

    assert world.reasons()["MetricsComplete"] == ("False", "FieldsMissing")
    assert world.message("MetricsComplete") == (
        "Not reported: foreign_memory_bytes, cpu_load."
        " Not looked at: memory of others (mem), load (node_safety)."
    )
    assert world.status()["schedulable"] == "True", "only a part of a guard is off"

    await world.turns(6, "n")
    assert world.reasons()["MetricsComplete"] == ("True", "Complete")


async def test_a_node_that_falls_silent_keeps_the_time_of_its_last_report(world: World) -> None:
    world.put("n")
    world.put("other")
    await world.turns(4, "n", "other")
    last = world.wall()

    await world.turns(320, "other")

    assert world.reasons()["MetricsComplete"] == ("False", "Stale")
    assert world.message("MetricsComplete") == "No newer report for 300s or longer (metricsMaxAge)."
    assert world.status()["schedulable"] == "StaleMetrics"
    assert world.status()["metricsTime"] == timestamp(last)

    assert "n" not in await world.turns(300, "other")
    await world.turns(6, "n", "other")
    assert world.reasons()["MetricsComplete"] == ("True", "Complete")


async def test_a_clock_that_is_ahead_is_told(world: World) -> None:
    world.put("n")
    world.fleet.take_reports(reports(4_102_444_800_000, "n", **WHOLE))
    await world.turns(4)

    assert world.reasons()["MetricsComplete"] == ("False", "ClockSkew")
    assert world.status()["schedulable"] == "ClockSkew"


def packed(world: World, **fields: Any) -> bytes:
    stamp = int(world.wall() * 1000)
    return encode(NodeReport(**{"node_uid": "uid-n", "stamp_ms": stamp, **WHOLE, **fields}))


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x01" * 68, "NeverReported"),  # half a struct
        (b"\x00garbage", "NeverReported"),
        (b"", "NeverReported"),
        ({"node_uid": "uid-other"}, "NeverReported"),
        ({"sandboxes": -7}, "NeverReported"),
        ({"stamp_ms": -1}, "NeverReported"),
        ({"stamp_ms": 1}, "Stale"),
        ({"stamp_ms": 4_102_444_800_000}, "ClockSkew"),
        ({"creating": -1}, "FieldsMissing"),
        ({}, "Complete"),
    ],
)
async def test_whatever_an_agent_sends_shows_as_a_reason_and_loses_nothing(
    world: World, sent: bytes | dict[str, Any], reason: str
) -> None:
    world.put("n")
    world.put("other")
    world.request("a", cpuMillis=2000)
    for _ in range(3):
        await world.turns(2, "other")
        value = sent if isinstance(sent, bytes) else packed(world, **sent)
        world.fleet.take_reports(decode_all({b"n": value}))
    await world.turns(3, "other")

    assert world.reasons()["MetricsComplete"][1] == reason
    assert world.status()["allocated"]["cpu"] == "2"
    assert world.status()["allocated"]["sandboxes"] == 1


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"ready": False}, "NotReady"),
        ({"spec": {"unschedulable": True}}, "Cordoned"),
        ({"spec": {"drain": "All"}}, "Draining"),
        ({"memory": "lots"}, "InvalidSpec"),
    ],
)
async def test_one_word_says_why_a_node_takes_nothing(
    world: World, fields: dict[str, Any], word: str
) -> None:
    world.put("n", **fields)
    await world.turns(4, "n")

    assert world.status()["schedulable"] == word


# Over-commitment


async def test_a_node_that_shrank_is_overcommitted_with_numbers(world: World) -> None:
    world.put("n")
    world.request("a", cpuMillis=6000)
    await world.turns(4, "n")
    assert world.reasons()["Overcommitted"] == ("False", "WithinLimits")

    world.put("n", cpu="4", memory="512Mi", generation=2)
    await world.turns(6, "n")

    assert world.reasons()["Overcommitted"] == ("True", "CapacityShrunk")
    assert world.message("Overcommitted") == (
        "Confirmed requests take cpu 6 of 4, memory 1Gi of 512Mi; nothing new is placed here."
    )
    assert world.status()["allocated"]["cpuPercent"] == 150

    world.request("a", phase="Succeeded")
    await world.turns(6, "n")
    assert world.reasons()["Overcommitted"] == ("False", "WithinLimits")


async def test_limits_that_the_config_lowers_are_told_apart(world: World) -> None:
    world.fleet.configure(Settings(overcommit_cpu=2))  # type: ignore[arg-type]
    world.put("n")
    world.request("a", cpuMillis=12_000)
    await world.turns(4, "n")

    world.fleet.configure(Settings())
    await world.turns(6, "n")

    assert world.reasons()["Overcommitted"] == ("True", "LimitsChanged")
    assert "cpu 12 of 8" in world.message("Overcommitted")


async def test_what_is_only_reserved_or_foreign_over_commits_nothing(world: World) -> None:
    world.put("n")
    world.request("a", cpuMillis=6000)
    world.request("b", cpuMillis=6000, phase="Reserved")
    await world.turns(4, "n", foreign_cpu_millis=9000)
    assert world.reasons()["Overcommitted"] == ("False", "WithinLimits")

    world.request("b", cpuMillis=6000, phase="Bound")
    await world.turns(6, "n", foreign_cpu_millis=9000)
    assert world.reasons()["Overcommitted"] == ("True", "LimitsChanged")
    assert "cpu 12 of 8" in world.message("Overcommitted")


async def test_a_drain_shows_what_is_left_until_it_is_taken_back(world: World) -> None:
    world.put("n")
    world.request("a")
    await world.turns(4, "n")
    assert "Drained" not in world.reasons()

    world.put("n", generation=2, spec={"drain": "All"})
    await world.turns(6, "n")
    assert world.reasons()["Drained"] == ("False", "Draining")
    assert world.message("Drained") == "1 request left: 1 running."

    world.request("a", phase="Evicting")
    await world.turns(6, "n")
    assert world.message("Drained") == "1 request left: 1 evicting."

    world.request("a", phase="Succeeded")
    await world.turns(6, "n")
    assert world.reasons()["Drained"] == ("True", "Drained")
    assert world.message("Drained") == "No request is left."

    world.put("n", generation=3)
    await world.turns(6, "n")
    assert "Drained" not in world.reasons()


# Refusals


async def test_a_quarantine_is_told_with_its_evidence_and_then_taken_back(world: World) -> None:
    world.put("n")
    await world.turns(4, "n")
    assert "Quarantined" not in world.reasons(), "nobody has anything to say of it"

    found = Quarantine(
        since=1_800_000_000.0, until=1_800_000_030.0, refusals=6, requests=4, last_reason="no\nroom"
    )
    world.fleet.quarantine({"n": found})
    await world.turns(6, "n")

    assert world.reasons()["Quarantined"] == ("True", "RepeatedRefusals")
    assert world.message("Quarantined") == (
        "6 refusals by 4 requests with none begun in between, the last: no room;"
        " nothing new is placed here until 2027-01-15T08:00:30Z."
    )
    assert world.status()["schedulable"] == "Quarantined"

    world.fleet.quarantine({})
    await world.turns(6, "n")
    assert world.reasons()["Quarantined"] == ("False", "NotRefusing")
    assert world.status()["schedulable"] == "True"


# Whose turn it is, and how often


async def test_each_node_is_written_by_its_owner_and_by_the_next_when_that_is_gone(
    world: World,
) -> None:
    names = [f"n{index}" for index in range(8)]
    world.replicas.live = [Member("me"), Member("other")]
    world.fleet.share(replica="me", members=["me", "other"])
    for name in names:
        world.put(name)

    first = await world.turns(4)
    world.replicas.live = [Member("me")]
    world.fleet.share(replica="me", members=["me"])
    await world.turns(6)

    assert sorted(first) == [n for n in names if owner(n, ["me", "other"]) == "me"]
    assert all(world.reasons(name) for name in names)


async def test_new_nodes_share_the_budget_of_all_replicas(world: World) -> None:
    world.replicas.live = [Member("me"), Member("other")]
    for number in range(200):
        world.put(f"n{number:03}")
    await world.turns(SETTLE_SECONDS - 0.5)

    written = await world.turns(2)

    most = node_statuses.VERDICTS_PER_SECOND / 2
    assert most <= len(written) <= 3 * most
    await world.turns(8)
    assert len(world.cluster.writes) == 200


async def test_an_idle_fleet_costs_a_few_writes_a_second_however_large(world: World) -> None:
    names = [f"n{number:03}" for number in range(600)]
    for name in names:
        world.put(name)
    await world.turns(20, *names)

    written = await world.turns(90, *names)

    assert len(written) <= node_statuses.DATES_PER_SECOND * 90 + 1
    assert len(written) == len(set(written)), "the oldest date goes first"


async def test_a_status_that_somebody_edits_is_set_right(world: World) -> None:
    world.put("n")
    await world.turns(4, "n")
    stored = world.cluster.objects["sandboxnodes/n"]["status"]
    stored["effectiveCapacity"] = {"cpu": "9999"}
    stored["conditions"] = "none"
    world.show("n")

    await world.turns(6, "n")

    assert world.status()["effectiveCapacity"]["cpu"] == "8"
    assert world.reasons()["Accepted"] == ("True", "Valid")


async def test_what_the_agent_writes_is_no_reason_to_write(world: World) -> None:
    world.put("n")
    await world.turns(4, "n")
    world.put("n", templates=["t1"])

    assert await world.turns(10, "n") == []


@pytest.mark.parametrize(
    ("outcome", "again"),
    [(Outcome.UNKNOWN, True), (Outcome.REJECTED, True), (Outcome.MISSING, False)],
)
async def test_a_write_that_failed_is_tried_again_but_not_at_once(
    world: World, outcome: Outcome, again: bool
) -> None:
    world.put("n")
    world.cluster.outcome = outcome
    assert await world.turns(4, "n") == ["n"]
    if outcome is Outcome.MISSING:
        world.statuses.forget("uid-n")

    assert await world.turns(20, "n") == []
    world.cluster.outcome = Outcome.LANDED
    assert await world.turns(40, "n") == (["n"] if again else [])


async def test_what_changes_during_a_write_is_not_missed(world: World) -> None:
    world.put("n")
    apply = world.cluster.apply_status

    async def apply_late(*args: Any, **options: Any) -> Any:
        result = await apply(*args, **options)
        world.fleet.event(
            "MODIFIED", a_node_object("n", spec={"quota": {"sandboxes": 5}}), world.version + 1
        )
        return result

    world.cluster.apply_status = apply_late  # type: ignore[method-assign]
    await world.turns(4, "n")
    world.cluster.apply_status = apply  # type: ignore[method-assign]
    await world.turns(6, "n")

    assert world.status()["effectiveCapacity"]["sandboxes"] == 5


# A node that is another one


async def test_a_node_recreated_with_other_capacity_starts_anew(world: World) -> None:
    world.put("n")
    world.request("a", cpuMillis=6000, nodeUID="uid-n")
    await world.turns(4, "n")

    world.cluster.drop(NODES, "n")
    world.fleet.event("DELETED", a_node_object("n"), world.version + 1)
    world.statuses.forget("uid-n")
    world.put("n", uid="uid-2", cpu="2")
    await world.turns(3, "n")

    status = world.status()
    assert status["effectiveCapacity"]["cpu"] == "2"
    assert status["schedulable"] == "NoMetrics", "what reports is the old machine"
    assert world.reasons()["MetricsComplete"] == ("False", "NeverReported")
