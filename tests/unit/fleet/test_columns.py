"""The columns: rows in name order, every array in step, nothing kept that no node has."""

from __future__ import annotations

import logging
from dataclasses import fields

import numpy as np
import pytest

from cubesched.core.snapshot import Safety, Taint
from cubesched.fleet import columns as columns_module
from cubesched.fleet.columns import ARRAYS, Columns
from cubesched.fleet.nodes import NodeRecord
from cubesched.fleet.reported import Reported


def a_record(name: str = "n1", **facts: object) -> NodeRecord:
    defaults = {
        "uid": f"uid-{name}",
        "labels": {},
        "instance_type": "",
        "taints": (),
        "templates": frozenset(),
        "safety": Safety.OK,
    }
    return NodeRecord(name=name, **{**defaults, **facts})  # type: ignore[arg-type]


def some_columns(*names: str) -> Columns:
    columns = Columns()
    columns.insert(names)
    return columns


def lengths(columns: Columns) -> set[int]:
    view = columns.snapshot
    arrays = [getattr(view, name) for name in ARRAYS]
    arrays += [getattr(columns.reported, field.name) for field in fields(Reported)]
    arrays += [*view.labels.values(), *view.templates.values(), *view.template_creating.values()]
    return {len(array) for array in arrays} | {len(view.names), len(view.row_of)}


def test_rows_stand_in_name_order_whatever_the_order_of_arrival() -> None:
    columns = some_columns("n5", "n1")
    columns.insert(["n9", "n3", "n0"])

    assert list(columns.snapshot.names) == ["n0", "n1", "n3", "n5", "n9"]
    assert columns.snapshot.row_of == {"n0": 0, "n1": 1, "n3": 2, "n5": 3, "n9": 4}
    assert lengths(columns) == {5}


def test_every_array_keeps_its_nodes_values_through_insert_and_remove() -> None:
    columns = some_columns("n2", "n4")
    columns.fill_facts(1, a_record("n4", labels={"zone": "a"}, templates=frozenset({"t1"})))
    columns.count_template("t1", 1, 3)
    for array in ARRAYS:
        getattr(columns.snapshot, array)[1] = 1
    for field in fields(Reported):
        getattr(columns.reported, field.name)[1] = 1

    columns.insert(["n1", "n3", "n5"])
    columns.remove(["n2", "n5"])

    view, row = columns.snapshot, columns.row_of["n4"]
    assert lengths(columns) == {3}
    assert {int(getattr(view, array)[row]) for array in ARRAYS} == {1}
    assert {int(getattr(columns.reported, f.name)[row]) for f in fields(Reported)} == {1}
    assert view.labels["zone"].tolist() == [0, 0, view.label_values["a"]]
    assert view.templates["t1"].tolist() == [False, False, True]
    assert view.template_creating["t1"].tolist() == [0, 0, 3]


def test_a_new_row_knows_nothing_and_takes_nothing() -> None:
    view = some_columns("n1").snapshot

    assert view.safety[0] == Safety.NEVER_REPORTED
    assert view.cpu_limit_millis[0] == 0
    assert np.isnan(view.cpu_util_percent[0])


def test_rows_of_another_time_are_another_version() -> None:
    columns = some_columns("n1")
    version = columns.snapshot.version

    columns.insert(["n2"])
    columns.remove(["n1"])

    assert columns.snapshot.version > version + 1


def test_labels_follow_their_node() -> None:
    columns = some_columns("n1", "n2")
    columns.fill_facts(0, a_record("n1", labels={"zone": "a", "rack": "7"}))
    columns.fill_facts(1, a_record("n2", labels={"zone": "b"}))
    columns.fill_facts(0, a_record("n1", labels={"zone": "b"}))

    view = columns.snapshot
    assert set(view.labels) == {"zone"}, "nobody has a rack any more"
    assert view.labels["zone"].tolist() == [view.label_values["b"]] * 2


def test_a_label_with_an_empty_value_is_not_an_absent_one() -> None:
    columns = some_columns("n1")
    columns.fill_facts(0, a_record(labels={"gpu": ""}))

    assert columns.snapshot.labels["gpu"][0] > 0


def test_label_keys_are_bounded_and_a_freed_one_can_be_used_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(columns_module, "MAX_LABEL_KEYS", 1)
    columns = some_columns("n1")

    with caplog.at_level(logging.WARNING):
        columns.fill_facts(0, a_record(labels={"a": "1", "b": "2"}))
    assert len(columns.snapshot.labels) == 1
    assert "1 keys are in use" in caplog.text

    columns.fill_facts(0, a_record(labels={"b": "2"}))
    assert set(columns.snapshot.labels) == {"b"}


def test_templates_that_no_node_holds_leave_no_column() -> None:
    columns = some_columns("n1", "n2")
    columns.fill_facts(0, a_record("n1", templates=frozenset({"t1", "t2"})))
    columns.fill_facts(1, a_record("n2", templates=frozenset({"t2"})))

    columns.fill_facts(0, a_record("n1"))
    assert set(columns.snapshot.templates) == {"t2"}
    columns.remove(["n2"])
    assert columns.snapshot.templates == {}


def test_equal_taints_share_a_code_and_none_is_code_0() -> None:
    columns = some_columns("n1", "n2", "n3")
    taints = (Taint("dedicated", "a", "NoSchedule"),)
    columns.fill_facts(0, a_record("n1", taints=taints))
    columns.fill_facts(1, a_record("n2", taints=taints))
    columns.fill_facts(2, a_record("n3"))

    view = columns.snapshot
    assert view.taint_set.tolist() == [1, 1, 0]
    assert view.taint_sets[1] == taints


def test_instance_types_are_coded_and_none_accepts_every_type() -> None:
    columns = some_columns("n1", "n2")
    columns.fill_facts(0, a_record("n1", instance_type="gpu"))
    columns.fill_facts(1, a_record("n2"))

    view = columns.snapshot
    assert view.instance_type.tolist() == [view.instance_type_codes["gpu"], 0]


def test_creates_of_a_template_come_and_go_without_a_trace() -> None:
    columns = some_columns("n1", "n2")
    for row, number in ((0, 1), (1, 1), (0, 1), (0, -2)):
        columns.count_template("t1", row, number)
    assert columns.snapshot.template_creating["t1"].tolist() == [0, 1]

    columns.count_template("t1", 1, -1)
    assert columns.snapshot.template_creating == {}


def test_a_removed_node_takes_its_creates_with_it() -> None:
    columns = some_columns("n1", "n2")
    columns.count_template("t1", 0, 2)
    columns.count_template("t2", 0, 1)
    columns.count_template("t2", 1, 1)

    columns.remove(["n1"])
    assert {t: c.tolist() for t, c in columns.snapshot.template_creating.items()} == {"t2": [1]}
    columns.count_template("t2", 0, -1)
    assert columns.snapshot.template_creating == {}
