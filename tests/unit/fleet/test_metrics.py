"""Reports into columns: heartbeats on this replica's clock, unknown never zero."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

import pytest
from tests.unit.fleet.objects import GIB, a_node_object, a_request_object, hashes, reports

from cubesched.core.scheduler_settings import GuardSettings, Settings
from cubesched.core.snapshot import UNKNOWN, Safety
from cubesched.fleet.assumptions import Assumption
from cubesched.fleet.entries import Weight
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.metrics_layout import decode_all

MAX_AGE = 300.0
YEAR_2100_MS = 4_102_444_800_000


class Watched:
    """A fleet with clocks of its own, nodes n1 and n2, and complete lists."""

    def __init__(self, *, listed: bool = True) -> None:
        self.monotonic, self.wall = 1000.0, 1_800_000_000.0
        self.helped = 0
        self.fleet = Fleet(monotonic=lambda: self.monotonic, wall=lambda: self.wall)
        self.fleet.reset()
        for name in ("n1", "n2"):
            self.fleet.seen(a_node_object(name))
        self.fleet.complete(1)
        if listed:
            self.fleet.ledger.reset()
            self.fleet.ledger.complete(1)
        self.fleet.helped = self._count_help

    def _count_help(self) -> None:
        self.helped += 1

    def pass_time(self, seconds: float) -> None:
        self.monotonic += seconds
        self.wall += seconds

    def report(self, *names: str, stamp_ms: int | None = None, **fields: Any) -> None:
        at = int(self.wall * 1000) if stamp_ms is None else stamp_ms
        self.fleet.take_reports(reports(at, *(names or ("n1", "n2")), **fields))

    def report_hash(self, *names: str, at: float | None = None, **fields: Any) -> None:
        """Report in CubeMaster's layout."""
        stamp = self.wall if at is None else at
        held = {"update_at": stamp, **fields}
        self.fleet.take_reports(hashes(dict.fromkeys(names or ("n1", "n2"), held)))

    def beat(self, *names: str, **fields: Any) -> None:
        """Report twice, a second apart: the stamp is seen to advance."""
        self.report(*names, **fields)
        self.pass_time(1.0)
        self.report(*names, **fields)

    def safety(self, node: str = "n1") -> Safety:
        return Safety(self.fleet.snapshot.safety[self.fleet.columns.row_of[node]])

    def at(self, column: str, node: str = "n1") -> Any:
        return getattr(self.fleet.snapshot, column)[self.fleet.columns.row_of[node]]


@pytest.fixture
def watched() -> Watched:
    return Watched()


# Heartbeats


def test_a_node_that_never_reported_is_not_used(watched: Watched) -> None:
    watched.fleet.sweep()

    assert watched.safety() is Safety.NEVER_REPORTED


def test_a_first_sight_alone_is_no_sign_of_life_after_the_list(watched: Watched) -> None:
    watched.report()
    assert watched.safety() is Safety.AWAITING_REPORT

    watched.pass_time(1.0)
    watched.report()
    assert watched.safety() is Safety.OK


def test_a_heartbeat_before_the_list_of_requests_does_not_end_the_waiting() -> None:
    watched = Watched(listed=False)
    watched.beat()
    assert watched.safety() is Safety.AWAITING_REPORT

    watched.fleet.ledger.complete(5)
    watched.report(stamp_ms=int(watched.wall * 1000))
    assert watched.safety() is Safety.AWAITING_REPORT, "the same stamp again is no new report"
    watched.pass_time(1.0)
    watched.report()
    assert watched.safety() is Safety.OK


def test_a_node_is_stale_when_its_stamp_has_not_advanced_for_the_whole_age(
    watched: Watched,
) -> None:
    watched.beat()
    stamp = int(watched.wall * 1000)

    watched.pass_time(MAX_AGE - 0.5)
    watched.report(stamp_ms=stamp)
    assert watched.safety() is Safety.OK

    watched.pass_time(0.5)
    watched.fleet.sweep()
    assert watched.safety() is Safety.STALE


