"""The fleet as plugins in Python see it: read-only columns under stable names.

Names and units are those of `node` in expressions. What a node never reported is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cubesched.core import request as core
from cubesched.core.snapshot import Bools, Codes, Floats, Ints, Safety, Snapshot

Strings = NDArray[np.object_]
"""One `str` a node."""

ZONE = "topology.kubernetes.io/zone"
"""The node label that says which zone it stands in."""
MIB = 20
"""Bits to shift from bytes to MiB."""


class Fleet:
    """All nodes, one row each in name order; every column has `len(fleet)` entries.

    It is one version of the fleet and never changes. Columns are read-only: copy before you write.
    """

    def __init__(self, snapshot: Snapshot, request: core.Request) -> None:
        self._snapshot, self._template = snapshot, request.template_id
        self._lists: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self._snapshot)

    @property
    def version(self) -> int:
        """The fleet's version, which rises with every change."""
        return self._snapshot.version

    def label(self, key: str, default: str = "") -> Strings:
        """Return the value of a label on each node, `default` where it is absent."""
        codes = self._snapshot.labels.get(key)
        if codes is None:
            return _read_only(np.full(len(self), default, np.object_))
        table = self._strings.copy()
        table[0] = default
        return _read_only(table[codes])

    def label_codes(self, key: str) -> Codes:
        """Return a number for the value of a label on each node: equal ones for equal values.

        0 where it is absent. The fast way to group nodes, as with `np.bincount`.
        """
        codes = self._snapshot.labels.get(key)
        return _view(np.zeros(len(self), np.int32) if codes is None else codes)

    def label_is(self, key: str, value: str) -> Bools:
        """Return which nodes have this value of a label; the fast way to compare."""
        codes = self._snapshot.labels.get(key)
        code = self._snapshot.label_values.get(value)
        is_it: Bools = np.zeros(len(self), np.bool_)
        return is_it if codes is None or code is None else np.equal(codes, code, out=is_it)

    def has_label(self, key: str) -> Bools:
        """Return which nodes have a label, whatever its value."""
        codes = self._snapshot.labels.get(key)
        return np.zeros(len(self), np.bool_) if codes is None else codes != 0

    def known(self, fact: str) -> Bools:
        """Return which nodes have reported this fact."""
        if fact == "snapshot_storage_writable":
            return self._snapshot.snapshot_storage_writable >= 0
        column: NDArray[Any] = getattr(self, fact)
        is_known: Bools = np.ones(len(self), np.bool_)
        return ~np.isnan(column) if column.dtype.kind == "f" else is_known

    def labels_of(self, row: int) -> Mapping[str, str]:
        """Return all labels of one node."""
        codes = ((key, column.item(row)) for key, column in self._snapshot.labels.items())
        return MappingProxyType({key: self._strings[code] for key, code in codes if code})

    def knows(self, fact: str, row: int) -> bool:
        """Tell whether one node has reported this fact."""
        if fact != "snapshot_storage_writable":
            return not _is_nan(self.values(fact)[row])
        return self._snapshot.snapshot_storage_writable.item(row) >= 0

    def values(self, fact: str) -> list[Any]:
        """Return a column as plain Python values, converted once: nodes are read one by one."""
        found = self._lists.get(fact)
        if found is None:
            found = self._lists[fact] = getattr(self, fact).tolist()
        return found

    # Strings

    @cached_property
    def id(self) -> Strings:
        """Names of the nodes."""
        return _objects(list(self._snapshot.names))

    @cached_property
    def ip(self) -> Strings:
        """Addresses; empty where a node has none."""
        return _read_only(self._strings[self._snapshot.address])

    @cached_property
    def zone(self) -> Strings:
        """Zones, by the label `topology.kubernetes.io/zone`; empty where it is absent."""
        return self.label(ZONE)

    @cached_property
    def instance_type(self) -> Strings:
        """The type that a node accepts; empty where it accepts every one."""
        codes = self._snapshot.instance_type_codes
        return _read_only(_table(codes)[self._snapshot.instance_type])

    # Yes or no

    @cached_property
    def healthy(self) -> Bools:
        """Ready, heard of lately, and open to new requests."""
        return _read_only(self._snapshot.safety == Safety.OK)

    @cached_property
    def template_local(self) -> Bools:
        """The node holds the request's template; False when it asks for none."""
        held = self._snapshot.templates.get(self._template) if self._template else None
        return _read_only(np.zeros(len(self), np.bool_)) if held is None else _view(held)

    @cached_property
    def snapshot_storage_writable(self) -> Bools:
        """The node can write snapshots; False also where it never said so."""
        return _read_only(self._snapshot.snapshot_storage_writable == 1)

    # Measured; NaN where never reported

    @cached_property
    def cpu_util(self) -> Floats:
        """How busy the cpus are, in percent."""
        return _view(self._snapshot.cpu_util_percent)

    @cached_property
    def cpu_load(self) -> Floats:
        """The load, in cores."""
        return _view(self._snapshot.cpu_load)

    @cached_property
    def data_disk_usage(self) -> Floats:
        """How full the data disk is, in percent."""
        return _view(self._snapshot.data_disk_percent)

    @cached_property
    def storage_disk_usage(self) -> Floats:
        """How full the storage disk is, in percent."""
        return _view(self._snapshot.storage_disk_percent)

    @cached_property
    def system_disk_usage(self) -> Floats:
        """How full the system disk is, in percent."""
        return _view(self._snapshot.system_disk_percent)

    @cached_property
    def mem_usage_mb(self) -> Floats:
        """Memory really used, in MiB, rounded up."""
        return _read_only(np.ceil(self._snapshot.memory_really_used_bytes / (1 << MIB)))

    # Counted

    @cached_property
    def cpu_total(self) -> Floats:
        """Cores of the machine, rounded down."""
        return _read_only(np.floor(self._snapshot.cpus))

    @cached_property
    def quota_cpu(self) -> Ints:
        """Millicores that may be promised: quota x over-commit."""
        return _view(self._snapshot.cpu_limit_millis)

    @cached_property
    def allocated_cpu(self) -> Ints:
        """Millicores that are promised."""
        return _view(self._snapshot.cpu_used_millis)

    @cached_property
    def mem_total_mb(self) -> Ints:
        """Memory of the machine, in MiB."""
        return _read_only(self._snapshot.memory_capacity_bytes >> MIB)

    @cached_property
    def quota_mem_mb(self) -> Ints:
        """Memory that may be promised, in MiB: quota x over-commit."""
        return _read_only(self._snapshot.memory_limit_bytes >> MIB)

    @cached_property
    def allocated_mem_mb(self) -> Ints:
        """Memory that is promised, in MiB, rounded up."""
        return _read_only(-(-self._snapshot.memory_used_bytes >> MIB))

    @cached_property
    def creating(self) -> Ints:
        """Creates in flight, cluster-wide."""
        return _view(self._snapshot.creating)

    @cached_property
    def local_creating(self) -> Ints:
        """Creates in flight that this replica has reserved."""
        return _view(self._snapshot.creating_own)

    @cached_property
    def mvm_num(self) -> Ints:
        """Sandboxes on the node."""
        return _view(self._snapshot.sandboxes)

    @cached_property
    def _strings(self) -> Strings:
        return _table(self._snapshot.label_values)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value  # noqa: PLR0124 - the test for NaN


def _table(codes: Mapping[str, int]) -> Strings:
    """Return the string of each code; empty for 0."""
    known = dict(codes)  # at one blow: the fleet may be adding to it
    table = np.full(max(known.values(), default=0) + 1, "", np.object_)
    table[list(known.values())] = list(known)
    return table


def _objects(texts: list[str]) -> Strings:
    column = np.empty(len(texts), np.object_)
    column[:] = texts
    return _read_only(column)


ArrayT = TypeVar("ArrayT", bound=NDArray[Any])


def _read_only(column: ArrayT) -> ArrayT:
    column.setflags(write=False)
    return column


def _view(column: ArrayT) -> ArrayT:
    """Return a read-only view of a column that may be somebody's own."""
    view = column.view()
    view.setflags(write=False)
    return view
