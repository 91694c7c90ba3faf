"""The columns and how they grow: rows in name order, one array a fact, written in place."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Mapping, MutableMapping, Sequence, Set
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from cubesched.core.derived import Derived
from cubesched.core.snapshot import (
    UNKNOWN,
    Bools,
    Codes,
    Ints,
    Safety,
    Snapshot,
    Taint,
)
from cubesched.fleet.cells import Cells
from cubesched.fleet.images import Images
from cubesched.fleet.nodes import NodeRecord
from cubesched.fleet.reported import Reported
from cubesched.fleet.shown import Shown

_LOG = logging.getLogger(__name__)
MAX_LABEL_KEYS = 1024
"""Label keys that get a column; further ones match nothing (a selector on them keeps no node)."""

_FLOATS = (
    "cpu_util_percent",
    "cpu_load",
    "memory_really_used_bytes",
    "data_disk_percent",
    "storage_disk_percent",
    "system_disk_percent",
)
_FILLED: Mapping[str, tuple[int, type[np.generic]]] = {
    "cpus": (0, np.float64),
    "safety": (Safety.NEVER_REPORTED, np.uint8),
    "creating_reported": (UNKNOWN, np.int64),
    "address": (0, np.int32),
    "snapshot_storage_writable": (UNKNOWN, np.int8),
    "instance_type": (0, np.int32),
    "taint_set": (0, np.int32),
    "own": (0, np.bool_),
}
"""What a new row holds where that is no 64-bit 0."""
_SKIPPED = ("version", "facts_version", "names", "row_of", "instance_type_codes", "taint_sets",
            "labels", "label_values", "templates", "images", "template_creating",
            "max_cpu_util_percent", "disk_usage_max_percent", "derived")  # fmt: skip


def _default(name: str, rows: int) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    if name in _FLOATS:
        return np.full(rows, np.nan)
    value, dtype = _FILLED.get(name, (0, np.int64))
    return np.full(rows, value, dtype)


def _clear(columns: MutableMapping[str, Any], key: str, row: int) -> None:
    """Empty one cell, and drop a column in which nothing is left."""
    column = columns[key]
    if column[row]:
        column[row] = 0
        if not column.any():
            del columns[key]


ARRAYS = tuple(f.name for f in fields(Snapshot) if f.name not in _SKIPPED)


def empty_snapshot() -> Snapshot:
    """Return a snapshot of no nodes."""
    return Snapshot(
        version=0,
        names=[],
        row_of={},
        instance_type_codes={"": 0},
        taint_sets=[()],
        labels={},
        label_values={},
        templates={},
        images={},
        template_creating={},
        max_cpu_util_percent=80.0,
        disk_usage_max_percent=80.0,
        **{name: _default(name, 0) for name in ARRAYS},  # type: ignore[arg-type]
    )


@dataclass(slots=True)
class Columns:
    """Owns the snapshot's arrays and the reported ones beside them."""

    snapshot: Snapshot = field(default_factory=empty_snapshot)
    reported: Reported = field(default_factory=lambda: Reported.empty(0))
    shown: Shown = field(default_factory=lambda: Shown.empty(0))
    names: list[str] = field(default_factory=list)
    row_of: dict[str, int] = field(default_factory=dict)
    labels: dict[str, Codes] = field(default_factory=dict)
    label_values: dict[str, int] = field(default_factory=dict)
    templates: dict[str, Bools] = field(default_factory=dict)
    template_creating: dict[str, Ints] = field(default_factory=dict)
    images: Images = field(init=False)
    types: dict[str, int] = field(default_factory=lambda: {"": 0})
    taint_sets: list[tuple[Taint, ...]] = field(default_factory=lambda: [()])
    cells: Cells = field(init=False)
    _taint_codes: dict[tuple[Taint, ...], int] = field(default_factory=lambda: {(): 0})
    _creating_totals: dict[str, int] = field(default_factory=dict)
    """Sum of each column of `template_creating`, so that an empty one is dropped at once."""

    def __post_init__(self) -> None:
        """Let the snapshot see the mappings that grow here."""
        view = self.snapshot
        view.names, view.row_of = self.names, self.row_of
        view.labels, view.label_values = self.labels, self.label_values
        view.templates, view.template_creating = self.templates, self.template_creating
        self.images = view.images = Images(self.row_of)
        view.instance_type_codes, view.taint_sets = self.types, self.taint_sets
        self.cells = Cells(view, self.reported)

    def touch(self) -> None:
        """Count a new version: something that a decision reads has changed."""
        self.snapshot.version += 1

    def touch_facts(self) -> None:
        """Count a new version of what the nodes are."""
        self.snapshot.facts_version += 1
        self.touch()

    def insert(self, names: Sequence[str]) -> None:
        """Add rows of defaults for `names` (not yet there), keeping name order."""
        fresh = sorted(names)
        at = np.array([bisect_left(self.names, name) for name in fresh], np.int64)
        new: dict[int, object] = {
            id(holder): type(holder).empty(len(fresh))
            for holder in (self.reported, self.snapshot.derived, self.shown)
        }
        for holder, column in self._columns():
            values = getattr(holder, column)
            if holder is self.snapshot:
                filler = _default(column, len(fresh))
            else:
                filler = getattr(new[id(holder)], column)
            setattr(holder, column, np.insert(values, at, filler))
        for mapping in (self.labels, self.templates, self.template_creating):
            for key, values in mapping.items():
                mapping[key] = np.insert(values, at, 0)
        self._rename(sorted([*self.names, *fresh]))

    def remove(self, names: Sequence[str]) -> None:
        """Delete the rows of `names`."""
        at = np.array([self.row_of[name] for name in names], np.int64)
        for holder, column in self._columns():
            setattr(holder, column, np.delete(getattr(holder, column), at))
        for template, creates in list(self.template_creating.items()):
            for row in np.flatnonzero(creates[at]).tolist():
                self.count_template(template, int(at[row]), -int(creates[at[row]]))
        for mapping in (self.labels, self.templates, self.template_creating):
            for key, values in list(mapping.items()):
                mapping[key] = np.delete(values, at)
                if not mapping[key].any():
                    del mapping[key]
        self.images.remove(names)
        gone = set(names)
        self._rename([name for name in self.names if name not in gone])

    def fill_facts(self, row: int, record: NodeRecord) -> None:
        """Write a node's labels, type, taints, templates and images into its row."""
        view = self.snapshot
        view.instance_type[row] = self.types.setdefault(record.instance_type, len(self.types))
        view.taint_set[row] = self._taint_code(record.taints)
        view.address[row] = self._label_code(record.address) if record.address else 0
        self.reported.base_safety[row] = record.safety
        self._fill_labels(row, record.labels)
        self._fill_templates(row, record.templates)
        self.images.put(record.name, record.images)

    def count_template(self, template: str, row: int, number: int) -> None:
        """Change the creates in flight of `template` on a row."""
        column = self.template_creating.get(template)
        if column is None:
            column = self.template_creating[template] = np.zeros(len(self.names), np.int64)
        column[row] += number
        total = self._creating_totals[template] = self._creating_totals.get(template, 0) + number
        if not total:
            del self._creating_totals[template], self.template_creating[template]

    def _columns(self) -> list[tuple[object, str]]:
        mine: list[tuple[object, str]] = [(self.snapshot, name) for name in ARRAYS]
        mine += [(self.snapshot.derived, f.name) for f in fields(Derived)]
        mine += [(self.shown, f.name) for f in fields(Shown)]
        return mine + [(self.reported, f.name) for f in fields(Reported)]

    def _rename(self, names: list[str]) -> None:
        self.names[:] = names
        self.row_of.clear()
        self.row_of.update({name: row for row, name in enumerate(names)})
        self.images.rows_changed()
        self.cells = Cells(self.snapshot, self.reported)
        self.touch_facts()

    def _label_code(self, value: str) -> int:
        return self.label_values.setdefault(value, len(self.label_values) + 1)

    def _fill_labels(self, row: int, labels: Mapping[str, str]) -> None:
        for key in self.labels.keys() - labels.keys():
            _clear(self.labels, key, row)
        for key, value in labels.items():
            if key not in self.labels:
                if len(self.labels) >= MAX_LABEL_KEYS:
                    _LOG.warning("label %r has no column: %d keys are in use", key, MAX_LABEL_KEYS)
                    continue
                self.labels[key] = np.zeros(len(self.names), np.int32)
            self.labels[key][row] = self._label_code(value)

    def _fill_templates(self, row: int, templates: Set[str]) -> None:
        for template in self.templates.keys() - templates:
            _clear(self.templates, template, row)
        for template in templates:
            if template not in self.templates:
                self.templates[template] = np.zeros(len(self.names), np.bool_)
            self.templates[template][row] = True

    def _taint_code(self, taints: tuple[Taint, ...]) -> int:
        code = self._taint_codes.get(taints)
        if code is None:
            code = self._taint_codes[taints] = len(self.taint_sets)
            self.taint_sets.append(taints)
        return code