def test_fresh_usage_under_an_old_stamp_does_not_keep_a_node_alive(watched: Watched) -> None:
    watched.beat()
    stamp = int(watched.wall * 1000)
    for _ in range(31):
        watched.pass_time(10.0)
        watched.report(stamp_ms=stamp, cpu_util_percent=1.0)

    assert watched.safety() is Safety.STALE


def test_going_stale_is_a_new_version_and_coming_back_helps(watched: Watched) -> None:
    watched.beat()
    version = watched.fleet.snapshot.version
    watched.pass_time(MAX_AGE)
    watched.fleet.sweep()
    assert watched.fleet.snapshot.version > version

    version, watched.helped = watched.fleet.snapshot.version, 0
    watched.fleet.sweep()
    assert (watched.fleet.snapshot.version, watched.helped) == (version, 0), "nothing has changed"

    watched.report()
    assert watched.safety() is Safety.OK
    assert watched.helped > 0


def test_a_stamp_first_seen_old_counts_as_old(watched: Watched) -> None:
    watched.report(stamp_ms=int((watched.wall - MAX_AGE - 1) * 1000))

    assert watched.safety() is Safety.STALE


def test_a_clock_in_1970_that_advances_is_a_heartbeat(watched: Watched) -> None:
    watched.report(stamp_ms=1)
    assert watched.safety() is Safety.STALE

    watched.pass_time(1.0)
    watched.report(stamp_ms=1001)
    assert watched.safety() is Safety.OK


def test_a_clock_in_2100_is_skew_however_it_advances(watched: Watched) -> None:
    for stamp in (YEAR_2100_MS, YEAR_2100_MS + 1000):
        watched.report(stamp_ms=stamp)
        watched.pass_time(1.0)

    assert watched.safety() is Safety.CLOCK_SKEW


@pytest.mark.parametrize(("ahead", "safety"), [(29.0, Safety.OK), (31.0, Safety.CLOCK_SKEW)])
def test_thirty_seconds_ahead_are_believed(watched: Watched, ahead: float, safety: Safety) -> None:
    for _ in range(2):
        watched.report(stamp_ms=int((watched.wall + ahead) * 1000))
        watched.pass_time(1.0)

    assert watched.safety() is safety


def test_a_clock_set_right_counts_from_its_next_advance_on(watched: Watched) -> None:
    watched.report(stamp_ms=YEAR_2100_MS)
    watched.pass_time(1.0)
    watched.report()
    assert watched.safety() is Safety.AWAITING_REPORT, "going back is no advance"

    watched.pass_time(1.0)
    watched.report()
    assert watched.safety() is Safety.OK


def test_this_replicas_wall_clock_may_jump_without_making_anyone_stale(watched: Watched) -> None:
    watched.beat()
    stamp = int(watched.wall * 1000)
    watched.wall += 86_400
    watched.report(stamp_ms=stamp + 1000)

    assert watched.safety() is Safety.OK


# Whose report it is


def test_a_report_of_another_node_object_is_not_this_nodes(watched: Watched) -> None:
    watched.beat(node_uid="uid-of-the-old-n1", cpu_util_percent=99.0)

    assert watched.safety() is Safety.NEVER_REPORTED
    assert isnan(watched.at("cpu_util_percent"))


def test_reports_of_unknown_nodes_are_passed_over(watched: Watched) -> None:
    watched.beat("n1", "n9", "a-node-before-all-others")

    assert watched.safety("n1") is Safety.OK
    assert watched.safety("n2") is Safety.NEVER_REPORTED


def test_the_name_of_a_missing_node_never_hits_the_last_row(watched: Watched) -> None:
    watched.beat("n9", node_uid="uid-n2")

    assert watched.safety("n2") is Safety.NEVER_REPORTED


