"""What every score and every factor gives one node, worked out by hand, with where that stands.

Each row is compared with the real plugin and with the node-by-node reference; many more nodes are
compared in tests/unit/core/test_reference.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.unit.builders import GIB, UNKNOWN, a_node, a_request, a_snapshot
from tests.unit.core import reference

from cubesched.core.answers import ask_scores
from cubesched.core.pipeline import NotApplicable
from cubesched.core.snapshot import NO_LIMIT, Safety
from cubesched.plugins.builtin.factors import ALIASES, FACTORS
from cubesched.plugins.builtin.scores import image_score
from cubesched.plugins.registry import SCORES, build_score

MIB = 1 << 20
NOT_REPORTED = -1
RTWA, MFWA = "real_time_weighted_average", "multi_factor_weighted_average"

# Of 8 cores 3 are used, of 16 GiB 4. EVEN leaves 4/8 and 8/16, UNEVEN 4/8 and 4/16, EXACT nothing.
PART = {
    "cpu_limit_millis": 8000,
    "cpu_used_millis": 3000,
    "memory_limit_bytes": 16 * GIB,
    "memory_used_bytes": 4 * GIB,
}
EVEN = {"cpu_millis": 1000, "memory_bytes": 4 * GIB}
UNEVEN = {"cpu_millis": 1000, "memory_bytes": 8 * GIB}
EXACT = {"cpu_millis": 5000, "memory_bytes": 12 * GIB}
OVER = {**PART, "cpu_used_millis": 9000, "memory_used_bytes": 20 * GIB}
NOTHING = {"cpu_limit_millis": 0, "memory_limit_bytes": 0, "sandbox_limit": 0, "create_limit": 0}

USED = "the table of factors: 100 - 100 * used / limit, clamped"
WORST = "unknown is never zero, in a score it is the worst value"
CLAMPED = "what is free is clamped to 0..100"
NO_ROOM = "CubeMaster's quota factors: 0 if the quota is <= 0"
LEFT = "req_ factors: what would be left, of quota x over-commit"
MEAN = "sum of f * w over sum of w"
NO_FACTOR = "CubeMaster: not applicable without a factor of non-zero weight"


class Row(NamedTuple):
    score: str
    args: Mapping[str, object]
    node: Mapping[str, Any]
    asked: Mapping[str, Any]
    expected: float | None
    source: str


def factor(name: str, node: Mapping[str, Any], expected: float, source: str = USED) -> Row:
    return Row(RTWA, {"factors": [name]}, node, EVEN, expected, source)


FACTOR_ROWS = [
    factor("mvm_num", {"sandboxes": 750, "sandbox_limit": 3000}, 75.0),
    factor("mvm_num", {"sandboxes": 750, "sandbox_limit": NO_LIMIT}, 100.0, "nothing of no limit"),
    factor("mvm_num", {"sandboxes": 0, "sandbox_limit": 0}, 0.0, "a limit of 0 leaves nothing"),
    factor("mvm_num", {"sandboxes": 9, "sandbox_limit": 3}, 0.0, CLAMPED),
    factor("local_create_num", {"creating_ledger": 30, "creating": 60, "create_limit": 100}, 70.0),
    factor("local_create_num", {"creating_ledger": 9, "create_limit": 8}, 0.0, CLAMPED),
    factor("local_create_num", NOTHING, 0.0, "a limit of 0 leaves nothing"),
    factor("realtime_create_num", {"creating_ledger": 30, "creating": 60}, 40.0),
    factor(
        "realtime_create_num",
        {"creating_ledger": 30, "creating": 30, "creating_reported": NOT_REPORTED},
        70.0,
        "the guard of that name: the larger of ledger and report, so the ledger where none is",
    ),
    factor("realtime_create_num", {"creating": 150, "create_limit": 100}, 0.0, CLAMPED),
    factor("quota_cpu_usage", PART, 62.5),
    factor("quota_cpu_usage", OVER, 0.0, CLAMPED),
    factor("quota_cpu_usage", NOTHING, 0.0, NO_ROOM),
    factor("quota_mem_usage", PART, 75.0),
    factor("quota_mem_usage", OVER, 0.0, CLAMPED),
    factor("quota_mem_usage", NOTHING, 0.0, NO_ROOM),
    factor("req_cpu", PART, 50.0, LEFT),
    factor("req_cpu", OVER, 0.0, CLAMPED),
    factor("req_cpu", NOTHING, 0.0, NO_ROOM),
    factor("req_mem", PART, 50.0, LEFT),
    factor("req_mem", OVER, 0.0, CLAMPED),
    factor("req_mem", NOTHING, 0.0, NO_ROOM),
    factor("cpu_util", {"cpu_util_percent": 35.5}, 64.5, "CubeMaster: 100 - CpuUtil"),
    factor("cpu_util", {"cpu_util_percent": 150.0}, 0.0, CLAMPED),
    factor("cpu_util", {"cpu_util_percent": UNKNOWN}, 0.0, WORST),
    factor("cpu_usage", {"cpu_util_percent": 35.5}, 64.5, "another spelling of cpu_util"),
    factor(
        "mem_usage",
        {"memory_really_used_bytes": 32.0 * GIB, "memory_capacity_bytes": 128 * GIB},
        75.0,
        "CubeMaster: 100 - 100 * MemUsage / MemMBTotal",
    ),
    factor("mem_usage", {"memory_really_used_bytes": 200.0 * GIB}, 0.0, CLAMPED),
    factor("mem_usage", {"memory_really_used_bytes": UNKNOWN}, 0.0, WORST),
    factor(
        "mem_usage", {"memory_really_used_bytes": 0.0, "memory_capacity_bytes": 0}, 0.0, NO_ROOM
    ),
    factor(
        "cpu_load",
        {"cpu_load": 16.0, "cpus": 64.0},
        75.0,
        "CubeMaster: 100 - 100 * load / CpuTotal",
    ),
    factor("cpu_load", {"cpu_load": 70.0, "cpus": 64.0}, 0.0, CLAMPED),
    factor("cpu_load", {"cpu_load": UNKNOWN}, 0.0, WORST),
    factor("cpu_load", {"cpu_load": 1.0, "cpus": UNKNOWN}, 0.0, WORST),
    factor("cpu_load", {"cpu_load": 0.0, "cpus": 0.0}, 0.0, NO_ROOM),
    factor("data_disk_usage", {"data_disk_percent": 20.0}, 80.0, "CubeMaster: 100 - percent"),
    factor("data_disk_usage", {"data_disk_percent": 150.0}, 0.0, CLAMPED),
    factor("data_disk_usage", {"data_disk_percent": UNKNOWN}, 0.0, WORST),
    factor("storage_disk_usage", {"storage_disk_percent": 30.0}, 70.0, "CubeMaster: 100 - percent"),
    factor("storage_disk_usage", {"storage_disk_percent": UNKNOWN}, 0.0, WORST),
    factor("sys_disk_usage", {"system_disk_percent": 40.0}, 60.0, "CubeMaster: 100 - percent"),
    factor("sys_disk_usage", {"system_disk_percent": UNKNOWN}, 0.0, WORST),
]

# mvm_num 50, local_create_num 90, cpu_util 70, quota_mem_usage 75, quota_cpu_usage 62.5
MIXED = {**PART, "sandboxes": 1500, "creating_ledger": 10, "cpu_util_percent": 30.0}
WEIGHED = {"factors": {"quota_cpu_usage": 1, "quota_mem_usage": 3, "cpu_util": 0}}

AVERAGE_ROWS = [
    Row(name, args, MIXED, EVEN, expected, source)
    for name in (RTWA, MFWA)
    for args, expected, source in (
        ({}, 71.25, "four default factors of weight 1, (50 + 90 + 70 + 75) / 4"),
        ({"factors": ["mvm_num", "cpu_util"]}, 60.0, f"{MEAN}, (50 + 70) / 2"),
        (WEIGHED, 71.875, f"{MEAN}, (62.5 * 1 + 75 * 3) / 4"),
        ({"factors": {"req_cpu": 1, "cpu_util": 1}}, 60.0, f"{MEAN}, req_ like any other"),
        ({"factors": {"mvm_num": 1e6, "cpu_util": 1e-6}}, 50.0, f"{MEAN}, one outweighs the other"),
        ({"factors": []}, None, NO_FACTOR),
        ({"factors": {}}, None, NO_FACTOR),
        ({"factors": {"cpu_util": 0.0, "mvm_num": 0}}, None, NO_FACTOR),
    )
]

FIT = "CubeMaster: 100 * (1 - (rc + rm) / 2) - penalty * 100 * |rc - rm|, clamped"
LEAST = "Kubernetes' LeastAllocated: 100 * (rc + rm) / 2"
MOST = "Kubernetes' MostAllocated: 100 * (1 - (rc + rm) / 2)"
BALANCED = "Kubernetes' BalancedAllocation as a difference: 100 * (1 - |rc - rm|)"

ALLOCATION_ROWS = [
    Row("resource_fit_score", {}, PART, EVEN, 50.0, FIT),
    Row("resource_fit_score", {}, PART, UNEVEN, 50.0, f"{FIT}, 62.5 - 0.5 * 25"),
    Row("resource_fit_score", {"imbalance_penalty": 0.0}, PART, UNEVEN, 62.5, FIT),
    Row("resource_fit_score", {"imbalance_penalty": 1.0}, PART, UNEVEN, 37.5, FIT),
    Row("resource_fit_score", {"imbalance_penalty": 10.0}, PART, UNEVEN, 0.0, FIT),
    Row("resource_fit_score", {}, PART, EXACT, 100.0, FIT),
    Row("resource_fit_score", {}, OVER, EVEN, 100.0, "what remains is clamped to 0"),
    Row("least_allocated", {}, PART, EVEN, 50.0, LEAST),
    Row("least_allocated", {}, PART, UNEVEN, 37.5, LEAST),
    Row("least_allocated", {}, PART, EXACT, 0.0, LEAST),
    Row("least_allocated", {}, OVER, EVEN, 0.0, CLAMPED),
    Row("least_allocated", {}, NOTHING, EVEN, 0.0, NO_ROOM),
    Row("most_allocated", {}, PART, EVEN, 50.0, MOST),
    Row("most_allocated", {}, PART, UNEVEN, 62.5, MOST),
    Row("most_allocated", {}, PART, EXACT, 100.0, MOST),
    Row("most_allocated", {}, OVER, EVEN, 100.0, CLAMPED),
    Row("balanced_allocation", {}, PART, EVEN, 100.0, BALANCED),
    Row("balanced_allocation", {}, PART, UNEVEN, 75.0, BALANCED),
    Row("balanced_allocation", {}, PART, EXACT, 100.0, BALANCED),
    Row("balanced_allocation", {}, NOTHING, EVEN, 100.0, "nothing remains of either"),
]

ALONE = {"include_local_create": False}
CREATES = "CubeMaster: 100 - 100 * (RealTimeCreateNum + Local) / L, clamped"


def creating(reported: int, ledger: int) -> Mapping[str, int]:
    return {
        "creating_reported": reported,
        "creating_ledger": ledger,
        "creating": max(reported, ledger),
        "create_limit": 100,
    }


CREATE_ROWS = [
    Row("create_concurrency_score", {}, creating(20, 10), {}, 70.0, CREATES),
    Row("create_concurrency_score", ALONE, creating(20, 10), {}, 80.0, CREATES),
    Row("create_concurrency_score", {}, creating(0, 10), {}, 90.0, CREATES),
    Row("create_concurrency_score", ALONE, creating(0, 10), {}, 100.0, CREATES),
    Row("create_concurrency_score", {}, creating(60, 50), {}, 0.0, CREATES),
    Row("create_concurrency_score", {}, creating(NOT_REPORTED, 10), {}, 0.0, WORST),
    Row("create_concurrency_score", ALONE, creating(NOT_REPORTED, 10), {}, 0.0, WORST),
    Row("create_concurrency_score", {}, NOTHING, {}, 0.0, "a limit of 0 leaves nothing"),
    *(
        Row("template_local_pressure", {}, {"template_creating": of}, asked, expected, source)
        for of, asked, expected, source in (
            ({"t": 25}, {"template_id": "t"}, 75.0, "CubeMaster: 100 - 100 * creates of it / L"),
            ({"t": 125}, {"template_id": "t"}, 0.0, CLAMPED),
            ({"u": 9}, {"template_id": "t"}, 100.0, "creates of another template do not count"),
            ({}, {"template_id": "t"}, 100.0, "none in flight"),
            ({"t": 25}, {}, None, "CubeMaster: not applicable without a TemplateID"),
        )
    ),
    Row("template_local_pressure", {}, NOTHING | {"template_creating": {"t": 0}},
        {"template_id": "t"}, 0.0, "a limit of 0 leaves nothing"),
]  # fmt: skip

ONE, TWO = {"images": ("a",)}, {"images": ("a", "b")}
BOTH = {"factors": {"template_id": 3, "image_id": 1}}
IMAGE_ID = {"factors": ["image_id"]}
BY_SIZE = "CubeMaster: 100 * (clamp(S, 23 MiB, 80000 MiB * k) - 23 MiB) / (80000 MiB * k - 23 MiB)"
WITHOUT = "a factor that does not apply takes no part"


def holding(**mib: float) -> Mapping[str, Any]:
    return {"images": {name: int(size * MIB) for name, size in mib.items()}}


# The only node is healthy and holds all it holds, so the spread of each image is 1; 40011.5 MiB lie
# half way between 23 and 80000, 80011.5 MiB half way between 23 and 160000.
IMAGE_ROWS = [
    Row("image_score", {}, {"templates": ("t",)}, {"template_id": "t"}, 100.0, "CubeMaster: held"),
    Row("image_score", {}, {"templates": ("u",)}, {"template_id": "t"}, 0.0, "CubeMaster: not"),
    Row("image_score", {}, {}, {"template_id": "t"}, 0.0, "CubeMaster: not"),
    Row("image_score", {}, {"templates": ("t",)}, {}, None, "no template asked"),
    Row("image_score", {}, holding(a=9999.0), ONE, None, "the default factor is template_id"),
    Row("image_score", IMAGE_ID, holding(a=40_011.5), ONE, 50.0, BY_SIZE),
    Row("image_score", IMAGE_ID, holding(a=23.0), ONE, 0.0, BY_SIZE),
    Row("image_score", IMAGE_ID, holding(a=5.0), ONE, 0.0, f"{BY_SIZE}, the lower clamp"),
    Row("image_score", IMAGE_ID, holding(a=80_000.0), ONE, 100.0, BY_SIZE),
    Row("image_score", IMAGE_ID, holding(a=99_000.0), ONE, 100.0, f"{BY_SIZE}, the upper clamp"),
    Row("image_score", IMAGE_ID, holding(a=40_000.0, b=40_011.5), TWO, 50.0, f"{BY_SIZE}, k = 2"),
    Row("image_score", IMAGE_ID, holding(b=80_011.5), TWO, 50.0, f"{BY_SIZE}, one of two held"),
    Row("image_score", IMAGE_ID, holding(c=40_011.5), ONE, 0.0, "another image"),
    Row("image_score", IMAGE_ID, {}, ONE, 0.0, WORST),
    Row("image_score", IMAGE_ID, holding(a=99.0), {"template_id": "t"}, None, "no images asked"),
    Row("image_score", BOTH, {**holding(a=40_011.5), "templates": ("t",)},
        {**ONE, "template_id": "t"}, 87.5, f"{MEAN}, (100 * 3 + 50 * 1) / 4"),
    Row("image_score", BOTH, {**holding(a=40_011.5), "templates": ("t",)}, ONE, 50.0, WITHOUT),
    Row("image_score", BOTH, {**holding(a=40_011.5), "templates": ("t",)}, {"template_id": "t"},
        100.0, WITHOUT),
    Row("image_score", BOTH, {}, {}, None, WITHOUT),
    Row("image_score", {"factors": []}, {"templates": ("t",)}, {"template_id": "t"}, None,
        NO_FACTOR),
    Row("image_score", {"factors": {"template_id": 0}}, {"templates": ("t",)},
        {"template_id": "t"}, None, "CubeMaster: weight 0 turns template affinity off"),
]  # fmt: skip

TABLE = [*FACTOR_ROWS, *AVERAGE_ROWS, *ALLOCATION_ROWS, *CREATE_ROWS, *IMAGE_ROWS]


def name_of(row: Row) -> str:
    return f"{row.score}: {row.source}"


@pytest.mark.parametrize("row", TABLE, ids=name_of)
def test_a_score_is_what_its_formula_gives(row: Row) -> None:
    fleet = a_snapshot([a_node(**row.node)])

    with np.errstate(all="ignore"):
        answer = ask_scores(
            build_score(row.score, row.args), fleet, a_request(**row.asked), np.array([0])
        )

    found = None if isinstance(answer, NotApplicable) else float(answer[0])
    assert found == (None if row.expected is None else pytest.approx(row.expected, rel=1e-9))


@pytest.mark.parametrize("row", TABLE, ids=name_of)
def test_the_reference_gives_the_same(row: Row) -> None:
    node, request = a_node(**row.node), a_request(**row.asked)
    spread = reference.spread_of_images([node], request)

    found = reference.score_of(row.score, row.args, node, request, spread)

    assert found == (None if row.expected is None else pytest.approx(row.expected, rel=1e-9))


def test_every_score_and_every_factor_has_a_row() -> None:
    listed = {row.score for row in TABLE}
    factors = {str(name) for row in FACTOR_ROWS for name in row.args["factors"]}  # type: ignore[attr-defined]

    assert listed == set(SCORES)
    assert factors == {*FACTORS, *ALIASES}
    assert {"template_id", "image_id"} == set(image_score.FACTORS)


def images_of_a_fleet(*safety: Safety) -> list[float]:
    """Rate nodes that hold 5 GiB, 10 GiB and nothing of the image asked for."""
    sizes = (5 * GIB, 10 * GIB, 0)
    fleet = a_snapshot(
        [
            a_node(f"n{number}", images={"a": size} if size else {}, safety=safety[number])
            for number, size in enumerate(sizes)
        ]
    )
    plugin = build_score("image_score", IMAGE_ID)
    answer = ask_scores(plugin, fleet, a_request(images=("a",)), np.arange(3))
    assert not isinstance(answer, NotApplicable)
    return [float(score) for score in answer]


def test_an_image_counts_by_the_share_of_healthy_nodes_that_hold_it() -> None:
    # Two of three hold it: 5120 MiB * 2/3 and 10240 MiB * 2/3, each less 23, of 79977.
    assert images_of_a_fleet(Safety.OK, Safety.OK, Safety.OK) == pytest.approx(
        [4.239135418, 8.507029104, 0.0]
    )
    # One of two: 5120 / 2 and 10240 / 2.
    assert images_of_a_fleet(Safety.OK, Safety.STALE, Safety.OK) == pytest.approx(
        [3.172161997, 6.373082261, 0.0]
    )
