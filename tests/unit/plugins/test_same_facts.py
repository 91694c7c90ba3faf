"""Expressions and plugins in Python see the same facts under the same names."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from tests.unit.builders import GIB, NodeFacts, a_node, a_request, a_snapshot

from cubesched.core.pipeline import Judged, WaitingFilter
from cubesched.core.snapshot import Safety
from cubesched.plugins.cel.facts import NODE, REQUEST
from cubesched.plugins.kinds import build_filter
from cubesched.plugins.listing import Listing, Surroundings
from cubesched.plugins.python import Fleet, Node, Request

UNKNOWN = float("nan")
ZONE = "topology.kubernetes.io/zone"
ASKED = a_request(
    template_id="t-1", disk_bytes=5, priority=2, labels={"workload": "burst"}, instance_type="gpu"
)


def nodes() -> list[NodeFacts]:
    return [
        a_node(
            "n1",
            labels={ZONE: "a"},
            address="10.0.0.1",
            instance_type="gpu",
            templates=("t-1",),
            cpus=7.9,
            cpu_limit_millis=9_001,
            cpu_used_millis=17,
            memory_capacity_bytes=GIB + 1,
            memory_limit_bytes=2 * GIB - 1,
            memory_used_bytes=GIB + 1,
            memory_really_used_bytes=0.5 * GIB + 1,
            creating=3,
            creating_own=2,
            sandboxes=7,
            snapshot_storage_writable=0,
        ),
        a_node(
            "n2",
            safety=Safety.UNSCHEDULABLE,
            snapshot_storage_writable=-1,
            cpus=UNKNOWN,
            cpu_util_percent=UNKNOWN,
            cpu_load=UNKNOWN,
            memory_really_used_bytes=UNKNOWN,
            data_disk_percent=UNKNOWN,
            storage_disk_percent=UNKNOWN,
            system_disk_percent=UNKNOWN,
        ),
        a_node("n3", cpu_util_percent=0.1, cpu_load=2.5),
    ]


def asked(expr: str) -> tuple[list[bool], list[bool]]:
    """Return on which nodes an expression is true, and on which it is an error."""
    plugin = build_filter(Listing("it", "expr", expr=expr), Surroundings())
    assert not isinstance(plugin, WaitingFilter)
    answer = plugin.keep(a_snapshot(nodes()), ASKED)
    if isinstance(answer, Judged):
        return answer.keep.tolist(), answer.failed.tolist()
    return [True] * 3 if answer is None else answer.tolist(), [False] * 3


@pytest.mark.parametrize("fact", sorted(NODE.keys() - {"labels"}))
@pytest.mark.parametrize("row", range(3))
def test_a_fact_of_a_node_is_the_same_in_both(fact: str, row: int) -> None:
    node = Node(Fleet(a_snapshot(nodes()), ASKED), row)

    if node.knows(fact):
        kept, failed = asked(f"node.{fact} == {json.dumps(getattr(node, fact))}")
        assert (kept[row], failed[row]) == (True, False)
    else:
        assert asked(f"node.{fact} == node.{fact}")[1][row]


@pytest.mark.parametrize("fact", sorted(REQUEST.keys() - {"labels"}))
def test_a_fact_of_the_request_is_the_same_in_both(fact: str) -> None:
    value = getattr(Request.of(ASKED), fact)

    assert asked(f"request.{fact} == {json.dumps(value)}")[0] == [True] * 3


def test_both_have_the_same_facts() -> None:
    own = {"fleet", "row", "knows"}

    assert {name for name in vars(Node) if not name.startswith("_")} - own == NODE.keys()
    assert {field.name for field in fields(Request)} == REQUEST.keys()