def test_a_node_recreated_under_its_name_starts_from_nothing(watched: Watched) -> None:
    watched.beat(sandboxes=7, cpu_util_percent=50.0)
    watched.fleet.event("DELETED", a_node_object("n1"), 2)
    watched.fleet.event("ADDED", a_node_object("n1", uid="new"), 3)

    assert watched.safety() is Safety.NEVER_REPORTED
    watched.beat("n1")
    assert watched.safety() is Safety.NEVER_REPORTED, "that was the old one's report"
    assert watched.at("sandboxes") == 0


def test_an_empty_pass_changes_nothing(watched: Watched) -> None:
    watched.beat(cpu_util_percent=50.0)
    watched.fleet.take_reports(decode_all({}))

    assert watched.safety() is Safety.OK
    assert watched.at("cpu_util_percent") == 50.0


def test_reports_before_any_node_is_known_are_passed_over() -> None:
    fleet = Fleet(monotonic=lambda: 0.0, wall=lambda: 0.0)
    fleet.take_reports(reports(1, "n1"))

    assert len(fleet.snapshot) == 0


# Usage


def test_what_a_report_does_not_know_is_unknown(watched: Watched) -> None:
    watched.report(cpu_util_percent=nan, memory_used_bytes=-1)

    assert isnan(watched.at("cpu_util_percent"))
    assert isnan(watched.at("memory_really_used_bytes"))


def test_real_usage_is_written_as_it_came(watched: Watched) -> None:
    watched.report(
        cpu_util_percent=12.5,
        cpu_load=3.0,
        memory_used_bytes=GIB,
        data_disk_percent=1.0,
        storage_disk_percent=2.0,
        system_disk_percent=3.0,
    )

    found = [
        watched.at(column)
        for column in (
            "cpu_util_percent",
            "cpu_load",
            "memory_really_used_bytes",
            "data_disk_percent",
            "storage_disk_percent",
            "system_disk_percent",
        )
    ]
    assert found == [12.5, 3.0, GIB, 1.0, 2.0, 3.0]


def test_foreign_use_is_added_once_however_often_it_is_reported(watched: Watched) -> None:
    watched.fleet.ledger.event("ADDED", a_request_object(phase="Bound", node="n1"), 2)
    for foreign in (500, 700, 700, -1, 300):
        watched.report(foreign_cpu_millis=foreign, foreign_memory_bytes=GIB, foreign_disk_bytes=5)

    assert watched.at("cpu_used_millis") == 1300
    assert watched.at("memory_used_bytes") == 2 * GIB
    assert watched.at("disk_used_bytes") == 5


def test_foreign_use_can_be_ignored_by_configuration(watched: Watched) -> None:
    watched.report(foreign_cpu_millis=500)
    watched.fleet.configure(Settings(ignore_redis_allocation=True))
    watched.report(foreign_cpu_millis=500)

    assert watched.at("cpu_used_millis") == 0


def test_the_larger_of_counted_and_reported_numbers_holds(watched: Watched) -> None:
    for name in ("r1", "r2"):
        watched.fleet.ledger.event("ADDED", a_request_object(name, phase="Bound", node="n1"), 2)

    watched.report(sandboxes=1, creating=5)
    assert (watched.at("sandboxes"), watched.at("creating"), watched.at("creating_ledger")) == (
        2,
        5,
        2,
    )

    watched.report(sandboxes=9, creating=-1)
    assert (watched.at("sandboxes"), watched.at("creating")) == (9, 2)


def test_creates_that_a_node_reports_stand_apart_from_those_of_the_ledger(
    watched: Watched,
) -> None:
    free = watched.fleet.snapshot.derived.creates_free_by_both_percent
    assert (watched.at("creating_reported"), free[0]) == (UNKNOWN, 0.0)

    watched.report(creating=5)
    watched.fleet.ledger.event("ADDED", a_request_object(phase="Bound", node="n1"), 2)
    assert (watched.at("creating_reported"), free[0]) == (5, 94.0)

    watched.report(creating=-1)
    watched.fleet.ledger.event("ADDED", a_request_object("r2", phase="Bound", node="n1"), 3)
    assert (watched.at("creating_reported"), free[0]) == (UNKNOWN, 0.0)


