from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from tests.unit.builders import a_request
from tests.unit.fleet.objects import a_node_object, a_request_dict, as_json, reports

from cubesched.core.derived import Derived
from cubesched.core.snapshot import Snapshot
from cubesched.fleet.assumptions import Assumption
from cubesched.fleet.columns import ARRAYS
from cubesched.fleet.entries import Weight
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.freezing import FACTS

REQUEST = a_request(template_id="t-1", images=("a", "gone"))

MINE, OTHERS = {"replica": "me"}, {"replica": "other"}


def a_fleet(*names: str) -> Fleet:
    fleet = Fleet(monotonic=lambda: 100.0, wall=lambda: 1_800_000_000.0)
    fleet.share(replica="me", members=("me",))
    fleet.ledger.reset()
    fleet.ledger.complete(1)
    fleet.reset()
    for name in names:
        fleet.seen(
            a_node_object(
                name,
                labels={"zone": f"z-{name}"},
                templates=("t-1",),
                images={"a": 5},
                addresses=[("InternalIP", f"10.0.0.{name[1:]}")],
            )
        )
    fleet.complete(2)
    return fleet


def columns_of(fleet: Snapshot) -> dict[str, object]:
    own = {name: getattr(fleet, name).tobytes() for name in ARRAYS}
    derived = {f.name: getattr(fleet.derived, f.name).tobytes() for f in fields(Derived)}
    labels = {key: column.tolist() for key, column in fleet.labels.items()}
    templates = {key: column.tolist() for key, column in fleet.templates.items()}
    return {**own, **derived, "labels": labels, "templates": templates, "names": list(fleet.names)}


def assume(fleet: Fleet, uid: str = "u1", node: str = "n1") -> None:
    fleet.assume(uid, Assumption(node, Weight(1000, 1 << 30, 0), "t-1"))


def test_it_equals_the_fleet_and_stays_as_it_was() -> None:
    fleet = a_fleet("n1", "n2")
    frozen = fleet.frozen(REQUEST)
    before = columns_of(frozen)
    assert before == columns_of(fleet.snapshot)

    assume(fleet)
    fleet.event("ADDED", a_node_object("n0"), 5)

    assert columns_of(frozen) == before
    assert columns_of(fleet.frozen(REQUEST)) == columns_of(fleet.snapshot) != before


def test_nobody_can_write_into_it() -> None:
    frozen = a_fleet("n1").frozen(REQUEST)

    for column in (frozen.cpu_used_millis, frozen.labels["zone"], frozen.derived.cpu_room_millis):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_of_images_and_creates_it_has_what_the_request_asks_about() -> None:
    fleet = a_fleet("n1", "n2")
    assume(fleet)

    frozen = fleet.frozen(REQUEST)

    assert {key: column.tolist() for key, column in frozen.images.items()} == {"a": [5, 5]}
    assert {k: c.tolist() for k, c in frozen.template_creating.items()} == {"t-1": [1, 0]}


def test_one_version_is_copied_once_and_facts_only_when_they_change() -> None:
    fleet = a_fleet("n1")
    one, same = fleet.frozen(REQUEST), fleet.frozen(REQUEST)
    assume(fleet)
    later = fleet.frozen(REQUEST)
    fleet.event("MODIFIED", a_node_object("n1", version=9, labels={"zone": "b"}), 9)

    assert one.cpu_used_millis is same.cpu_used_millis
    assert later.cpu_used_millis is not one.cpu_used_millis
    assert all(getattr(later, name) is getattr(one, name) for name in FACTS)
    assert later.labels is one.labels
    assert fleet.frozen(REQUEST).labels is not one.labels


def test_interned_texts_are_shared_so_that_what_is_remembered_of_them_stays() -> None:
    fleet = a_fleet("n1")
    frozen = fleet.frozen(REQUEST)
    labels = {key: column.tolist() for key, column in frozen.labels.items()}
    fleet.event("ADDED", a_node_object("n0", labels={"zone": "new"}), 5)
    later = fleet.frozen(REQUEST)

    assert frozen.label_values is later.label_values is fleet.snapshot.label_values
    assert frozen.instance_type_codes is later.instance_type_codes
    assert {key: column.tolist() for key, column in frozen.labels.items()} == labels


def test_limits_are_facts_that_a_new_config_changes() -> None:
    fleet = a_fleet("n1")
    fleet.frozen(REQUEST)
    guards = replace(fleet.settings.guards, max_sandboxes_per_node=7)

    fleet.configure(replace(fleet.settings, guards=guards))

    assert fleet.frozen(REQUEST).sandbox_limit.tolist() == [7]


def test_addresses_are_known_by_their_interned_text() -> None:
    fleet = a_fleet("n1", "n2")
    frozen = fleet.frozen(REQUEST)

    text_of = {code: text for text, code in frozen.label_values.items()}

    assert [text_of[code] for code in frozen.address.tolist()] == ["10.0.0.1", "10.0.0.2"]


def test_creates_that_this_replica_reserved_are_counted_apart() -> None:
    fleet = a_fleet("n1", "n2")
    assume(fleet)
    assert fleet.snapshot.creating_own.tolist() == [1, 0]
    mine = a_request_dict(
        "r2", version=11, phase="Reserved", node="n2", reservation={"replica": "me"}
    )
    other = a_request_dict(
        "r3", version=12, phase="Bound", node="n2", reservation={"replica": "other"}
    )

    fleet.ledger.event("ADDED", as_json(mine), 11)
    fleet.ledger.event("ADDED", as_json(other), 12)
    assert fleet.snapshot.creating_own.tolist() == [1, 1]

    fleet.release("u1")
    running = a_request_dict(
        "r2", version=13, phase="Running", node="n2", reservation={"replica": "me"}
    )
    fleet.ledger.event("MODIFIED", as_json(running), 13)
    assert fleet.snapshot.creating_own.tolist() == [0, 0]


@pytest.mark.parametrize(("told", "column"), [(None, -1), (False, 0), (True, 1)])
def test_whether_snapshots_can_be_written_is_what_the_node_told(
    told: bool | None, column: int
) -> None:
    fleet = a_fleet("n1")

    fleet.take_reports(reports(5, "n1", node_uid="uid-n1", snapshot_storage_writable=told))

    assert fleet.snapshot.snapshot_storage_writable.tolist() == [column]
    assert fleet.snapshot.snapshot_storage_writable.dtype == np.int8
