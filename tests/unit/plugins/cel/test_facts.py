"""What each fact of a node and a request is, and in which unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.builders import UNKNOWN, a_node, a_request, a_snapshot
from tests.unit.plugins.cel.asking import scores, verdicts
from tests.unit.plugins.cel.oracle import facts_of, our_values, request_facts

from cubesched.core.snapshot import Safety
from cubesched.plugins.cel.celtypes import BOOL, DOUBLE, INT, LABELS
from cubesched.plugins.cel.facts import NODE_FACTS, REQUEST_FACTS
from cubesched.plugins.cel.program import compile_expression

MIB = 1 << 20
FACTS: dict[str, Any] = {
    "address": "10.0.0.7",
    "labels": {"topology.kubernetes.io/zone": "z1", "k": "v"},
    "instance_type": "gpu",
    "templates": ("t1",),
    "snapshot_storage_writable": 0,
    "cpu_util_percent": 55.5,
    "cpu_load": 3.25,
    "cpus": 7.9,
    "cpu_limit_millis": 15_800,
    "cpu_used_millis": 2_500,
    "memory_capacity_bytes": 10 * MIB + 5,
    "memory_really_used_bytes": 3.0 * MIB + 1,
    "memory_limit_bytes": 20 * MIB - 1,
    "memory_used_bytes": 4 * MIB + 1,
    "creating": 5,
    "creating_own": 2,
    "sandboxes": 11,
    "data_disk_percent": 1.5,
    "storage_disk_percent": 2.5,
    "system_disk_percent": 3.5,
}
EXPECTED: dict[str, object] = {
    "id": "n", "ip": "10.0.0.7", "zone": "z1", "instance_type": "gpu", "healthy": True,
    "template_local": True, "snapshot_storage_writable": False, "cpu_util": 55.5, "cpu_load": 3.25,
    "cpu_total": 7, "quota_cpu": 15_800, "allocated_cpu": 2_500, "mem_total_mb": 10,
    "mem_usage_mb": 4, "quota_mem_mb": 19, "allocated_mem_mb": 5, "creating": 5,
    "local_creating": 2, "mvm_num": 11, "data_disk_usage": 1.5, "storage_disk_usage": 2.5,
    "system_disk_usage": 3.5,
}  # fmt: skip
METRICS = {
    "cpu_util": "cpu_util_percent",
    "cpu_load": "cpu_load",
    "mem_usage_mb": "memory_really_used_bytes",
    "data_disk_usage": "data_disk_percent",
    "storage_disk_usage": "storage_disk_percent",
    "system_disk_usage": "system_disk_percent",
}


def spelled(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_the_table_of_expected_values_is_complete() -> None:
    assert set(EXPECTED) == {fact.name for fact in NODE_FACTS if fact.type != LABELS}


@pytest.mark.parametrize("name", list(EXPECTED))
def test_a_fact_of_a_node_has_this_value(name: str) -> None:
    fleet = a_snapshot([a_node("n", **FACTS)])

    text = f"node.{name} == {spelled(EXPECTED[name])}"
    assert verdicts(text, fleet, a_request(template_id="t1")) == [True]


@pytest.mark.parametrize(("name", "column"), METRICS.items())
def test_a_metric_that_was_never_reported_is_an_error(name: str, column: str) -> None:
    fleet = a_snapshot([a_node("a", **{column: UNKNOWN}), a_node("b", **{column: 5e6})])

    unknown = f"node.{name} is not known"
    assert verdicts(f"double(node.{name}) > 0.0", fleet) == [unknown, True]
    assert verdicts(f"has(node.{name})", fleet) == [False, True]


def test_storage_that_never_told_whether_it_takes_writes_is_an_error() -> None:
    fleet = a_snapshot([a_node(f"n{told}", snapshot_storage_writable=told) for told in (-1, 0, 1)])
    unknown = "node.snapshot_storage_writable is not known"

    assert verdicts("node.snapshot_storage_writable", fleet) == [unknown, False, True]


def test_healthy_is_what_node_safety_wants() -> None:
    fleet = a_snapshot([a_node(f"n{code}", safety=code) for code in Safety])

    assert verdicts("node.healthy", fleet) == [
        code == Safety.OK for code in sorted(Safety, key=str)
    ]


@pytest.mark.parametrize(("template", "expected"), [("t1", True), ("t2", False), ("", False)])
def test_template_local_is_about_the_request(template: str, expected: bool) -> None:
    fleet = a_snapshot([a_node("n", templates=("t1",))])

    assert verdicts("node.template_local", fleet, a_request(template_id=template)) == [expected]


@pytest.mark.parametrize("fact", [fact for fact in REQUEST_FACTS if fact.type != LABELS])
def test_a_fact_of_the_request_has_this_value(fact: Any) -> None:
    request = a_request(
        instance_type="gpu", template_id="t1", cpu_millis=1500, memory_bytes=7, disk_bytes=9,
        priority=-3,
    )  # fmt: skip
    expected = request_facts(request)[fact.name]

    text = f"request.{fact.name} == {spelled(expected)}"
    assert verdicts(text, a_snapshot([a_node("n")]), request) == [True]


def test_rows_asked_about_are_read_in_their_order() -> None:
    nodes = [
        a_node(f"n{number}", creating=number, labels={"k": str(number)}) for number in range(6)
    ]
    fleet, rows = a_snapshot(nodes), np.array([4, 0, 2])

    for text in ("node.creating", "int(node.labels.k)", "node.id == 'n0' ? 0 : int(node.labels.k)"):
        program = compile_expression(text, (BOOL, INT, DOUBLE))
        assert our_values(program, fleet, a_request(), rows) == [4, 0, 2]


def test_the_oracle_is_told_the_same_facts() -> None:
    node = a_node("n", **FACTS)
    told = facts_of(node, a_request(template_id="t1"))

    assert {name: told[name] for name in EXPECTED} == EXPECTED


def test_a_score_reads_a_column_without_changing_it() -> None:
    fleet = a_snapshot([a_node("a", cpu_util_percent=5.0)])

    scores("node.cpu_util + 1.0", fleet)
    assert scores("node.cpu_util", fleet) == [5.0]
    assert fleet.cpu_util_percent.tolist() == [5.0]
