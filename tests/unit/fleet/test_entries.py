"""Reading one stored request: exact, and honest about what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.fleet.objects import (
    GIB,
    a_request_dict,
    a_request_object,
    a_reservation,
    as_json,
)

from cubesched.fleet.entries import InvalidSpec, read_entry
from cubesched.fleet.wishes import NO_WISHES, Wishes


def test_a_request_that_was_never_touched_is_pending() -> None:
    entry = read_entry(a_request_object("r1", version=7, labels={"workload": "burst"}))

    assert (entry.key, entry.uid, entry.version, entry.phase) == (
        "default/r1",
        "uid-r1",
        7,
        "Pending",
    )
    assert (entry.node, entry.reservation_id, entry.replica, entry.unreadable) == ("", "", "", "")
    assert entry.labels == {"workload": "burst"}


def test_what_others_keep_in_the_status_is_not_lost() -> None:
    entry = read_entry(a_request_object(phase="Bound", node="n1", aFieldOfNextYear={"x": [1]}))

    assert b"aFieldOfNextYear" in entry.status_raw


@pytest.mark.parametrize(
    ("cpu", "millis"),
    [
        ("0.57", 570),
        ("4.35", 4350),
        ("2.3", 2300),
        ("1.1", 1100),
        ("100u", 1),
        (2, 2000),
        ("1e3", 1_000_000),
    ],
)
def test_cpu_is_read_exactly_and_rounded_up(cpu: Any, millis: int) -> None:
    entry = read_entry(a_request_object(cpu=cpu))

    assert entry.request(attempt=0, refused_nodes=()).cpu_millis == millis


@pytest.mark.parametrize(
    ("memory", "size"),
    [("1.5Gi", GIB * 3 // 2), ("9007199254740993", (1 << 53) + 1), ("1", 1), ("100m", 1)],
)
def test_memory_is_read_exactly_and_rounded_up(memory: str, size: int) -> None:
    entry = read_entry(a_request_object(memory=memory))

    assert entry.request(attempt=0, refused_nodes=()).memory_bytes == size


@pytest.mark.parametrize("cpu", ["", "lots", "-1", "0", "NaN", "1 ", "9" * 30, 0, -1, 0.5])
def test_a_size_that_is_none_is_refused_by_its_field(cpu: Any) -> None:
    entry = read_entry(a_request_object(cpu=cpu))

    assert entry.unreadable == ""
    with pytest.raises(InvalidSpec, match=r"spec\.resources\.cpu: "):
        entry.request(attempt=0, refused_nodes=())


@pytest.mark.parametrize("spec", [None, [], "x", {"resources": {"cpu": "1"}}, {"resources": 7}])
def test_a_spec_that_is_none_is_refused_and_keeps_its_other_answers(spec: Any) -> None:
    entry = read_entry(as_json({**a_request_dict(), "spec": spec}))

    with pytest.raises(InvalidSpec, match=r"^spec: "):
        entry.request(attempt=0, refused_nodes=())
    assert (entry.priority(), entry.template_id) == (0, "")


def test_a_request_without_any_spec_is_refused() -> None:
    raw = a_request_dict()
    del raw["spec"]

    with pytest.raises(InvalidSpec):
        read_entry(as_json(raw)).request(attempt=0, refused_nodes=())


def test_the_pipeline_sees_the_whole_spec() -> None:
    spec = {
        "instanceType": "gpu",
        "priority": 5,
        "allowNonLocalTemplate": True,
        "templateNodeScope": ["n1"],
        "nodeSelector": {"b": "2", "a": "1"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "aFieldOfNextYear": {},
    }
    entry = read_entry(a_request_object(template="t1", spec=spec))

    request = entry.request(attempt=3, refused_nodes=("n9",))

    assert (request.instance_type, request.template_id, request.priority) == ("gpu", "t1", 5)
    assert (request.template_node_scope, request.allow_non_local_template) == (("n1",), True)
    assert request.node_selector == (("a", "1"), ("b", "2"))
    assert [(t.key, t.operator, t.effect) for t in request.tolerations] == [("k", "Exists", "")]
    assert (request.attempt, request.refused_nodes) == (3, ("n9",))
    assert entry.template_id == "t1"


def test_an_object_that_is_no_object_is_unreadable_and_names_no_node() -> None:
    entry = read_entry(b"[]")

    assert entry.unreadable
    assert entry.node == ""
    assert entry.phase == "Unreadable"


def test_the_node_uid_is_that_of_the_reservation() -> None:
    entry = read_entry(a_request_object(phase="Bound", node="n1", reservation={"nodeUID": "u1"}))

    assert (entry.node_uid, entry.reservation_id, entry.replica) == ("u1", "id-1", "replica-a")


@pytest.mark.parametrize("field", ["cpuMillis", "memoryBytes", "diskBytes"])
def test_a_reservation_of_negative_weight_makes_its_node_full(field: str) -> None:
    entry = read_entry(a_request_object(phase="Bound", node="n1", reservation={field: -1}))

    assert field in entry.unreadable
    assert entry.node == "n1"


PAUSED = {"cpuMillis": 250, "memoryBytes": GIB // 4}


@pytest.mark.parametrize(
    ("phase", "cpu_millis"),
    [("Paused", 250), ("Evicting", 250), ("Reserved", 1000), ("Bound", 1000), ("Running", 1000)],
)
def test_only_a_paused_one_counts_what_its_agent_stamped(phase: str, cpu_millis: int) -> None:
    entry = read_entry(a_request_object(phase=phase, node="n1", reservation={"paused": PAUSED}))

    assert entry.weight.cpu_millis == cpu_millis
    assert entry.full_weight.cpu_millis == 1000


def test_a_paused_one_without_a_stamp_counts_in_full() -> None:
    entry = read_entry(a_request_object(phase="Paused", node="n1"))

    assert entry.weight == entry.full_weight


def test_a_stamp_never_adds_room_and_never_frees_disk() -> None:
    stamp = {"cpuMillis": 5000, "memoryBytes": 0}
    reservation = {"paused": stamp, "diskBytes": 7}
    entry = read_entry(a_request_object(phase="Paused", node="n1", reservation=reservation))

    assert (entry.weight.cpu_millis, entry.weight.memory_bytes) == (1000, 0)
    assert entry.weight.disk_bytes == 7


def test_what_a_client_wishes_is_read_from_its_spec() -> None:
    spec = {
        "paused": True,
        "schedulingGates": [{"name": "acme.io/quota"}],
        "shutdownTime": "1970-01-01T00:01:00Z",
        "ttlSecondsAfterFinished": 0,
    }
    wishes = read_entry(a_request_object(spec=spec)).wishes

    assert wishes == Wishes(
        is_paused=True, gates=("acme.io/quota",), shutdown_seconds=60.0, ttl_seconds=0
    )
    assert read_entry(a_request_object()).wishes is NO_WISHES


def test_images_are_read_once_each_in_their_order() -> None:
    entry = read_entry(a_request_object(spec={"images": ["b", "a", "b"]}))

    assert entry.images == ("b", "a")
    assert entry.request(attempt=0, refused_nodes=()).images == ("b", "a")
    assert read_entry(a_request_object(spec={"images": 7})).images == ()


def test_a_reservation_can_resume_no_sandbox_of_another_request() -> None:
    reservation = a_reservation(id="r" * 16, resume="sbr-another-uid.0123456789abcdef")

    entry = read_entry(
        a_request_object(uid="mine", phase="Bound", node="n1", reservation=reservation)
    )

    assert entry.sandbox == "sbr-mine.rrrrrrrrrrrrrrrr"
