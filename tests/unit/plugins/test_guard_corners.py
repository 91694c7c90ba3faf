"""Guards on nodes as they really come: objects, reports of both layouts, requests, policy.

Every value is worked out by hand. A node has 4 cpus and 16 GiB, and reports nothing but its stamp
unless a test says more; 1.6 GiB of memory are kept free (10 %).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import nan
from typing import Any

import pytest
from tests.unit.builders import a_request
from tests.unit.fleet.objects import GIB, a_node_object, a_request_object, hashes, reports

from cubesched.core.answers import settled_mask
from cubesched.core.scheduler_settings import GuardSettings, Settings
from cubesched.core.snapshot import NO_LIMIT
from cubesched.fleet.assumptions import Assumption
from cubesched.fleet.entries import Weight
from cubesched.fleet.fleet import Fleet
from cubesched.plugins import registry

GUARDS = {guard.name: guard for guard in registry.GUARDS}
MIB = 1 << 20
RESERVED = 16 * GIB // 10


class World:
    """One node called n."""

    def __init__(self, settings: Settings | None = None, **node: Any) -> None:
        self.now = 1_800_000_000.0
        self.fleet = Fleet(monotonic=lambda: self.now, wall=lambda: self.now)
        self.fleet.configure(settings or Settings())
        self.fleet.ledger.complete(1)
        self.fleet.event("ADDED", a_node_object("n", **{"cpu": "4", **node}), 1)

    def report(self, **fields: Any) -> World:
        for _ in range(2):
            self.now += 1.0
            self.fleet.take_reports(reports(int(self.now * 1000), "n", **fields))
        return self

    def report_hash(self, **fields: Any) -> World:
        for _ in range(2):
            self.now += 1.0
            self.fleet.take_reports(hashes({"n": {"update_at": self.now, **fields}}))
        return self

    def place(self, name: str, *, phase: str = "Running", **weight: Any) -> World:
        raw = a_request_object(name, phase=phase, node="n", reservation=weight)
        self.fleet.ledger.event("MODIFIED", raw, 2)
        return self

    def keeps(self, guard: str, **request: Any) -> bool:
        mask = settled_mask(
            GUARDS[guard], self.fleet.snapshot, a_request(**request), keeps_failed=False
        )
        return mask is None or bool(mask[0])

    def rejected_by(self, **request: Any) -> list[str]:
        return [name for name in GUARDS if not self.keeps(name, **request)]

    def places(self, *, most: int = 100, cpu_millis: int = 1000) -> int:
        """Plan requests until the cpu guard says no; return how many there was room for."""
        for number in range(most):
            if not self.keeps("cpu", cpu_millis=cpu_millis):
                return number
            self.fleet.assume(f"p{number}", Assumption("n", Weight(cpu_millis, 0, 0), ""))
        return most


# Unknown against zero: each field switches off its own part of one guard, and nothing else


def test_a_node_that_reports_nothing_but_its_stamp_is_judged_by_quota_alone() -> None:
    world = World().report()

    assert world.rejected_by(cpu_millis=4000, memory_bytes=16 * GIB) == []
    assert world.rejected_by(cpu_millis=4001, memory_bytes=16 * GIB) == ["cpu"]
    assert world.rejected_by(cpu_millis=4000, memory_bytes=16 * GIB + 1) == ["mem"]


@pytest.mark.parametrize(
    ("field", "kept", "lost", "guard"),
    [
        ("cpu_util_percent", (nan, 0.0, 79.99), (80.0, 100.0, 5000.0), "cpu"),
        ("cpu_load", (nan, 0.0, 4.0), (4.01, 1e9), "node_safety"),
        ("data_disk_percent", (nan, 0.0, 79.99), (80.0, 100.0), "disk"),
        ("storage_disk_percent", (nan, 0.0, 79.99), (80.0, 100.0), "disk"),
        ("system_disk_percent", (nan, 0.0, 79.99), (80.0, 100.0), "disk"),
        # 16 GiB less the 1.6 kept free, less 1 GiB asked: one byte more is too much.
        (
            "memory_used_bytes",
            (-1, 0, 15 * GIB - RESERVED),
            (15 * GIB - RESERVED + 1, 1 << 50),
            "mem",
        ),
        ("sandboxes", (-1, 0, 2999), (3000, 1 << 50), "node_safety"),
        ("creating", (-1, 0, 99), (100, 1 << 50), "realtime_create_num"),
        ("foreign_cpu_millis", (-1, 0, 3000), (3001, 1 << 50), "cpu"),
        ("foreign_memory_bytes", (-1, 0, 15 * GIB), (15 * GIB + 1, 1 << 55), "mem"),
    ],
)
def test_unknown_is_off_and_a_value_counts_to_the_last_unit(
    field: str, kept: tuple[float, ...], lost: tuple[float, ...], guard: str
) -> None:
    for value in kept:
        assert World().report(**{field: value}).rejected_by() == [], value
    for value in lost:
        assert World().report(**{field: value}).rejected_by() == [guard], value


@pytest.mark.parametrize(
    ("field", "kept", "lost", "guard"),
    [
        ("cpu_util", ("", "abc", "NaN", "-5", "1e400", 0, "79.99"), (80, "1e3"), "cpu"),
        ("cpu_load_usage", ("", "abc", "-0.1", 0, 4), ("4.01", 65), "node_safety"),
        ("data_disk_usage_per", ("", "-1", 0, "79.9"), (80, 130), "disk"),
        ("storage_disk_usage_per", ("abc", 0), (80,), "disk"),
        ("sys_disk_usage_per", ("NaN", 0), (80,), "disk"),
        # 15 GiB - 1.6 GiB are 13721.6 MiB.
        ("mem_load_mb_usage", ("", "-1", 0, 13721), (13722,), "mem"),
        ("mvm_num", ("", "abc", 0, 2999), (3000,), "node_safety"),
        ("realtime_create_num", ("", "1e400", 0, 99), (100,), "realtime_create_num"),
        ("quota_cpu_usage", ("", "abc", "-5", 0, 3000), (3001,), "cpu"),
        ("quota_mem_mb_usage", ("", "NaN", 0, 15 * 1024), (15 * 1024 + 1,), "mem"),
    ],
)
def test_the_same_holds_for_cubemasters_fields_and_garbage_in_them(
    field: str, kept: tuple[object, ...], lost: tuple[object, ...], guard: str
) -> None:
    for value in kept:
        assert World().report_hash(**{field: value}).rejected_by() == [], value
    for value in lost:
        assert World().report_hash(**{field: value}).rejected_by() == [guard], value


def test_an_unknown_utilisation_leaves_the_quota_part_of_the_guard_on() -> None:
    world = World().report(cpu_util_percent=nan).place("a", cpuMillis=3500)

    assert world.keeps("cpu", cpu_millis=500)
    assert not world.keeps("cpu", cpu_millis=501)


# Exact fit: no tolerance, no strictness


@pytest.mark.parametrize(
    ("free", "asked", "fits"),
    [(996, 1000, False), (999, 1000, False), (1000, 1000, True), (0, 1, False), (1, 1, True)],
)
def test_cpu_fits_to_the_millicore(free: int, asked: int, fits: bool) -> None:
    world = World().report().place("a", cpuMillis=4000 - free)

    assert world.keeps("cpu", cpu_millis=asked) is fits


@pytest.mark.parametrize(
    ("free", "asked", "fits"),
    [
        (GIB - 1, GIB, False),
        (GIB, GIB, True),
        (GIB - 10 * MIB, GIB, False),
        (0, 1, False),
        (1, 1, True),
    ],
)
def test_memory_fits_to_the_byte(free: int, asked: int, fits: bool) -> None:
    world = World().report().place("a", memoryBytes=16 * GIB - free)

    assert world.keeps("mem", memory_bytes=asked) is fits


# Over-commit: once


@pytest.mark.parametrize(
    ("quota", "overcommit", "expected"),
    [
        (None, Fraction(1), 4),
        (None, Fraction(3), 12),
        ("8", Fraction(1), 8),
        ("8", Fraction(3), 24),  # the node's own 2 and the config's 3, each once
        ("8", Fraction("1.5"), 12),
    ],
)
def test_over_commit_multiplies_the_quota_exactly_once(
    quota: str | None, overcommit: Fraction, expected: int
) -> None:
    spec = {"quota": {"cpu": quota}} if quota else {}
    world = World(Settings(overcommit_cpu=overcommit), spec=spec).report()

    assert world.places() == expected


def test_over_commit_is_exact_where_doubles_are_not() -> None:
    # 999m times 1.1 are 1098.9m: 3 x 366m fit, 3 x 366.3m would not.
    world = World(Settings(overcommit_cpu=Fraction("1.1")), cpu="999m").report()

    assert world.fleet.snapshot.cpu_limit_millis.tolist() == [1098]
    assert world.places(cpu_millis=366) == 3
    assert World(Settings(overcommit_cpu=Fraction("1.1")), cpu="999m").report().places(
        cpu_millis=367
    ) == 2  # fmt: skip


def test_over_commit_does_not_touch_disk_the_machines_memory_or_its_reserve() -> None:
    settings = Settings(overcommit_cpu=Fraction(16), overcommit_memory=Fraction(16))
    capacity = {"cpu": "4", "memory": "16Gi", "systemDisk": "10Gi"}
    world = World(settings, spec={"capacity": capacity}).report(memory_used_bytes=0)

    assert world.keeps("disk", disk_bytes=10 * GIB)
    assert not world.keeps("disk", disk_bytes=10 * GIB + 1)
    assert world.keeps("mem", memory_bytes=16 * GIB - RESERVED - 1)
    assert not world.keeps("mem", memory_bytes=16 * GIB - RESERVED + 1)


# Foreign use


def test_what_runs_beside_the_requests_takes_room_in_both_layouts() -> None:
    ours = World().place("a", cpuMillis=1000).report(foreign_cpu_millis=2000)
    theirs = World().place("a", cpuMillis=1000).report_hash(quota_cpu_usage=3000)

    for world in (ours, theirs):
        assert world.keeps("cpu", cpu_millis=1000)
        assert not world.keeps("cpu", cpu_millis=1001)


@pytest.mark.parametrize("report", [World.report, World.report_hash])
def test_foreign_use_is_dropped_where_the_config_says_so(report: Callable[..., World]) -> None:
    fields = {"foreign_cpu_millis": 4000} if report is World.report else {"quota_cpu_usage": 4000}
    world = World(Settings(ignore_redis_allocation=True)).place("a", cpuMillis=1000)
    report(world, **fields)

    assert world.keeps("cpu", cpu_millis=3000)
    assert not world.keeps("cpu", cpu_millis=3001), "the ledger counts whatever the config says"


def test_foreign_disk_takes_room_where_the_disk_is_limited() -> None:
    capacity = {"cpu": "4", "memory": "16Gi", "systemDisk": "10Gi"}
    world = World(spec={"capacity": capacity}).report(foreign_disk_bytes=9 * GIB)

    assert world.keeps("disk", disk_bytes=GIB)
    assert not world.keeps("disk", disk_bytes=GIB + 1)
    assert World().report(foreign_disk_bytes=9 * GIB).keeps("disk", disk_bytes=NO_LIMIT - 9 * GIB)


# The memory kept free


@pytest.mark.parametrize(
    ("memory", "configured", "reserved"),
    [
        ("16Gi", None, RESERVED),
        ("100Gi", None, 10 * GIB),
        ("1Ti", None, 10 * GIB),
        ("16Gi", 0, 0),
        ("16Gi", 3 * GIB, 3 * GIB),
        ("16Gi", 20 * GIB, 20 * GIB),
    ],
)
def test_the_reserve_is_the_smaller_of_ten_gibibytes_and_a_tenth_unless_configured(
    memory: str, configured: int | None, reserved: int
) -> None:
    guards = GuardSettings(memory_reserved_bytes=configured)
    total = {"16Gi": 16, "100Gi": 100, "1Ti": 1024}[memory] * GIB
    world = World(Settings(guards=guards), memory=memory).report(memory_used_bytes=0)
    free = total - reserved

    assert world.fleet.snapshot.memory_reserved_bytes.tolist() == [reserved]
    assert world.keeps("mem", memory_bytes=max(0, free)) is (free >= 0)
    assert not world.keeps("mem", memory_bytes=max(0, free) + 1)


def test_the_reserve_is_of_no_concern_where_real_use_is_unknown() -> None:
    guards = GuardSettings(memory_reserved_bytes=20 * GIB)

    assert World(Settings(guards=guards)).report().keeps("mem", memory_bytes=16 * GIB)


# Numbers: the node's own limit, else the config's


@pytest.mark.parametrize(
    ("quota", "limit"), [({}, 3), ({"sandboxes": 1}, 1), ({"sandboxes": 5}, 5)]
)
def test_the_nodes_own_number_of_sandboxes_wins(quota: dict[str, int], limit: int) -> None:
    guards = GuardSettings(max_sandboxes_per_node=3)
    world = World(Settings(guards=guards), spec={"quota": quota}).report()

    for number in range(limit):
        assert world.keeps("node_safety")
        world.place(f"r{number}", cpuMillis=1)
    assert not world.keeps("node_safety")


@pytest.mark.parametrize(
    ("quota", "limit"), [({}, 2), ({"createConcurrency": 1}, 1), ({"createConcurrency": 4}, 4)]
)
def test_the_nodes_own_number_of_creates_wins(quota: dict[str, int], limit: int) -> None:
    guards = GuardSettings(create_concurrency_limit=2)
    world = World(Settings(guards=guards), spec={"quota": quota}).report()

    for number, phase in zip(
        range(limit), ("Reserved", "Bound", "Starting", "Bound"), strict=False
    ):
        assert world.keeps("realtime_create_num")
        world.place(f"r{number}", phase=phase, cpuMillis=1)
    assert not world.keeps("realtime_create_num")
    world.place("r0", phase="Running", cpuMillis=1)
    assert world.keeps("realtime_create_num")


def test_a_bound_on_utilisation_and_disks_follows_the_config() -> None:
    guards = GuardSettings(max_cpu_util_percent=50.0, disk_usage_max_percent=20.0)
    world = World(Settings(guards=guards)).report(cpu_util_percent=49.9, data_disk_percent=19.9)
    assert world.rejected_by() == []

    world.report(cpu_util_percent=50.0, data_disk_percent=20.0)
    assert world.rejected_by() == ["cpu", "disk"]


def test_load_is_compared_with_the_machines_cpus_not_with_its_quota() -> None:
    world = World(Settings(overcommit_cpu=Fraction(4)), spec={"quota": {"cpu": "64"}})

    assert world.report(cpu_load=4.0).keeps("node_safety")
    assert not world.report(cpu_load=4.1).keeps("node_safety")
