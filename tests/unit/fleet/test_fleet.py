"""The fleet: nodes, ledger and plans in one place, and who is told that something helps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.unit.fleet.objects import GIB, a_node_object, a_request_dict, a_request_object, as_json

from cubesched.core.scheduler_settings import GuardSettings, Settings
from cubesched.core.snapshot import NO_LIMIT, Safety
from cubesched.fleet.assumptions import Assumption
from cubesched.fleet.entries import Weight
from cubesched.fleet.fleet import Fleet

ONE = Weight(1000, GIB, 0)


class Watched:
    """A fleet with node n1 and a complete, empty list of requests."""

    def __init__(self) -> None:
        self.now = 0.0
        self.helped = 0
        self.fleet = Fleet(monotonic=lambda: self.now, wall=lambda: self.now)
        self.version = 1
        self.nodes(a_node_object("n1"))
        self.fleet.ledger.reset()
        self.fleet.ledger.complete(1)
        self.fleet.helped = self._count_help

    def _count_help(self) -> None:
        self.helped += 1

    def nodes(self, *objects: bytes) -> None:
        self.fleet.reset()
        for raw in objects:
            self.fleet.seen(raw)
        self.version += 1
        self.fleet.complete(self.version)

    def node(self, name: str = "n1", kind: str = "MODIFIED", **fields: Any) -> None:
        self.version += 1
        self.fleet.event(kind, a_node_object(name, version=self.version, **fields), self.version)

    def request(self, name: str = "r1", kind: str = "MODIFIED", **fields: Any) -> None:
        self.version += 1
        raw = a_request_object(name, version=self.version, **fields)
        self.fleet.ledger.event(kind, raw, self.version)

    def helps(self) -> bool:
        """Whether anything was told since this was last asked."""
        helped, self.helped = self.helped, 0
        return helped > 0

    def at(self, column: str, node: str = "n1") -> int:
        return int(getattr(self.fleet.snapshot, column)[self.fleet.columns.row_of[node]])

    def fits(self, name: str = "r1") -> bool:
        return self.fleet.fits(self.fleet.ledger.entries[f"uid-{name}"])


@pytest.fixture
def watched() -> Watched:
    return Watched()


# Plans


def test_a_plan_takes_room_and_gives_all_of_it_back(watched: Watched) -> None:
    watched.fleet.assume("uid-r1", Assumption("n1", ONE, "t1"))

    assert (watched.at("cpu_used_millis"), watched.at("memory_used_bytes")) == (1000, GIB)
    assert (watched.at("sandboxes"), watched.at("creating"), watched.at("creating_ledger")) == (
        1,
        1,
        1,
    )
    assert watched.fleet.snapshot.template_creating["t1"].tolist() == [1]

    watched.fleet.release("uid-r1")
    assert (watched.at("cpu_used_millis"), watched.at("sandboxes"), watched.at("creating")) == (
        0,
        0,
        0,
    )
    assert watched.fleet.snapshot.template_creating == {}
    assert watched.fleet.assumed == 0


def test_a_second_plan_for_a_request_replaces_the_first(watched: Watched) -> None:
    watched.node("n2", "ADDED")
    watched.fleet.assume("uid-r1", Assumption("n1", ONE, ""))
    watched.fleet.assume("uid-r1", Assumption("n2", ONE, ""))

    assert (watched.at("cpu_used_millis", "n1"), watched.at("cpu_used_millis", "n2")) == (0, 1000)
    watched.fleet.release("uid-r1")
    watched.fleet.release("uid-r1")
    assert watched.at("cpu_used_millis", "n2") == 0


def test_giving_up_a_plan_helps_and_a_plan_that_became_a_reservation_does_not(
    watched: Watched,
) -> None:
    watched.fleet.assume("uid-r1", Assumption("n1", ONE, ""))
    watched.fleet.release("uid-r1")
    assert watched.helps()

    watched.fleet.assume("uid-r1", Assumption("n1", ONE, ""))
    watched.request(phase="Reserved", node="n1")
    watched.fleet.release("uid-r1")
    assert not watched.helps()
    assert watched.at("cpu_used_millis") == 1000


def test_a_plan_on_a_node_that_was_deleted_is_no_trouble(watched: Watched) -> None:
    watched.fleet.assume("uid-r1", Assumption("n1", ONE, "t1"))
    watched.node(kind="DELETED")
    watched.node(kind="ADDED", uid="new")
    assert watched.fleet.snapshot.template_creating["t1"].tolist() == [1]

    watched.fleet.release("uid-r1")
    assert watched.at("cpu_used_millis") == 0
    assert watched.fleet.snapshot.template_creating == {}


def test_plans_never_count_in_an_evaluation(watched: Watched) -> None:
    for number in range(8):
        watched.fleet.assume(f"uid-p{number}", Assumption("n1", ONE, ""))
    watched.request(phase="Reserved", node="n1")

    assert watched.fits()


# What helps


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Pending"])
def test_leaving_a_node_helps(watched: Watched, phase: str) -> None:
    watched.request(phase="Running", node="n1")
    assert not watched.helps()

    watched.request(phase=phase)
    assert watched.helps()


def test_a_create_that_is_over_helps_those_that_wait_for_one(watched: Watched) -> None:
    for phase in ("Reserved", "Bound", "Starting"):
        watched.request(phase=phase, node="n1")
    assert not watched.helps()

    watched.request(phase="Running", node="n1")
    assert watched.helps()


def test_moving_to_another_node_helps(watched: Watched) -> None:
    watched.request(phase="Reserved", node="n1")
    watched.request(phase="Reserved", node="n2", reservation={"id": "id-2"})

    assert watched.helps()


def test_an_edit_of_a_placed_request_helps_nobody(watched: Watched) -> None:
    watched.request(phase="Running", node="n1")
    watched.request(phase="Running", node="n1", labels={"a": "b"})

    assert not watched.helps()


def test_a_node_that_changed_helps_and_one_written_again_does_not(watched: Watched) -> None:
    watched.node(cpu="16")
    assert watched.helps()

    version = watched.fleet.snapshot.version
    watched.node(cpu="16")
    assert not watched.helps()
    assert watched.fleet.snapshot.version == version


# Nodes


def test_limits_are_quota_times_overcommit(watched: Watched) -> None:
    watched.fleet.configure(
        Settings(
            overcommit_cpu=Fraction("1.5"),
            guards=GuardSettings(max_sandboxes_per_node=7, create_concurrency_limit=3),
        )
    )

    limits = watched.fleet.limits("n1")
    assert limits is not None
    assert (limits.cpu_millis, limits.memory_bytes, limits.disk_bytes) == (
        12_000,
        16 * GIB,
        NO_LIMIT,
    )
    assert (limits.sandboxes, limits.creates) == (7, 3)
    assert watched.fleet.limits("n9") is None


def test_a_nodes_own_quota_comes_before_the_configured_limit(watched: Watched) -> None:
    watched.node(spec={"quota": {"sandboxes": 5, "createConcurrency": 2}})

    assert (watched.at("sandbox_limit"), watched.at("create_limit")) == (5, 2)


def test_a_node_listed_after_its_requests_counts_them(watched: Watched) -> None:
    watched.request(phase="Bound", node="n2", template="t1")
    watched.node("n2", "ADDED")

    assert (watched.at("cpu_used_millis", "n2"), watched.at("creating", "n2")) == (1000, 1)
    assert watched.fleet.snapshot.template_creating["t1"].tolist() == [0, 1]


def test_a_list_replaces_removes_and_adds_nodes_at_once(watched: Watched) -> None:
    watched.node("n2", "ADDED")
    watched.request(phase="Bound", node="n2", template="t1")

    watched.nodes(a_node_object("n2", uid="new", cpu="4"), a_node_object("n0"))

    assert list(watched.fleet.snapshot.names) == ["n0", "n2"]
    assert set(watched.fleet.deleted_uids) == {"uid-n1", "uid-n2"}
    assert (watched.at("cpu_limit_millis", "n2"), watched.at("cpu_used_millis", "n2")) == (
        4000,
        1000,
    )
    assert watched.fleet.snapshot.template_creating["t1"].tolist() == [0, 1]


def test_old_nodes_stand_until_the_new_list_is_complete(watched: Watched) -> None:
    watched.fleet.reset()

    assert list(watched.fleet.snapshot.names) == ["n1"]


def test_a_node_that_cannot_be_read_stands_and_its_requests_are_not_lost(watched: Watched) -> None:
    watched.request(phase="Running", node="n1", reservation={"nodeUID": "uid-n1"})
    broken = as_json({"metadata": {"name": "n1", "uid": "uid-n1"}, "status": {"templates": 7}})
    watched.fleet.event("MODIFIED", broken, 9)
    watched.fleet.sweep()
    entry = watched.fleet.ledger.entries["uid-r1"]
    assert watched.fleet.is_node_of(entry)
    assert watched.at("safety") == Safety.INVALID_SPEC

    watched.nodes(broken)
    assert watched.fleet.is_node_of(entry)
    assert watched.fleet.deleted_uids == {}

    watched.fleet.event("DELETED", broken, 99)
    assert not watched.fleet.is_node_of(entry)


def test_an_object_without_a_name_is_left_out_of_the_nodes(watched: Watched) -> None:
    watched.fleet.event("ADDED", b'{"metadata": {}}', 9)

    assert list(watched.fleet.snapshot.names) == ["n1"]


def test_deleted_nodes_are_remembered_for_an_hour(watched: Watched) -> None:
    watched.node(kind="DELETED")
    watched.now = 3599.0
    watched.fleet.sweep()
    assert set(watched.fleet.deleted_uids) == {"uid-n1"}

    watched.now = 3600.0
    watched.fleet.sweep()
    assert watched.fleet.deleted_uids == {}


def test_the_revision_of_the_nodes_follows_lists_events_and_bookmarks(watched: Watched) -> None:
    fleet, versions = watched.fleet, []
    fleet.event("ADDED", a_node_object("n2"), 10)
    versions.append(fleet.nodes_version)
    fleet.progress(20)
    versions.append(fleet.nodes_version)
    fleet.progress(15)
    versions.append(fleet.nodes_version)
    fleet.complete(5)
    versions.append(fleet.nodes_version)

    assert versions == [10, 20, 20, 5], "a list may begin again before a restored backup"


def test_own_nodes_are_those_whose_hash_falls_to_this_replica(watched: Watched) -> None:
    watched.nodes(*(a_node_object(f"n{number}") for number in range(30)))
    watched.fleet.share(replica="a", members=("a", "b", "c"))
    mine = watched.fleet.snapshot.own.copy()
    watched.fleet.share(replica="b", members=("a", "b", "c"))

    assert 0 < np.count_nonzero(mine) < 30
    assert not (mine & watched.fleet.snapshot.own).any()
    watched.fleet.share(replica="a", members=("a",))
    assert watched.fleet.snapshot.own.all()
    watched.node("n99", "ADDED")
    assert watched.fleet.snapshot.own.all()


# Evaluations


def test_a_reservation_is_evaluated_by_ledger_and_limits(watched: Watched) -> None:
    for number in range(8):
        watched.request(f"r{number}", phase="Reserved", node="n1")
    assert watched.fits("r7")

    watched.request("r8", phase="Reserved", node="n1")
    assert not watched.fits("r8")


def test_metrics_and_readiness_take_no_part_in_it(watched: Watched) -> None:
    watched.node(ready=False)
    watched.request(phase="Reserved", node="n1")

    assert watched.at("safety") == Safety.NOT_READY
    assert watched.fits()


def test_nothing_fits_a_node_that_is_unknown_or_another_by_uid(watched: Watched) -> None:
    watched.request("r1", phase="Reserved", node="n9")
    watched.request("r2", phase="Reserved", node="n1", reservation={"nodeUID": "the-old-n1"})
    watched.request("r3", phase="Reserved", node="n1", reservation={"nodeUID": "uid-n1"})

    assert [watched.fits(name) for name in ("r1", "r2", "r3")] == [False, False, True]


def test_a_shrunk_node_takes_nothing_new_and_its_free_room_is_negative_not_plenty(
    watched: Watched,
) -> None:
    for number in range(4):
        watched.request(f"r{number}", phase="Running", node="n1", reservation={"cpuMillis": 2000})
    watched.node(cpu="4")
    watched.request("r0", phase="Succeeded", node="n1")

    assert watched.at("cpu_limit_millis") - watched.at("cpu_used_millis") == -2000
    watched.request("r9", phase="Reserved", node="n1", reservation={"cpuMillis": 1})
    assert not watched.fits("r9")


def test_an_unreadable_request_takes_its_node_out_at_once_and_gives_it_back(
    watched: Watched,
) -> None:
    watched.fleet.columns.reported.stamp_ms[:] = 1
    watched.fleet.columns.reported.advanced_monotonic[:] = 0.0
    watched.fleet.columns.reported.awaited[:] = False
    watched.fleet.sweep()
    assert watched.at("safety") == Safety.OK

    broken = {"phase": "Bound", "nodeName": "n1", "refusals": 7}
    watched.fleet.ledger.event("ADDED", as_json({**a_request_dict(), "status": broken}), 5)
    assert watched.at("safety") == Safety.UNREADABLE_REQUEST

    watched.helps()
    watched.request(phase="Bound", node="n1")
    assert watched.at("safety") == Safety.OK
    assert watched.helps()


def test_absurd_reservations_stay_within_64_bits(watched: Watched) -> None:
    for number in range(9):
        watched.request(
            f"r{number}",
            phase="Bound",
            node="n1",
            reservation={"memoryBytes": 1 << 60, "cpuMillis": 1 << 60, "diskBytes": 1 << 60},
        )

    assert watched.at("memory_used_bytes") == NO_LIMIT
    watched.fleet.configure(Settings(overcommit_memory=Fraction(16)))
    watched.node(memory=str((1 << 63) - 1))
    assert watched.at("memory_limit_bytes") == NO_LIMIT
