"""What the operator writes is what a plugin reads, and it is written once a version."""

from __future__ import annotations

import asyncio
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.builders import GIB, Growing, a_node, a_request, a_snapshot

from cubesched.core.request import Request
from cubesched.core.snapshot import Safety, Snapshot, Taint
from cubesched.fleet.columns import Columns
from cubesched.fleet.freezing import Freezer
from cubesched.plugins.cel.facts import NODE
from cubesched.plugins.python import Fleet as PythonFleet
from cubesched.plugins.rpc import plugin_pb2 as pb
from cubesched.plugins.rpc.encoding import Encoded, Encoder
from cubesched.plugins.rpc.fleetview import Facts, Fleet

UNKNOWN = float("nan")
ZONE = "topology.kubernetes.io/zone"
SPOT, OLD = Taint("spot", "", "NoSchedule"), Taint("age", "old", "PreferNoSchedule")
ASKED = a_request(template_id="t-1")
NODES = [
    a_node(
        "n1",
        labels={ZONE: "a", "rack": "", "gpu": "yes"},
        address="10.0.0.1",
        instance_type="gpu",
        templates=("t-1", "t-2"),
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
        taints=(SPOT, OLD),
    ),
    a_node(
        "n3-münchen",
        labels={ZONE: "zürich", "rack": "gpu"},
        cpu_util_percent=0.1,
        cpu_load=2.5,
        taints=(SPOT,),
        templates=("t-1",),
        instance_type="zürich",
    ),
]


def read(encoded: Encoded, request: Request = ASKED) -> Fleet:
    """Return the fleet as a plugin sees it."""
    question = pb.FilterRequest.FromString(encoded.facts.field + encoded.state)
    return Fleet(Facts(question.facts), question.state, request.template_id)


@pytest.fixture
def fleet() -> Snapshot:
    return a_snapshot(NODES, version=17)


def listed(column: Any) -> list[Any]:
    return [repr(value) for value in column.tolist()]


@pytest.mark.parametrize("fact", sorted(NODE.keys() - {"labels"}))
def test_a_fact_is_the_same_in_another_process(fleet: Snapshot, fact: str) -> None:
    here, there = PythonFleet(fleet, ASKED), read(Encoder().encoded(fleet))

    assert listed(getattr(there, fact)) == listed(getattr(here, fact))
    assert listed(there.known(fact)) == listed(here.known(fact))
    with pytest.raises(ValueError, match="read-only"):
        getattr(there, fact)[0] = getattr(there, fact)[1]


def test_labels_are_the_same_in_another_process(fleet: Snapshot) -> None:
    here, there = PythonFleet(fleet, ASKED), read(Encoder().encoded(fleet))

    for key in (ZONE, "rack", "gpu", "unheard-of"):
        assert there.label(key).tolist() == here.label(key).tolist()
        assert there.label(key, "none").tolist() == here.label(key, "none").tolist()
        assert listed(there.label_codes(key) == 0) == listed(here.label_codes(key) == 0)
        assert there.has_label(key).tolist() == here.has_label(key).tolist()
        for value in ("a", "", "yes", "gpu", "zürich", "unheard-of"):
            assert there.label_is(key, value).tolist() == here.label_is(key, value).tolist()
    assert [there.labels_of(row) for row in range(3)] == [node.labels for node in NODES]


def test_a_plugin_in_python_can_move_to_a_server_as_it_is() -> None:
    one_by_one = {"knows", "values"}

    offered = {name for name in vars(PythonFleet) if not name.startswith("_")}
    assert offered - one_by_one <= set(vars(Fleet))


def test_templates_and_taints_are_told(fleet: Snapshot) -> None:
    there = read(Encoder().encoded(fleet))

    assert there.holds("t-1").tolist() == [True, False, True]
    assert there.holds("t-2").tolist() == [True, False, False]
    assert there.holds("t-3").tolist() == [False, False, False]
    assert [there.taints_of(row) for row in range(3)] == [(), (SPOT, OLD), (SPOT,)]
    assert read(Encoder().encoded(fleet), a_request()).template_local.tolist() == [False] * 3
    assert (there.version, len(there)) == (17, 3)


def test_a_fleet_of_no_nodes_can_be_told() -> None:
    there = read(Encoder().encoded(a_snapshot([])))

    assert len(there) == 0
    assert there.id.tolist() == there.zone.tolist() == there.cpu_util.tolist() == []