def test_the_allowed_age_follows_the_configuration(watched: Watched) -> None:
    watched.beat()
    watched.pass_time(10.0)
    watched.fleet.configure(Settings(guards=GuardSettings(metrics_max_age_seconds=5.0)))

    assert watched.safety() is Safety.STALE


# CubeMaster's layout, which tells what is allocated in all, and knows no uid


def test_only_what_exceeds_the_ledger_is_foreign(watched: Watched) -> None:
    watched.report_hash(quota_cpu_usage=1500, quota_mem_mb_usage=2048)
    assert (watched.at("cpu_used_millis"), watched.at("memory_used_bytes")) == (1500, 2 * GIB)

    watched.fleet.ledger.event("ADDED", a_request_object(phase="Bound", node="n1"), 2)
    assert (watched.at("cpu_used_millis"), watched.at("memory_used_bytes")) == (1500, 2 * GIB)

    watched.report_hash(quota_cpu_usage=400, quota_mem_mb_usage=0)
    assert (watched.at("cpu_used_millis"), watched.at("memory_used_bytes")) == (1000, GIB)


def test_foreign_use_is_counted_anew_when_the_ledger_changes(watched: Watched) -> None:
    watched.fleet.ledger.event("ADDED", a_request_object(phase="Running", node="n1"), 2)
    watched.report_hash(quota_cpu_usage=1800)
    assert watched.at("cpu_used_millis") == 1800

    watched.fleet.ledger.event("MODIFIED", a_request_object(phase="Succeeded", node="n1"), 3)
    assert watched.at("cpu_used_millis") == 1800, "the machine's last word still counts"
    watched.report_hash(quota_cpu_usage=800)
    assert watched.at("cpu_used_millis") == 800


def test_a_plan_of_this_replica_comes_on_top_of_what_is_allocated(watched: Watched) -> None:
    watched.report_hash(quota_cpu_usage=1500)
    watched.fleet.assume("r1", Assumption("n1", Weight(1000, GIB, 0), ""))
    assert watched.at("cpu_used_millis") == 2500

    watched.report_hash(quota_cpu_usage=1700)
    assert watched.at("cpu_used_millis") == 2700
    watched.fleet.release("r1")
    assert watched.at("cpu_used_millis") == 1700


def test_allocations_of_that_layout_can_be_ignored_too(watched: Watched) -> None:
    watched.report_hash(quota_cpu_usage=1500, mvm_num=7)
    watched.fleet.configure(Settings(ignore_redis_allocation=True))
    watched.report_hash(quota_cpu_usage=1500, mvm_num=7)

    assert (watched.at("cpu_used_millis"), watched.at("sandboxes")) == (0, 7)


def test_a_hash_that_advances_ends_the_waiting_of_a_restarted_replica(watched: Watched) -> None:
    watched.report_hash()
    assert watched.safety() is Safety.AWAITING_REPORT
    watched.report_hash()
    assert watched.safety() is Safety.AWAITING_REPORT, "the same stamp again is no new report"

    watched.pass_time(1.0)
    watched.report_hash()
    assert watched.safety() is Safety.OK


def test_what_was_deleted_counts_for_the_whole_age_where_no_version_is_told(
    watched: Watched,
) -> None:
    watched.fleet.ledger.event("ADDED", a_request_object(phase="Running", node="n1"), 2)
    watched.fleet.ledger.event("DELETED", a_request_object(phase="Running", node="n1"), 3)
    watched.report_hash(quota_cpu_usage=0)
    assert watched.at("cpu_used_millis") == 1000

    watched.pass_time(MAX_AGE + 0.1)
    watched.report_hash(quota_cpu_usage=0)
    assert watched.at("cpu_used_millis") == 0


