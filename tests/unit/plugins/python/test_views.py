"""What plugins in Python see of the fleet, a node and the request."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from tests.unit.builders import GIB, UNKNOWN, Growing, NodeFacts, a_node, a_request, a_snapshot

from cubesched.core.snapshot import Safety
from cubesched.plugins.python import Fleet, Node, Request, UnknownFact

ZONE = "topology.kubernetes.io/zone"


def nodes() -> list[NodeFacts]:
    full = a_node(
        "n1",
        labels={ZONE: "a", "gpu": "", "rack": "r1"},
        address="10.0.0.1",
        instance_type="cubebox",
        templates=("t-1",),
        cpu_limit_millis=128_000,
        cpu_used_millis=1_500,
        memory_limit_bytes=64 * GIB,
        memory_used_bytes=3 * GIB + 5,
        memory_really_used_bytes=2.5 * GIB + 1,
        cpus=64.5,
        creating=3,
        creating_own=2,
        sandboxes=7,
        cpu_util_percent=12.5,
        cpu_load=3.5,
        data_disk_percent=1.0,
        storage_disk_percent=2.0,
        system_disk_percent=3.0,
    )
    silent = a_node(
        "n2",
        safety=Safety.STALE,
        snapshot_storage_writable=-1,
        cpu_util_percent=UNKNOWN,
        cpu_load=UNKNOWN,
        memory_really_used_bytes=UNKNOWN,
        data_disk_percent=UNKNOWN,
        storage_disk_percent=UNKNOWN,
        system_disk_percent=UNKNOWN,
    )
    return [full, silent]


def the_fleet(template_id: str = "t-1") -> Fleet:
    return Fleet(a_snapshot(nodes(), version=7), a_request(template_id=template_id))


FACTS: list[tuple[str, list[Any]]] = [
    ("id", ["n1", "n2"]),
    ("ip", ["10.0.0.1", ""]),
    ("zone", ["a", ""]),
    ("instance_type", ["cubebox", ""]),
    ("healthy", [True, False]),
    ("template_local", [True, False]),
    ("snapshot_storage_writable", [True, False]),
    ("cpu_util", [12.5, UNKNOWN]),
    ("cpu_load", [3.5, UNKNOWN]),
    ("data_disk_usage", [1.0, UNKNOWN]),
    ("storage_disk_usage", [2.0, UNKNOWN]),
    ("system_disk_usage", [3.0, UNKNOWN]),
    ("mem_usage_mb", [2561.0, UNKNOWN]),
    ("cpu_total", [64.0, 64.0]),
    ("quota_cpu", [128_000, 64_000]),
    ("allocated_cpu", [1_500, 0]),
    ("mem_total_mb", [131_072, 131_072]),
    ("quota_mem_mb", [65_536, 131_072]),
    ("allocated_mem_mb", [3_073, 0]),
    ("creating", [3, 0]),
    ("local_creating", [2, 0]),
    ("mvm_num", [7, 0]),
]
WHOLE = {"cpu_total", "mem_usage_mb"}
"""Facts that are whole numbers on a node, and doubles in a column."""


@pytest.mark.parametrize(("fact", "expected"), FACTS)
def test_a_column_holds_each_node_in_the_order_of_names(fact: str, expected: list[Any]) -> None:
    column = getattr(the_fleet(), fact)

    np.testing.assert_array_equal(column, np.array(expected, column.dtype))
    with pytest.raises(ValueError, match="read-only"):
        column[0] = column[1]


@pytest.mark.parametrize(("fact", "expected"), FACTS)
def test_a_node_has_plain_values_and_refuses_what_it_never_reported(
    fact: str, expected: list[Any]
) -> None:
    fleet = the_fleet()
    is_known = [value is not UNKNOWN and fact != "snapshot_storage_writable" for value in expected]
    is_known[0] = True

    np.testing.assert_array_equal(fleet.known(fact), is_known)
    for row, value in enumerate(expected):
        node = Node(fleet, row)
        assert node.knows(fact) is is_known[row]
        if is_known[row]:
            assert getattr(node, fact) == value
            assert type(getattr(node, fact)) is (int if fact in WHOLE else type(value))
        else:
            with pytest.raises(UnknownFact, match=f"{fact} of this node is unknown"):
                getattr(node, fact)


def test_the_facts_of_a_node_are_the_columns_of_the_fleet() -> None:
    of_node = {name for name in vars(Node) if not name.startswith("_")}
    own = {"fleet", "row", "knows", "labels"}

    assert of_node - own == {name for name, _ in FACTS}


def test_labels_are_read_by_key() -> None:
    fleet = the_fleet()

    assert fleet.label("rack").tolist() == ["r1", ""]
    assert fleet.label("rack", "none").tolist() == ["r1", "none"]
    assert fleet.label("nowhere", "none").tolist() == ["none", "none"]
    assert fleet.label("gpu", "none").tolist() == ["", "none"]
    assert fleet.label_is("rack", "r1").tolist() == [True, False]
    assert fleet.label_is("rack", "r9").tolist() == [False, False]
    assert fleet.label_is("nowhere", "r1").tolist() == [False, False]
    rack = fleet.label_codes("rack").tolist()
    assert rack[0] != 0
    assert rack[1] == 0
    assert fleet.label_codes("nowhere").tolist() == [0, 0]
    assert fleet.has_label("gpu").tolist() == [True, False]
    assert fleet.has_label("nowhere").tolist() == [False, False]
    assert Node(fleet, 0).labels == {ZONE: "a", "gpu": "", "rack": "r1"}
    assert Node(fleet, 1).labels == {}


def test_no_template_is_held_by_nobody() -> None:
    assert the_fleet("").template_local.tolist() == [False, False]
    assert the_fleet("t-9").template_local.tolist() == [False, False]


def test_texts_are_read_while_the_fleet_adds_to_them() -> None:
    snapshot = a_snapshot(nodes())
    snapshot.label_values = Growing(snapshot.label_values)
    snapshot.instance_type_codes = Growing(snapshot.instance_type_codes)
    there = Fleet(snapshot, a_request())

    assert (there.zone.tolist(), there.instance_type.tolist()) == (["a", ""], ["cubebox", ""])


def test_the_fleet_says_how_many_nodes_and_which_version() -> None:
    assert (len(the_fleet()), the_fleet().version) == (2, 7)


def test_a_request_shows_what_is_to_be_placed_and_cannot_be_changed() -> None:
    asked = a_request(
        instance_type="gpu",
        template_id="t-1",
        cpu_millis=500,
        memory_bytes=GIB,
        disk_bytes=9,
        priority=3,
        labels={"workload": "burst"},
    )
    request = Request.of(asked)

    assert {f.name: getattr(request, f.name) for f in fields(request)} == {
        "instance_type": "gpu",
        "template_id": "t-1",
        "cpu_millis": 500,
        "memory_bytes": GIB,
        "system_disk_size": 9,
        "priority": 3,
        "labels": {"workload": "burst"},
    }
    with pytest.raises(TypeError):
        request.labels["workload"] = "other"  # type: ignore[index]