def test_strings_that_no_node_has_any_more_are_left_out(fleet: Snapshot) -> None:
    grown = copy(fleet)
    grown.label_values = {**fleet.label_values, "gone": len(fleet.label_values) + 1}

    question = pb.FilterRequest.FromString(Encoder().encoded(grown).facts.field)

    assert b"gone" not in question.facts.strings.text
    assert read(Encoder().encoded(grown)).zone.tolist() == ["a", "", "zürich"]


def test_strings_are_read_while_the_fleet_adds_to_them(fleet: Snapshot) -> None:
    growing = copy(fleet)
    growing.label_values = Growing(fleet.label_values)
    growing.instance_type_codes = Growing(fleet.instance_type_codes)

    assert Encoder().encoded(growing).facts.field == Encoder().encoded(fleet).facts.field


def test_text_that_is_no_text_does_not_end_a_call() -> None:
    there = read(Encoder().encoded(a_snapshot([a_node("n1", labels={ZONE: "\ud800x"})])))

    assert there.zone.tolist() == ["?x"]


# Once a version


def test_a_version_is_encoded_once_and_facts_only_when_they_change() -> None:
    columns, encoder = Columns(), Encoder()
    freezer = Freezer(columns)
    columns.insert(["n1", "n2"])
    columns.touch_facts()
    one = encoder.encoded(freezer.frozen(a_request()))
    again = encoder.encoded(freezer.frozen(a_request()))

    columns.snapshot.cpu_used_millis[0] = 500
    columns.touch()
    used = encoder.encoded(freezer.frozen(a_request()))

    columns.insert(["n3"])
    columns.touch_facts()
    grown = encoder.encoded(freezer.frozen(a_request()))

    assert again is one
    assert used.facts is one.facts
    assert used.state != one.state
    assert read(used).allocated_cpu.tolist() == [500, 0]
    assert grown.facts.number > used.facts.number
    assert read(grown).id.tolist() == ["n1", "n2", "n3"]


def test_another_fleet_of_the_same_version_is_not_taken_for_it(fleet: Snapshot) -> None:
    encoder = Encoder()
    other = a_snapshot([replace(NODES[0], name="other")], version=17)

    assert read(encoder.encoded(fleet)).id.tolist() == ["n1", "n2", "n3-münchen"]
    assert read(encoder.encoded(other)).id.tolist() == ["other"]
    assert encoder.encoded(fleet).facts.number != encoder.encoded(other).facts.number


def test_versions_of_decisions_under_way_stay_encoded(fleet: Snapshot) -> None:
    encoder, versions = Encoder(), [fleet]
    for number in range(3):
        later = copy(versions[-1])
        later.version, later.sandboxes = 18 + number, later.sandboxes.copy()
        versions.append(later)
    first = [encoder.encoded(version) for version in versions]

    assert all(encoder.encoded(v) is e for v, e in zip(versions, first, strict=True))


async def test_decisions_side_by_side_have_facts_encoded_once(fleet: Snapshot) -> None:
    encoder = Encoder()

    one, other = await asyncio.gather(encoder.ready(fleet), encoder.ready(copy(fleet)))

    assert one is other
    assert one is encoder.encoded(fleet)
    assert read(one).id.tolist() == ["n1", "n2", "n3-münchen"]


async def test_the_loop_goes_on_while_facts_are_encoded() -> None:
    labels = {f"key-{number}": f"value-{number}" for number in range(40)}
    fleet = a_snapshot([a_node(f"n{i:05}", labels=labels | {"id": f"{i}"}) for i in range(20_000)])
    encoder = Encoder()
    encoding = asyncio.create_task(encoder.ready(fleet))
    turns = 0
    while not encoding.done():
        await asyncio.sleep(0)
        turns += 1

    assert turns > 3
    assert len(read(await encoding)) == 20_000


def test_two_processes_have_two_names() -> None:
    assert Encoder().client != Encoder().client


@pytest.mark.parametrize("nodes", [8, 9, 16])
def test_bits_of_templates_are_by_row(nodes: int) -> None:
    held = [number % 3 == 0 for number in range(nodes)]
    fleet = a_snapshot(
        [a_node(f"n{i:02}", templates=("t-1",) if has else ()) for i, has in enumerate(held)]
    )

    assert np.array_equal(read(Encoder().encoded(fleet)).template_local, held)
