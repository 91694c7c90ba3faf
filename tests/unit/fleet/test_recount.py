"""Whatever happens, in whatever order: the columns equal a recount from scratch.

A random history of stream events, lists, plans, nodes and reports runs against the fleet and
against a plain model that only remembers what stands; after every step each row is counted anew.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, replace
from math import nan
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.unit.fleet.objects import (
    a_node_object,
    a_request_dict,
    a_request_object,
    as_json,
    hashes,
)
from typing_extensions import override

from cubesched.core.derived import Derived
from cubesched.core.scheduler_settings import GuardSettings, Settings
from cubesched.fleet.assumptions import Assumption
from cubesched.fleet.entries import Weight
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.ledger import CREATING
from cubesched.fleet.metrics_layout import NodeReport, decode_all, encode

MAX_AGE = 300.0
NODES = st.sampled_from(["n1", "n2", "n3", "n4"])
NODE_UIDS = st.sampled_from(["x", "x", "x", "y"])
UIDS = st.sampled_from(["a", "b", "c", "d", "e"])
TEMPLATES = st.sampled_from(["", "t1", "t2"])
PHASES = st.sampled_from(
    ["Pending", "Reserved", "Bound", "Starting", "Running", "Paused", "Evicting", "Unheard",
     "Succeeded", "Failed"]
)  # fmt: skip
SIZES = st.integers(0, 5_000)
QUOTAS = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["0", "2", "8"]),
        "memory": st.sampled_from(["0", "4Ki", "16Gi"]),
        "systemDisk": st.sampled_from(["0", "20"]),
        "sandboxes": st.integers(0, 3),
        "createConcurrency": st.integers(0, 3),
    },
)
PERCENTS = st.sampled_from([nan, 0.0, 33.3, 79.9, 80.0, 130.0])
METRICS = st.fixed_dictionaries(
    {
        "cpu_util_percent": PERCENTS,
        "cpu_load": st.sampled_from([nan, 0.0, 1.0, 8.0, 8.1]),
        "memory_used_bytes": st.sampled_from([-1, 0, 5_000, 17 << 30]),
        "data_disk_percent": PERCENTS,
        "storage_disk_percent": PERCENTS,
        "system_disk_percent": PERCENTS,
    }
)
ON_NODE = frozenset({"Reserved", "Bound", "Starting", "Running", "Paused", "Evicting", "Unheard"})


@dataclass(frozen=True)
class Stored:
    """One request as the server holds it."""

    uid: str
    phase: str
    node: str
    cpu: int
    template: str
    readable: bool = True

    @property
    def counted(self) -> bool:
        return bool(self.node) and self.phase in ON_NODE

    def raw(self, version: int) -> bytes:
        fields: dict[str, Any] = {
            "uid": self.uid,
            "version": version,
            "phase": self.phase,
            "node": self.node,
            "template": self.template,
            "reservation": {"cpuMillis": self.cpu, "memoryBytes": 3 * self.cpu, "diskBytes": 7},
        }
        if self.readable:
            return a_request_object(self.uid, **fields)
        return as_json(a_request_dict(self.uid, **fields, refusals="none"))


@dataclass
class Gone:
    """A deleted request that a machine may still run."""

    stored: Stored
    version: int
    seen: float


class Recount(RuleBasedStateMachine):
    """The fleet beside a model that counts everything anew each time."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.version = 1000.0, 1
        self.fleet = Fleet(monotonic=lambda: self.now, wall=lambda: self.now)
        self.stored: dict[str, Stored] = {}
        self.gone: dict[str, Gone] = {}
        self.plans: dict[str, Assumption] = {}
        self.nodes: dict[str, str] = {}
        self.foreign: dict[str, int] = {}
        self.allocated: dict[str, int] = {}
        self.reported: dict[str, tuple[int, int]] = {}
        self.fleet.ledger.complete(self.version)
        self.configure(80.0, None)
        self.list_nodes({"n1": "x", "n2": "x", "n3": "x"})

    def next_version(self) -> int:
        self.version += 1
        return self.version

    # The stream of requests

    @rule(uid=UIDS, phase=PHASES, node=NODES, cpu=SIZES, template=TEMPLATES, readable=st.booleans())
    def change(
        self, uid: str, phase: str, node: str, cpu: int, template: str, readable: bool
    ) -> None:
        known = self.stored.get(uid)
        template = known.template if known else template  # a spec does not change
        node = node if phase != "Pending" else ""
        stored = Stored(uid, phase, node, cpu, template, readable or phase == "Pending")
        version = self.next_version()
        kind = "MODIFIED" if known else "ADDED"
        self.fleet.ledger.event(kind, stored.raw(version), version)
        self.stored[uid] = stored
        self.gone.pop(uid, None)

    @rule(uid=UIDS)
    def delete(self, uid: str) -> None:
        stored = self.stored.pop(uid, None)
        if stored is None:
            return
        version = self.next_version()
        self.fleet.ledger.event("DELETED", stored.raw(version), version)
        if stored.counted and stored.phase != "Reserved":
            self.gone[uid] = Gone(stored, version, self.now)

    @rule(lost=st.sets(UIDS), phase=PHASES)
    def list_again(self, lost: set[str], phase: str) -> None:
        """Some were deleted while nobody looked, one has moved on."""
        version = self.next_version()
        for uid in lost & self.stored.keys():
            stored = self.stored.pop(uid)
            if stored.counted:
                self.gone[uid] = Gone(stored, version, self.now)
        for uid in list(self.stored)[:1]:
            self.stored[uid] = replace(self.stored[uid], phase=phase)
        ledger = self.fleet.ledger
        ledger.reset()
        for stored in self.stored.values():
            ledger.seen(stored.raw(version))
        ledger.complete(version)

    # Plans

    @rule(uid=UIDS, node=NODES, cpu=SIZES, template=TEMPLATES)
    def assume(self, uid: str, node: str, cpu: int, template: str) -> None:
        self.plans[uid] = Assumption(node, Weight(cpu, 3 * cpu, 7), template)
        self.fleet.assume(uid, self.plans[uid])

    @rule(uid=UIDS)
    def release(self, uid: str) -> None:
        self.plans.pop(uid, None)
        self.fleet.release(uid)

    # Nodes

    @rule(
        node=NODES,
        uid=NODE_UIDS,
        templates=st.sets(TEMPLATES),
        quota=QUOTAS,
        ready=st.sampled_from([True, True, False]),
    )
    def put_node(
        self, node: str, uid: str, templates: set[str], quota: dict[str, Any], ready: bool
    ) -> None:
        if self.nodes.get(node, uid) != uid:
            self._node_gone(node)
        self.nodes[node] = uid
        raw = a_node_object(
            node,
            uid=f"{node}-{uid}",
            templates=sorted(templates - {""}),
            spec={"quota": quota},
            ready=ready,
        )
        self.fleet.event("ADDED", raw, self.next_version())

    @rule(node=NODES)
    def delete_node(self, node: str) -> None:
        if node in self.nodes:
            raw = a_node_object(node, uid=f"{node}-{self.nodes[node]}")
            self._node_gone(node)
            self.fleet.event("DELETED", raw, self.next_version())

    @rule(kept=st.dictionaries(NODES, NODE_UIDS))
    def list_nodes(self, kept: dict[str, str]) -> None:
        self.fleet.reset()
        for node, uid in kept.items():
            self.fleet.seen(a_node_object(node, uid=f"{node}-{uid}"))
        self.fleet.complete(self.next_version())
        for node in list(self.nodes):
            if kept.get(node) != self.nodes[node]:
                self._node_gone(node)
        self.nodes = kept

    def _node_gone(self, node: str) -> None:
        del self.nodes[node]
        self.foreign.pop(node, None)
        self.allocated.pop(node, None)
        self.reported.pop(node, None)
        self.gone = {uid: gone for uid, gone in self.gone.items() if gone.stored.node != node}

    @rule(percent=st.sampled_from([40.0, 80.0]), reserved=st.sampled_from([None, 0, 1 << 30]))
    def configure(self, percent: float, reserved: int | None) -> None:
        guards = GuardSettings(
            max_cpu_util_percent=percent,
            disk_usage_max_percent=percent,
            memory_reserved_bytes=reserved,
            max_sandboxes_per_node=2,
            create_concurrency_limit=1,
        )
        self.fleet.configure(Settings(guards=guards))

    # Reports and time

    @rule(
        nodes=st.one_of(st.sets(NODES), st.just({"n1", "n2", "n3", "n4"})),
        uid=NODE_UIDS,
        foreign=SIZES,
        sandboxes=st.integers(-1, 4),
        creating=st.integers(-1, 4),
        behind=st.integers(0, 4),
        metrics=METRICS,
    )
    def report(
        self,
        nodes: set[str],
        uid: str,
        foreign: int,
        sandboxes: int,
        creating: int,
        behind: int,
        metrics: dict[str, Any],
    ) -> None:
        self.now += 1.0
        applied = max(0, self.version - behind)
        report = NodeReport(
            node_uid="",
            stamp_ms=int(self.now * 1000),
            applied_version=applied,
            foreign_cpu_millis=foreign,
            sandboxes=sandboxes,
            creating=creating,
            **metrics,
        )
        self.fleet.take_reports(
            decode_all({n.encode(): encode(replace(report, node_uid=f"{n}-{uid}")) for n in nodes})
        )
        for node in nodes:
            if self.nodes.get(node) == uid:
                self.foreign[node] = foreign
                self.allocated.pop(node, None)
                self.reported[node] = (sandboxes, creating)
                self._let_go(lambda gone, node=node: (
                    gone.stored.node == node and gone.version <= applied
                ))  # fmt: skip
        self._let_go(lambda gone: gone.seen < self.now - MAX_AGE)

    @rule(nodes=st.sets(NODES), allocated=SIZES, sandboxes=st.integers(0, 4))
    def report_in_cubemasters_layout(self, nodes: set[str], allocated: int, sandboxes: int) -> None:
        self.now += 1.0
        values = {"update_at": self.now, "quota_cpu_usage": allocated, "mvm_num": sandboxes}
        self.fleet.take_reports(hashes(dict.fromkeys(nodes, values)))
        for node in nodes & self.nodes.keys():
            self.foreign.pop(node, None)
            self.allocated[node] = allocated
            self.reported[node] = (sandboxes, -1)
        self._let_go(lambda gone: gone.seen < self.now - MAX_AGE)

    @rule(seconds=st.sampled_from([1.0, 200.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.fleet.sweep()
        self._let_go(lambda gone: gone.seen < self.now - MAX_AGE)

    def _let_go(self, of: Any) -> None:
        self.gone = {uid: gone for uid, gone in self.gone.items() if not of(gone)}

    # The recount

    @invariant()
    def rows_equal_a_recount(self) -> None:
        view = self.fleet.snapshot
        assert list(view.names) == sorted(self.nodes)
        for row, node in enumerate(view.names):
            here = [stored for stored in self.stored.values()
                    if stored.counted and stored.node == node]  # fmt: skip
            ghosts = [gone.stored for gone in self.gone.values() if gone.stored.node == node]
            plans = [plan for plan in self.plans.values() if plan.node == node]
            ledger = [s.cpu for s in here + ghosts if s.readable]
            planned = [plan.weight.cpu_millis for plan in plans]
            weights = ledger + planned
            counted = max(sum(ledger), self.allocated.get(node, -1)) + sum(planned)
            creates = len(plans) + sum(s.phase in CREATING for s in here if s.readable)
            told_sandboxes, told_creating = self.reported.get(node, (-1, -1))
            assert {
                "cpu": view.cpu_used_millis[row] - self.foreign.get(node, 0),
                "memory": view.memory_used_bytes[row],
                "disk": view.disk_used_bytes[row],
                "sandboxes": view.sandboxes[row],
                "creating": view.creating[row],
                "creating_ledger": view.creating_ledger[row],
                "unreadable": self.fleet.columns.reported.unreadable[row],
            } == {
                "cpu": counted,
                "memory": 3 * sum(weights),
                "disk": 7 * len(weights),
                "sandboxes": max(len(weights), told_sandboxes),
                "creating": max(creates, told_creating),
                "creating_ledger": creates,
                "unreadable": any(not s.readable for s in here + ghosts),
            }

    @invariant()
    def derived_columns_equal_those_of_the_same_facts(self) -> None:
        kept = self.fleet.snapshot.derived
        anew = replace(self.fleet.snapshot).derived
        for column in fields(Derived):
            was, now = getattr(kept, column.name), getattr(anew, column.name)
            assert was.dtype == now.dtype
            np.testing.assert_array_equal(was, now, err_msg=column.name)

    @invariant()
    def creates_of_each_template_equal_a_recount(self) -> None:
        expected: Counter[tuple[str, str]] = Counter()
        for stored in self.stored.values():
            if stored.counted and stored.phase in CREATING and stored.readable:
                expected[stored.template, stored.node] += 1
        for plan in self.plans.values():
            expected[plan.template_id, plan.node] += 1
        view = self.fleet.snapshot
        found = {
            (template, node): int(number)
            for template, column in view.template_creating.items()
            for node, number in zip(view.names, column.tolist(), strict=True)
            if number
        }
        assert found == {
            pair: number for pair, number in expected.items() if pair[0] and pair[1] in self.nodes
        }
        assert all(column.any() for column in view.template_creating.values())

    @override
    def teardown(self) -> None:
        """At rest, when every plan is given up and everything is deleted, nothing is left."""
        for uid in list(self.plans):
            self.release(uid)
        for uid in list(self.stored):
            self.delete(uid)
        self.pass_time(200.0)
        self.pass_time(200.0)
        self.rows_equal_a_recount()
        ledger = self.fleet.ledger
        assert self.fleet.assumed == 0
        assert (ledger.entries, ledger.by_node, ledger.ghosts, ledger.blind) == ({}, {}, {}, {})
        assert all(not (u.cpu_millis or u.sandboxes or u.creating) for u in ledger.usages.values())
        assert self.fleet.snapshot.template_creating == {}


TestRecount = Recount.TestCase
TestRecount.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
