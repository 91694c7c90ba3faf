"""The ledger: the server's state at one revision, and what each node holds by it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.fleet.objects import (
    GIB,
    PLACED,
    a_request_dict,
    a_request_object,
    a_reservation,
    as_json,
)

from cubesched.fleet.ledger import Change, Ledger, Limits

ROOMY = Limits(cpu_millis=10_000, memory_bytes=64 * GIB, disk_bytes=0, sandboxes=10, creates=10)


class Told:
    """A ledger with a clock of its own, and the changes it told."""

    def __init__(self) -> None:
        self.now = 0.0
        self.changes: list[Change] = []
        self.ledger = Ledger(observe=self.changes.append, monotonic=lambda: self.now)

    def list(self, version: int, *objects: bytes) -> None:
        self.ledger.reset()
        for raw in objects:
            self.ledger.seen(raw)
        self.ledger.complete(version)

    def event(self, kind: str, version: int, name: str = "r1", **fields: Any) -> None:
        self.ledger.event(kind, a_request_object(name, version=version, **fields), version)


@pytest.fixture
def told() -> Told:
    """A ledger whose first list was empty."""
    told = Told()
    told.list(1)
    return told


def used(told: Told, node: str = "n1") -> tuple[int, int, int, int]:
    usage = told.ledger.usage(node)
    return usage.cpu_millis, usage.memory_bytes, usage.sandboxes, usage.creating


# The stream


@pytest.mark.parametrize("phase", [*PLACED, "APhaseOfNextYear"])
def test_every_phase_with_a_node_counts_in_full(told: Told, phase: str) -> None:
    told.event("ADDED", 2, phase=phase, node="n1")

    assert used(told)[:3] == (1000, GIB, 1)


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_a_request_that_holds_no_node_counts_nowhere(told: Told, phase: str) -> None:
    told.event("ADDED", 2, phase=phase, node="n1")

    assert used(told) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("phase", "creating"), [("Reserved", 1), ("Bound", 1), ("Starting", 1), ("Running", 0)]
)
def test_creates_in_flight_are_reserved_bound_and_starting(
    told: Told, phase: str, creating: int
) -> None:
    told.event("ADDED", 2, phase=phase, node="n1")

    assert told.ledger.usage("n1").creating == creating


def test_a_request_weighs_what_its_reservation_says_and_never_its_spec(told: Told) -> None:
    told.event("ADDED", 2, phase="Bound", node="n1", cpu="4", reservation={"cpuMillis": 500})

    assert told.ledger.usage("n1").cpu_millis == 500


def test_events_apply_in_order_and_move_the_weight_along(told: Told) -> None:
    told.event("ADDED", 2)
    told.event("MODIFIED", 3, phase="Reserved", node="n1")
    told.event("MODIFIED", 4, phase="Reserved", node="n2", reservation={"id": "id-2"})

    assert used(told, "n1") == (0, 0, 0, 0)
    assert used(told, "n2") == (1000, GIB, 1, 1)
    assert told.ledger.version == 4
    assert [(c.before and c.before.version, c.after and c.after.version) for c in told.changes] == [
        (None, 2),
        (2, 3),
        (3, 4),
    ]


def test_each_change_is_told_right_after_it_was_applied() -> None:
    seen: list[int] = []
    ledger = Ledger(
        observe=lambda _change: seen.append(ledger.usage("n1").sandboxes), monotonic=lambda: 0.0
    )
    ledger.complete(1)

    for version in (2, 3):
        raw = a_request_object(f"r{version}", version=version, phase="Bound", node="n1")
        ledger.event("ADDED", raw, version)

    assert seen == [1, 2]


def test_the_same_name_with_another_uid_is_another_request(told: Told) -> None:
    told.event("ADDED", 2, uid="old", phase="Running", node="n1")
    told.event("DELETED", 3, uid="old", phase="Running", node="n1")
    told.event("ADDED", 4, uid="new")

    assert set(told.ledger.entries) == {"new"}
    assert told.ledger.usage("n1").sandboxes == 1, "the old one's machine has not let go yet"


def test_the_old_event_again_counts_nothing_twice(told: Told) -> None:
    for version in (2, 2):
        told.event("MODIFIED", version, phase="Bound", node="n1")
    for version in (3, 3):
        told.event("DELETED", version, phase="Bound", node="n1")
    told.ledger.release_ghosts({"n1": 3})

    assert used(told) == (0, 0, 0, 0)


def test_a_bookmark_moves_the_version_and_nothing_else(told: Told) -> None:
    told.ledger.progress(9)
    told.ledger.progress(4)

    assert told.ledger.version == 9
    assert told.changes == []


# Lists


def test_nothing_fits_from_a_reset_until_the_list_is_complete(told: Told) -> None:
    told.event("ADDED", 2, phase="Reserved", node="n1")
    entry = told.ledger.entries["uid-r1"]
    assert told.ledger.fits(entry, ROOMY)

    told.ledger.reset()
    told.ledger.seen(a_request_object(version=2, phase="Reserved", node="n1"))
    assert not told.ledger.exact
    assert not told.ledger.fits(entry, ROOMY)

    told.ledger.complete(5)
    assert told.ledger.exact
    assert told.ledger.fits(told.ledger.entries["uid-r1"], ROOMY)


def test_a_ledger_is_not_exact_before_its_first_list() -> None:
    assert not Told().ledger.exact


def test_what_a_list_does_not_hold_is_gone(told: Told) -> None:
    told.event("ADDED", 2)
    told.event("ADDED", 3, "r2")

    told.list(9, a_request_object("r2", version=3))

    assert set(told.ledger.entries) == {"uid-r2"}
    assert (told.changes[-2].uid, told.changes[-2].after) == ("uid-r1", None)


def test_a_list_stands_as_a_whole_before_anyone_is_told() -> None:
    seen: list[int] = []
    ledger = Ledger(
        observe=lambda _change: seen.append(ledger.usage("n1").sandboxes), monotonic=lambda: 0.0
    )
    ledger.reset()
    for name in ("r1", "r2", "r3"):
        ledger.seen(a_request_object(name, phase="Bound", node="n1"))
    ledger.complete(4)

    assert seen == [3, 3, 3]


def test_a_bound_request_that_vanished_between_lists_is_counted_on(told: Told) -> None:
    told.event("ADDED", 2, phase="Running", node="n1")

    told.list(9)

    assert used(told) == (1000, GIB, 1, 0)
    told.ledger.release_ghosts({"n1": 8})
    assert told.ledger.usage("n1").sandboxes == 1, "its agent has not acted up to the list yet"
    told.ledger.release_ghosts({"n1": 9})
    assert used(told) == (0, 0, 0, 0)


def test_one_last_seen_reserved_may_have_started_before_it_vanished(told: Told) -> None:
    told.event("ADDED", 2, phase="Reserved", node="n1")

    told.list(9)

    assert told.ledger.usage("n1").sandboxes == 1


def test_ghosts_survive_a_new_list(told: Told) -> None:
    told.event("ADDED", 2, phase="Running", node="n1")
    told.event("DELETED", 3, phase="Running", node="n1")

    told.list(9, a_request_object("r2", version=4, phase="Bound", node="n1"))

    assert used(told) == (2000, 2 * GIB, 2, 1)


def test_a_ghost_that_is_listed_again_is_a_request_again(told: Told) -> None:
    told.event("ADDED", 2, phase="Running", node="n1")
    told.event("DELETED", 3, phase="Running", node="n1")

    told.list(2, a_request_object(version=2, phase="Running", node="n2"))

    assert told.ledger.ghosts == {}
    assert (used(told, "n1")[2], used(told, "n2")[2]) == (0, 1)


def test_changes_of_a_list_are_told_in_one_order_whatever_the_hash_seed(told: Told) -> None:
    told.event("ADDED", 2, "old")
    told.changes.clear()

    told.list(9, *(a_request_object(f"r{n}", version=n) for n in (3, 4, 5)))

    assert [change.uid for change in told.changes] == ["uid-old", "uid-r3", "uid-r4", "uid-r5"]


# Ghosts


def test_a_deleted_request_counts_until_its_node_has_applied_the_deletion(told: Told) -> None:
    told.event("ADDED", 2, phase="Running", node="n1")
    told.event("DELETED", 3, phase="Running", node="n1")

    assert used(told) == (1000, GIB, 1, 0)
    assert not told.ledger.release_ghosts({"n1": 2, "n2": 9})
    assert told.ledger.release_ghosts({"n1": 3})
    assert used(told) == (0, 0, 0, 0)


def test_a_ghost_goes_by_itself_when_its_time_is_over(told: Told) -> None:
    told.now = 100.0
    told.event("ADDED", 2, phase="Bound", node="n1")
    told.event("DELETED", 3, phase="Bound", node="n1")

    assert not told.ledger.expire_ghosts(older_than=100.0)
    assert told.ledger.expire_ghosts(older_than=100.1)
    assert told.ledger.usage("n1").sandboxes == 0


@pytest.mark.parametrize("phase", ["Pending", "Reserved", "Succeeded", "Failed"])
def test_deleting_what_no_machine_can_be_running_frees_it_at_once(told: Told, phase: str) -> None:
    told.event("ADDED", 2, phase=phase, node="" if phase == "Pending" else "n1")
    told.event("DELETED", 3, phase=phase, node="" if phase == "Pending" else "n1")

    assert used(told) == (0, 0, 0, 0)
    assert told.ledger.ghosts == {}


def test_deleting_one_that_was_to_be_resumed_keeps_what_the_machine_holds(told: Told) -> None:
    to_resume = {"resume": "sbr-x.y", "paused": {"cpuMillis": 100, "memoryBytes": 0}}
    told.event("ADDED", 2, phase="Reserved", node="n1", reservation=to_resume)
    told.event("DELETED", 3, phase="Reserved", node="n1", reservation=to_resume)
    assert used(told)[:3] == (1000, GIB, 1)

    told.ledger.release_ghosts({"n1": 3})
    assert used(told)[:3] == (0, 0, 0)


def test_a_deleted_node_takes_its_ghosts_with_it(told: Told) -> None:
    told.event("ADDED", 2, phase="Running", node="n1")
    told.event("DELETED", 3, phase="Running", node="n1")

    told.ledger.forget_node("n1")

    assert told.ledger.ghosts == {}
    assert told.ledger.usages == {}


# Objects that cannot be read


def a_broken_request(name: str, version: int, **status: Any) -> bytes:
    broken = a_request_dict(name, version=version)
    return as_json({**broken, "status": {"conditions": "all fine", **status}})


def test_an_unreadable_object_makes_its_node_count_as_full(told: Told) -> None:
    told.event("ADDED", 2, phase="Reserved", node="n1")
    told.ledger.event("ADDED", a_broken_request("r2", 3, phase="Running", nodeName="n1"), 3)

    assert told.ledger.usage("n1").unreadable == 1
    assert not told.ledger.fits(told.ledger.entries["uid-r1"], ROOMY)
    assert told.ledger.blind == {}


def test_a_placed_request_without_a_reservation_is_unreadable(told: Told) -> None:
    raw = as_json({**a_request_dict(), "status": {"phase": "Bound", "nodeName": "n1"}})
    told.ledger.event("ADDED", raw, 2)

    assert told.ledger.usage("n1").unreadable == 1
    assert told.ledger.entries["uid-r1"].unreadable == "status.reservation: missing"


def test_a_node_is_free_again_once_its_unreadable_object_can_be_read(told: Told) -> None:
    told.ledger.event("ADDED", a_broken_request("r1", 2, phase="Running", nodeName="n1"), 2)
    told.event("MODIFIED", 3, phase="Running", node="n1")

    usage = told.ledger.usage("n1")
    assert (usage.unreadable, usage.sandboxes) == (0, 1)


def test_a_deleted_unreadable_object_keeps_its_node_full_until_its_agent_let_go(
    told: Told,
) -> None:
    raw = a_broken_request("r1", 2, phase="Running", nodeName="n1")
    told.ledger.event("ADDED", raw, 2)
    told.ledger.event("DELETED", raw, 3)

    assert told.ledger.usage("n1").unreadable == 1
    told.ledger.release_ghosts({"n1": 3})
    assert told.ledger.usage("n1").unreadable == 0


@pytest.mark.parametrize(
    "status", [{"nodeName": 7, "phase": "Running"}, {"nodeName": "n1", "phase": ["Bound"]}, [], 7]
)
def test_while_an_object_names_no_readable_node_nothing_fits_anywhere(
    told: Told, status: Any
) -> None:
    told.event("ADDED", 2, phase="Reserved", node="n1")
    told.ledger.event("ADDED", as_json({**a_request_dict("bad"), "status": status}), 3)

    assert list(told.ledger.blind) == ["uid-bad"]
    assert told.ledger.blind["uid-bad"].startswith("default/bad: ")
    assert not told.ledger.fits(told.ledger.entries["uid-r1"], ROOMY)

    told.event("DELETED", 4, "bad")
    assert told.ledger.fits(told.ledger.entries["uid-r1"], ROOMY)


def test_a_broken_status_that_is_clearly_off_any_node_harms_nobody(told: Told) -> None:
    told.ledger.event("ADDED", a_broken_request("r1", 2, phase="Succeeded", nodeName="n1"), 2)
    told.ledger.event("ADDED", a_broken_request("r2", 3), 3)

    assert told.ledger.blind == {}
    assert told.ledger.usage("n1").unreadable == 0


def test_two_unreadable_objects_are_told_apart_even_without_uids(told: Told) -> None:
    for name in ("bad", "worse"):
        metadata = {"name": name, "namespace": "default", "resourceVersion": "2", "labels": 7}
        told.ledger.event("ADDED", as_json({"metadata": metadata, "status": []}), 2)

    assert set(told.ledger.blind) == {"default/bad", "default/worse"}


# Room


@pytest.mark.parametrize(
    ("free_millis", "fits"), [(996, False), (1000, True), (999, False), (0, False)]
)
def test_room_is_compared_exactly(told: Told, free_millis: int, fits: bool) -> None:
    told.event("ADDED", 2, phase="Reserved", node="n1")
    limits = Limits(free_millis, GIB, 0, 1, 1)

    assert told.ledger.fits(told.ledger.entries["uid-r1"], limits) is fits


@pytest.mark.parametrize(
    "limits",
    [
        Limits(1000, GIB - 1, 0, 1, 1),
        Limits(1000, GIB, -1, 1, 1),
        Limits(1000, GIB, 0, 0, 1),
        Limits(1000, GIB, 0, 1, 0),
    ],
)
def test_memory_disk_number_and_creates_are_limits_too(told: Told, limits: Limits) -> None:
    told.event("ADDED", 2, phase="Reserved", node="n1")

    assert not told.ledger.fits(told.ledger.entries["uid-r1"], limits)


def test_a_release_needs_no_room_on_a_node_that_shrank(told: Told) -> None:
    for version, name in ((2, "r1"), (3, "r2")):
        told.event("ADDED", version, name, phase="Running", node="n1")

    told.event("MODIFIED", 4, phase="Succeeded", node="n1")

    assert told.ledger.usage("n1").cpu_millis == 1000


def test_a_ghost_takes_room_from_a_reservation(told: Told) -> None:
    told.event("ADDED", 2, "old", phase="Running", node="n1")
    told.event("DELETED", 3, "old", phase="Running", node="n1")
    told.event("ADDED", 4, phase="Reserved", node="n1", reservation=a_reservation(id="id-9"))

    one = Limits(1999, 64 * GIB, 0, 10, 10)
    assert not told.ledger.fits(told.ledger.entries["uid-r1"], one)
    told.ledger.release_ghosts({"n1": 3})
    assert told.ledger.fits(told.ledger.entries["uid-r1"], one)


def test_thousands_of_rounds_leave_nothing_behind(told: Told) -> None:
    pair = [
        a_request_object(version=2, phase="Bound", node="n1", reservation={"cpuMillis": 100}),
        a_request_object(version=2),
    ]
    for _ in range(2_000):
        for raw in pair:
            told.ledger.event("MODIFIED", raw, 2)

    assert used(told) == (0, 0, 0, 0)
    assert told.ledger.by_node == {}
