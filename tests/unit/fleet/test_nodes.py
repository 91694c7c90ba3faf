"""Reading one stored node: limits rounded down; one that cannot be read still stands."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from tests.unit.fleet.objects import GIB, a_node_object, as_json

from cubesched.core.scheduler_settings import GuardSettings, Settings
from cubesched.core.snapshot import NO_LIMIT, Safety, Taint
from cubesched.fleet.nodes import memory_reserved_bytes, read_node, scaled


def changed(raw: bytes, **parts: Any) -> bytes:
    return as_json({**json.loads(raw), **parts})


def test_capacity_is_the_limit_where_no_quota_is_set() -> None:
    record = read_node(a_node_object(cpu="7.9999", memory="1.5Gi"))

    assert (record.cpu_millis, record.memory_bytes) == (7999, GIB * 3 // 2)
    assert (record.disk_bytes, record.sandboxes, record.creates) == (NO_LIMIT, None, None)
    assert record.safety is Safety.OK


def test_a_quota_is_the_limit_and_capacity_stays_what_the_machine_has() -> None:
    quota = {
        "cpu": "4",
        "memory": "2Gi",
        "systemDisk": "1Gi",
        "sandboxes": 5,
        "createConcurrency": 2,
    }
    record = read_node(a_node_object(spec={"quota": quota}))

    assert (record.cpu_millis, record.memory_bytes, record.disk_bytes) == (4000, 2 * GIB, GIB)
    assert (record.sandboxes, record.creates) == (5, 2)
    assert (record.capacity_cpu_millis, record.capacity_memory_bytes) == (8000, 16 * GIB)


def test_taints_templates_labels_and_type_are_read() -> None:
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    record = read_node(
        a_node_object(
            labels={"zone": "a"}, templates=["t1"], spec={"taints": taints, "instanceType": "gpu"}
        )
    )

    assert record.taints == (Taint("k", "v", "NoSchedule"),)
    assert (record.templates, record.labels, record.instance_type) == (
        frozenset({"t1"}),
        {"zone": "a"},
        "gpu",
    )


@pytest.mark.parametrize(
    ("ready", "unschedulable", "safety"),
    [
        (True, False, Safety.OK),
        (False, False, Safety.NOT_READY),
        (True, True, Safety.UNSCHEDULABLE),
        (False, True, Safety.NOT_READY),
    ],
)
def test_readiness_comes_before_unschedulable(
    ready: bool, unschedulable: bool, safety: Safety
) -> None:
    raw = a_node_object(ready=ready, spec={"unschedulable": unschedulable})

    assert read_node(raw).safety is safety


def test_a_node_that_says_nothing_is_not_ready() -> None:
    assert read_node(changed(a_node_object(), status={})).safety is Safety.NOT_READY


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"spec": {"capacity": {"cpu": "8", "memory": "lots"}}}, "spec.capacity.memory: "),
        ({"spec": {"capacity": {"cpu": "8"}}}, "spec.capacity.memory: missing"),
        ({"spec": None}, ""),
        ({"spec": {}}, "capacity"),
        *(
            ({"spec": {"capacity": {"cpu": "8", "memory": "1Gi"}, "quota": {limit: number}}}, limit)
            for limit in ("sandboxes", "createConcurrency")
            for number in (-1, 1 << 63, 10**19, 1e300)
        ),
        ({"status": {"conditions": "all fine"}}, "conditions"),
        ({"status": {"templates": 7}}, "templates"),
        ({"status": {"images": [{"name": "a", "sizeBytes": -1}]}}, "sizeBytes"),
        ({"status": {"images": [{"name": "a", "sizeBytes": 1 << 61}]}}, "sizeBytes"),
        ({"status": {"images": [{"name": "a"}]}}, "sizeBytes"),
        ({"metadata": {"name": "n1", "uid": "uid-n1", "labels": {"a": 1}}}, "labels"),
    ],
)
def test_a_node_that_cannot_be_read_stands_and_takes_nothing(
    parts: dict[str, Any], problem: str
) -> None:
    record = read_node(changed(a_node_object(), **parts))

    assert (record.name, record.uid) == ("n1", "uid-n1")
    assert record.safety is Safety.INVALID_SPEC
    assert (record.cpu_millis, record.memory_bytes) == (0, 0)
    assert problem in record.problem


def test_an_object_without_a_name_is_no_node() -> None:
    with pytest.raises(msgspec.MsgspecError):
        read_node(b'{"metadata": {}}')


def test_overcommit_multiplies_exactly_and_rounds_down() -> None:
    assert scaled(1001, Fraction("1.5")) == 1501
    assert scaled((1 << 53) + 1, Fraction(1)) == (1 << 53) + 1


def test_a_limit_beyond_all_numbers_is_no_limit() -> None:
    assert scaled((1 << 63) - 1, Fraction(16)) == NO_LIMIT


def test_ten_percent_of_a_small_machine_and_ten_gibibytes_of_a_big_one_are_kept_free() -> None:
    small = read_node(a_node_object(memory="10Gi"))
    big = read_node(a_node_object(memory="1Ti"))

    assert memory_reserved_bytes(small, Settings()) == GIB
    assert memory_reserved_bytes(big, Settings()) == 10 * GIB
    configured = Settings(guards=GuardSettings(memory_reserved_bytes=0))
    assert memory_reserved_bytes(big, configured) == 0


@pytest.mark.parametrize(
    ("addresses", "found"),
    [
        ([], ""),
        (
            [("Hostname", "n1.example"), ("InternalIP", "10.0.0.1"), ("InternalIP", "::1")],
            "10.0.0.1",
        ),
        ([("Hostname", "n1.example"), ("ExternalIP", "203.0.113.9")], "n1.example"),
    ],
)
def test_the_address_is_the_first_internal_one_else_the_first(
    addresses: list[tuple[str, str]], found: str
) -> None:
    assert read_node(a_node_object(addresses=addresses)).address == found
