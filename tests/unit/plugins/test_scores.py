"""Each score on hand-computed nodes.

Sources: the scores' own reference entries; least, most and balanced allocation as in Kubernetes'
NodeResourcesFit and NodeResourcesBalancedAllocation, the others as in CubeMaster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.unit.builders import GIB, UNKNOWN, a_node, a_request, a_snapshot

from cubesched.core.answers import ask_scores
from cubesched.core.pipeline import NotApplicable
from cubesched.core.snapshot import NO_LIMIT
from cubesched.plugins.registry import SCORES, build_score

RTWA = "real_time_weighted_average"
MFWA = "multi_factor_weighted_average"


def score(
    name: str, args: Mapping[str, object], node: Mapping[str, Any], **request_facts: Any
) -> float | None:
    fleet = a_snapshot([a_node(**node)])
    plugin, request = build_score(name, args), a_request(**request_facts)
    with np.errstate(all="ignore"):
        answer = ask_scores(plugin, fleet, request, np.array([0]))
    return None if isinstance(answer, NotApplicable) else float(answer[0])


# A node of 8 cpus and 16 GiB with 3 cpus and 4 GiB used: after placing 1 cpu and 4 GiB there remain
# 4 / 8 = 0.5 of cpu and 8 / 16 = 0.5 of memory; after 1 cpu and 8 GiB 0.5 and 0.25.
NODE = {
    "cpu_limit_millis": 8000,
    "cpu_used_millis": 3000,
    "memory_limit_bytes": 16 * GIB,
    "memory_used_bytes": 4 * GIB,
}
EVEN = {"cpu_millis": 1000, "memory_bytes": 4 * GIB}
UNEVEN = {"cpu_millis": 1000, "memory_bytes": 8 * GIB}
EXACT = {"cpu_millis": 5000, "memory_bytes": 12 * GIB}


@pytest.mark.parametrize(
    ("name", "args", "asked", "expected"),
    [
        ("least_allocated", {}, EVEN, 50.0),
        ("least_allocated", {}, UNEVEN, 37.5),
        ("least_allocated", {}, EXACT, 0.0),
        ("most_allocated", {}, EVEN, 50.0),
        ("most_allocated", {}, UNEVEN, 62.5),
        ("most_allocated", {}, EXACT, 100.0),
        ("balanced_allocation", {}, EVEN, 100.0),
        ("balanced_allocation", {}, UNEVEN, 75.0),
        ("resource_fit_score", {}, EVEN, 50.0),
        ("resource_fit_score", {}, UNEVEN, 50.0),  # 62.5 - 0.5 * 25
        ("resource_fit_score", {"imbalance_penalty": 0}, UNEVEN, 62.5),
        ("resource_fit_score", {"imbalance_penalty": 1}, UNEVEN, 37.5),
        ("resource_fit_score", {"imbalance_penalty": 10}, UNEVEN, 0.0),  # clamped
        ("resource_fit_score", {}, EXACT, 100.0),
    ],
)
def test_allocation_scores_speak_of_what_remains_after_placing(
    name: str, args: Mapping[str, object], asked: dict[str, Any], expected: float
) -> None:
    assert score(name, args, NODE, **asked) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("factor", "node", "expected"),
    [
        ("mvm_num", {"sandboxes": 750}, 75.0),
        ("mvm_num", {"sandboxes": 750, "sandbox_limit": NO_LIMIT}, 100.0),
        ("mvm_num", {"sandboxes": 0, "sandbox_limit": 0}, 0.0),
        ("mvm_num", {"sandboxes": 9, "sandbox_limit": 3}, 0.0),
        ("local_create_num", {"creating_ledger": 30, "creating": 60}, 70.0),
        ("realtime_create_num", {"creating_ledger": 30, "creating": 60}, 40.0),
        ("quota_cpu_usage", NODE, 62.5),
        ("quota_mem_usage", NODE, 75.0),
        ("req_cpu", NODE, 50.0),
        ("req_mem", NODE, 50.0),
        ("cpu_util", {"cpu_util_percent": 35.5}, 64.5),
        ("cpu_usage", {"cpu_util_percent": 35.5}, 64.5),
        ("cpu_util", {"cpu_util_percent": 130.0}, 0.0),
        ("cpu_util", {"cpu_util_percent": UNKNOWN}, 0.0),
        ("mem_usage", {"memory_really_used_bytes": 32.0 * GIB}, 75.0),
        ("mem_usage", {"memory_really_used_bytes": UNKNOWN}, 0.0),
        ("cpu_load", {"cpu_load": 16.0}, 75.0),
        ("cpu_load", {"cpu_load": UNKNOWN}, 0.0),
        ("cpu_load", {"cpu_load": 1.0, "cpus": UNKNOWN}, 0.0),
        ("data_disk_usage", {"data_disk_percent": 20.0}, 80.0),
        ("storage_disk_usage", {"storage_disk_percent": 30.0}, 70.0),
        ("sys_disk_usage", {"system_disk_percent": 40.0}, 60.0),
        ("sys_disk_usage", {"system_disk_percent": UNKNOWN}, 0.0),
    ],
)
def test_one_factor_is_what_is_free_and_unknown_is_the_worst(
    factor: str, node: Mapping[str, Any], expected: float
) -> None:
    value = score(RTWA, {"factors": [factor]}, node, **EVEN)

    assert value == pytest.approx(expected)


def test_factors_are_weighted() -> None:
    node = {**NODE, "cpu_util_percent": 20.0}
    args = {"factors": {"quota_cpu_usage": 1, "quota_mem_usage": 3, "cpu_util": 0}}

    expected = (62.5 * 1 + 75.0 * 3) / 4
    assert score(RTWA, args, node) == pytest.approx(expected)


def test_default_factors_weigh_the_same() -> None:
    node = {**NODE, "sandboxes": 1500, "creating_ledger": 10, "cpu_util_percent": 30.0}

    # (mvm_num 50 + local_create_num 90 + cpu_util 70 + quota_mem_usage 75) / 4
    assert score(RTWA, {}, node) == pytest.approx(71.25)


@pytest.mark.parametrize("factors", [[], {}, {"cpu_util": 0.0, "mvm_num": 0}])
def test_no_factor_left_is_not_applicable(factors: object) -> None:
    assert score(RTWA, {"factors": factors}, {}) is None


@pytest.mark.parametrize(
    ("args", "reported", "ledger", "expected"),
    [
        ({}, 20, 10, 70.0),
        ({"include_local_create": False}, 20, 10, 80.0),
        ({}, 0, 10, 90.0),
        ({"include_local_create": False}, 0, 10, 100.0),
        ({}, 60, 50, 0.0),
        ({}, 0, 0, 100.0),
        ({}, -1, 10, 0.0),
        ({"include_local_create": False}, -1, 10, 0.0),
    ],
)
def test_create_concurrency_counts_what_the_node_reports_and_the_ledger_counts(
    args: Mapping[str, object], reported: int, ledger: int, expected: float
) -> None:
    node = {
        "creating_reported": reported,
        "creating_ledger": ledger,
        "creating": max(reported, ledger),
    }

    assert score("create_concurrency_score", args, node) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("templates", "template", "expected"),
    [(("t",), "t", 100.0), (("other",), "t", 0.0), ((), "t", 0.0), (("t",), "", None)],
)
def test_image_score_is_for_holders_of_the_template(
    templates: tuple[str, ...], template: str, expected: float | None
) -> None:
    assert score("image_score", {}, {"templates": templates}, template_id=template) == expected


@pytest.mark.parametrize("factors", [[], {"template_id": 0}])
def test_image_score_without_factors_is_not_applicable(factors: object) -> None:
    node = {"templates": ("t",)}

    assert score("image_score", {"factors": factors}, node, template_id="t") is None


@pytest.mark.parametrize(
    ("in_flight", "template", "expected"),
    [({"t": 25}, "t", 75.0), ({"t": 125}, "t", 0.0), ({"u": 9}, "t", 100.0), ({}, "t", 100.0),
     ({"t": 25}, "", None)],
)  # fmt: skip
def test_template_pressure_counts_creates_of_the_same_template(
    in_flight: dict[str, int], template: str, expected: float | None
) -> None:
    node = {"template_creating": in_flight}

    assert score("template_local_pressure", {}, node, template_id=template) == expected


@pytest.mark.parametrize("name", list(SCORES))
def test_a_node_over_its_shrunk_quota_still_scores_within_bounds(name: str) -> None:
    node = {
        "cpu_limit_millis": 4000,
        "cpu_used_millis": 8000,
        "memory_limit_bytes": GIB,
        "memory_used_bytes": 3 * GIB,
        "sandboxes": 5000,
        "creating": 500,
        "creating_ledger": 500,
        "cpu_util_percent": 400.0,
        "templates": ("t",),
    }

    value = score(name, {}, node, template_id="t", cpu_millis=0, memory_bytes=0)

    assert value is not None
    assert 0.0 <= value <= 100.0


@pytest.mark.parametrize("name", list(SCORES))
def test_a_node_of_nothing_scores_within_bounds(name: str) -> None:
    node = {
        "cpu_limit_millis": 0,
        "memory_limit_bytes": 0,
        "sandbox_limit": 0,
        "create_limit": 0,
        "cpus": 0.0,
    }

    value = score(name, {}, node, template_id="t", cpu_millis=0, memory_bytes=0)

    assert value is not None
    assert 0.0 <= value <= 100.0
