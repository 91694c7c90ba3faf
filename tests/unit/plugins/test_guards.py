"""Each guard on hand-computed nodes: which it keeps, what it says, which miss is the nearest.

Sources: the guards' own reference entries; CubeMaster's predicates where they agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.builders import GIB, UNKNOWN, a_node, a_request, a_snapshot

from cubesched.core.answers import settled_mask
from cubesched.core.pipeline import Filter
from cubesched.core.snapshot import NO_LIMIT, Safety
from cubesched.plugins import registry

GUARDS = {guard.name: guard for guard in registry.GUARDS}


def keeps(guard: Filter, node_facts: dict[str, Any], **request_facts: Any) -> bool:
    mask = settled_mask(
        guard, a_snapshot([a_node(**node_facts)]), a_request(**request_facts), keeps_failed=False
    )
    return mask is None or bool(mask[0])


def test_the_six_guards_stand_in_their_order() -> None:
    assert list(GUARDS) == [
        "node_safety",
        "cpu",
        "mem",
        "disk",
        "template_locality",
        "realtime_create_num",
    ]


@pytest.mark.parametrize("safety", list(Safety))
def test_node_safety_keeps_only_a_safe_node(safety: Safety) -> None:
    assert keeps(GUARDS["node_safety"], {"safety": safety}) is (safety is Safety.OK)


@pytest.mark.parametrize(
    ("facts", "stays"),
    [
        ({"sandboxes": 2999}, True),
        ({"sandboxes": 3000}, False),
        ({"sandboxes": 3000, "sandbox_limit": NO_LIMIT}, True),
        ({"cpu_load": 64.0}, True),
        ({"cpu_load": 64.1}, False),
        ({"cpu_load": UNKNOWN}, True),
        ({"cpu_load": 65.0, "cpus": UNKNOWN}, True),
    ],
)
def test_node_safety_compares_sandboxes_and_load(facts: dict[str, Any], stays: bool) -> None:
    assert keeps(GUARDS["node_safety"], facts) is stays


@pytest.mark.parametrize(
    ("limit", "used", "asked", "stays"),
    [
        (1000, 4, 1000, False),  # 996m free: no tolerance
        (1000, 0, 1000, True),  # exact fit
        (1000, 1000, 1, False),
        (4000, 8000, 1000, False),  # a shrunk node: below zero is not plenty
        (2**60, 0, 2**60, True),
        (2**60, 1, 2**60, False),
        (2**53 + 2, 1, 2**53 + 1, True),
        (2**53 + 2, 2, 2**53 + 1, False),  # a double cannot tell these apart
        (8000, 0, 10**19, False),  # beyond int64
    ],
)
def test_cpu_and_memory_fit_exactly_or_not_at_all(
    limit: int, used: int, asked: int, stays: bool
) -> None:
    cpu = {"cpu_limit_millis": limit, "cpu_used_millis": used}
    memory = {
        "memory_limit_bytes": limit,
        "memory_used_bytes": used,
        "memory_really_used_bytes": UNKNOWN,
    }
    disk = {"disk_limit_bytes": limit, "disk_used_bytes": used}

    assert keeps(GUARDS["cpu"], cpu, cpu_millis=asked) is stays
    assert keeps(GUARDS["mem"], memory, memory_bytes=asked) is stays
    assert keeps(GUARDS["disk"], disk, disk_bytes=asked) is stays


@pytest.mark.parametrize(
    ("percent", "stays"), [(79.9, True), (80.0, False), (130.0, False), (UNKNOWN, True)]
)
def test_cpu_utilisation_must_be_below_its_bound(percent: float, stays: bool) -> None:
    assert keeps(GUARDS["cpu"], {"cpu_util_percent": percent}) is stays


@pytest.mark.parametrize(
    ("really_used", "stays"),
    [(117.0 * GIB, True), (117.0 * GIB + 1, False), (UNKNOWN, True), (200.0 * GIB, False)],
)
def test_the_machine_must_have_the_memory_beside_its_reserve(
    really_used: float, stays: bool
) -> None:
    # 128 GiB of memory - 10 GiB reserved - 1 GiB asked leaves 117 GiB.
    assert keeps(GUARDS["mem"], {"memory_really_used_bytes": really_used}) is stays


@pytest.mark.parametrize("disk", ["data", "storage", "system"])
@pytest.mark.parametrize(("percent", "stays"), [(79.9, True), (80.0, False), (UNKNOWN, True)])
def test_each_reported_disk_must_be_below_its_bound(disk: str, percent: float, stays: bool) -> None:
    assert keeps(GUARDS["disk"], {f"{disk}_disk_percent": percent}) is stays


@pytest.mark.parametrize(
    ("node", "request_facts", "stays"),
    [
        ({}, {}, True),
        ({}, {"template_id": "t"}, False),
        ({"templates": ("other",)}, {"template_id": "t"}, False),
        ({"templates": ("t",)}, {"template_id": "t"}, True),
        ({}, {"template_id": "t", "allow_non_local_template": True}, True),
        ({}, {"template_node_scope": ("node-1",)}, True),
        ({}, {"template_node_scope": ("gone",)}, False),
        ({"templates": ("t",)}, {"template_id": "t", "template_node_scope": ("gone",)}, False),
    ],
)
def test_template_locality_asks_for_the_template_and_the_scope(
    node: dict[str, Any], request_facts: dict[str, Any], stays: bool
) -> None:
    assert keeps(GUARDS["template_locality"], node, **request_facts) is stays


@pytest.mark.parametrize(("creating", "stays"), [(99, True), (100, False), (101, False)])
def test_creates_in_flight_must_be_below_their_limit(creating: int, stays: bool) -> None:
    assert keeps(GUARDS["realtime_create_num"], {"creating": creating}) is stays


@pytest.mark.parametrize(
    ("guard", "node", "reason", "nearest"),
    [
        ("node_safety", {"safety": Safety.STALE}, "stale metrics", None),
        ("node_safety", {"sandboxes": 3000}, "sandbox limit reached", "3000 of 3000 sandboxes"),
        ("node_safety", {"cpu_load": 70.5}, "cpu load too high", "cpu load 70.5 on 64 cpus"),
        ("cpu", {"cpu_used_millis": 62_200}, "insufficient cpu", "needs 2000m, 1800m free"),
        ("cpu", {"cpu_used_millis": 99_000}, "insufficient cpu", "needs 2000m, 0m free"),
        (
            "cpu",
            {"cpu_util_percent": 85.25},
            "cpu utilisation too high",
            "cpu 85.2 % busy, must be below 80.0 %",
        ),
        (
            "mem",
            {"memory_used_bytes": 126 * GIB + GIB // 2},
            "insufficient memory",
            "needs 2Gi, 1.5Gi free",
        ),
        (
            "mem",
            {"memory_used_bytes": 126 * GIB + 1},
            "insufficient memory",
            "needs 2147483648 bytes, 2147483647 bytes free",
        ),
        (
            "mem",
            {"memory_really_used_bytes": 117.0 * GIB},
            "insufficient free memory on the machine",
            "needs 2Gi, 1Gi free on the machine beside its reserve",
        ),
        ("disk", {"disk_limit_bytes": GIB}, "insufficient disk", "needs 4Gi, 1Gi free"),
        (
            "disk",
            {"system_disk_percent": 91.0},
            "disk too full",
            "fullest disk 91.0 %, must be below 80.0 %",
        ),
        ("template_locality", {}, "no local template", None),
        (
            "realtime_create_num",
            {"creating": 100},
            "too many creates in flight",
            "100 of 100 creates in flight",
        ),
    ],
)
def test_a_guard_says_why_and_how_near(
    guard: str, node: dict[str, Any], reason: str, nearest: str | None
) -> None:
    fleet = a_snapshot([a_node(**node)])
    request = a_request(cpu_millis=2000, memory_bytes=2 * GIB, disk_bytes=4 * GIB, template_id="t")
    rows = np.array([0])

    miss = GUARDS[guard].nearest(fleet, request, rows)

    assert list(GUARDS[guard].reasons(fleet, request, rows)) == [(reason, 1)]
    assert (miss and miss.text) == nearest


def test_the_nearest_miss_is_the_one_that_lacks_the_least() -> None:
    fleet = a_snapshot([a_node(f"node-{free}", cpu_limit_millis=free) for free in (500, 1800, 900)])

    miss = GUARDS["cpu"].nearest(fleet, a_request(cpu_millis=2000), np.arange(3))

    assert miss is not None
    assert (fleet.names[miss.row], miss.text) == ("node-1800", "needs 2000m, 1800m free")


def test_a_miss_of_one_byte_is_told_in_bytes() -> None:
    fleet = a_snapshot([a_node(disk_limit_bytes=GIB)])

    miss = GUARDS["disk"].nearest(fleet, a_request(disk_bytes=GIB + 1), np.array([0]))

    assert miss is not None
    assert miss.text == "needs 1073741825 bytes, 1073741824 bytes free"


def test_reasons_of_one_guard_add_up_and_blame_quota_first() -> None:
    fleet = a_snapshot(
        [
            a_node("a", cpu_limit_millis=0, cpu_util_percent=99.0),
            a_node("b", cpu_util_percent=99.0),
            a_node("c", cpu_limit_millis=0),
        ]
    )

    reasons = GUARDS["cpu"].reasons(fleet, a_request(), np.arange(3))

    assert list(reasons) == [("insufficient cpu", 2), ("cpu utilisation too high", 1)]