def test_a_hash_that_was_empty_once_wipes_nothing(watched: Watched) -> None:
    watched.report_hash(quota_cpu_usage=1500, cpu_util=50)
    watched.fleet.take_reports(hashes({"n1": {}, "n2": {}}))

    assert (watched.at("cpu_used_millis"), watched.at("cpu_util_percent")) == (1500, 50.0)
    watched.pass_time(1.0)
    watched.report_hash(quota_cpu_usage=500, cpu_util=10)
    assert (watched.at("cpu_used_millis"), watched.at("cpu_util_percent")) == (500, 10.0)
    assert watched.safety() is Safety.OK


def test_a_count_that_falls_is_believed_and_the_ledger_still_counts(watched: Watched) -> None:
    watched.fleet.ledger.event("ADDED", a_request_object(phase="Running", node="n1"), 2)
    for told, expected in ((9, 9), (0, 1), (3, 3)):
        watched.report_hash(mvm_num=told)
        assert watched.at("sandboxes") == expected


# Both layouts at once


def both(watched: Watched, ours_at: float, theirs_at: float) -> None:
    watched.fleet.take_reports(
        reports(int(ours_at * 1000), "n1", foreign_cpu_millis=100, cpu_util_percent=11.0),
        hashes({name: {"update_at": theirs_at, "quota_cpu_usage": 2200, "cpu_util": 22}
                for name in ("n1", "n2")}),
    )  # fmt: skip


def test_where_a_node_reports_in_both_layouts_ours_holds(watched: Watched) -> None:
    both(watched, watched.wall - 5, watched.wall)

    assert (watched.at("cpu_used_millis"), watched.at("cpu_util_percent")) == (100, 11.0)
    assert (watched.at("cpu_used_millis", "n2"), watched.at("cpu_util_percent", "n2")) == (2200, 22)


def test_a_report_that_an_agent_left_behind_does_not_hide_the_one_that_advances(
    watched: Watched,
) -> None:
    both(watched, watched.wall, watched.wall)
    left = watched.wall
    for _ in range(2):
        watched.pass_time(MAX_AGE + 1)
        both(watched, left, watched.wall)

    assert (watched.at("cpu_used_millis"), watched.at("cpu_util_percent")) == (2200, 22.0)
    assert watched.safety() is Safety.OK


def test_a_node_that_changes_its_layout_is_counted_once(watched: Watched) -> None:
    watched.fleet.ledger.event("ADDED", a_request_object(phase="Running", node="n1"), 2)
    watched.report_hash(quota_cpu_usage=1800)
    watched.report(foreign_cpu_millis=300)
    assert watched.at("cpu_used_millis") == 1300

    watched.report_hash(quota_cpu_usage=1800)
    assert watched.at("cpu_used_millis") == 1800


# Ghosts let go


def test_a_report_of_an_applied_revision_lets_go_of_what_was_deleted_before(
    watched: Watched,
) -> None:
    watched.fleet.ledger.event("ADDED", a_request_object(phase="Running", node="n1"), 2)
    watched.fleet.ledger.event("DELETED", a_request_object(phase="Running", node="n1"), 3)
    watched.report(applied_version=2)
    assert watched.at("cpu_used_millis") == 1000

    watched.report("n1", applied_version=3, node_uid="uid-of-the-old-n1")
    assert watched.at("cpu_used_millis") == 1000

    watched.helped = 0
    watched.report(applied_version=3)
    assert watched.at("cpu_used_millis") == 0
    assert watched.helped > 0


def test_without_any_report_it_is_let_go_after_the_allowed_age(watched: Watched) -> None:
    watched.fleet.ledger.event("ADDED", a_request_object(phase="Running", node="n1"), 2)
    watched.fleet.ledger.event("DELETED", a_request_object(phase="Running", node="n1"), 3)

    watched.pass_time(MAX_AGE)
    watched.fleet.sweep()
    assert watched.at("cpu_used_millis") == 1000

    watched.helped = 0
    watched.pass_time(0.1)
    watched.fleet.sweep()
    assert watched.at("cpu_used_millis") == 0
    assert watched.helped == 1
