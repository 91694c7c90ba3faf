"""The fleet as plugins in other processes see it: read-only NumPy columns under stable names.

Names and units are those of `node` in expressions. What a node never reported is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cubesched.core.snapshot import Bools, Floats, Ints, Taint
from cubesched.plugins.rpc import columns
from cubesched.plugins.rpc import plugin_pb2 as pb

Strings = NDArray[np.object_]
"""One `str` a node."""
ArrayT = TypeVar("ArrayT", bound=NDArray[Any])


class Facts:
    """What nodes are, decoded as far as it is asked for, and shared by many versions."""

    def __init__(self, message: pb.Facts) -> None:
        self.version, self.nodes = message.facts_version, message.nodes
        self.message = message
        self.labels = {label.key: _codes(label.values) for label in message.labels}
        self._templates = {template.id: template.nodes for template in message.templates}

    @cached_property
    def names(self) -> Strings:
        """Names of the nodes."""
        return _texts(self.message.names)

    @cached_property
    def strings(self) -> Strings:
        """The string table."""
        return _texts(self.message.strings)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Where in the string table each text stands, but for that of "none"."""
        return {text: place for place, text in enumerate(self.strings.tolist()) if place}

    @cached_property
    def taint_sets(self) -> tuple[tuple[Taint, ...], ...]:
        """The different combinations of taints."""
        return tuple(
            tuple(Taint(t.key, t.value, t.effect) for t in each.taints)
            for each in self.message.taint_sets
        )

    def holders(self, template: str) -> Bools:
        """Return which nodes store a template."""
        bits = np.frombuffer(self._templates.get(template, b""), np.uint8)
        held = np.unpackbits(bits, count=self.nodes if bits.size else 0, bitorder="little")
        return _read_only(held.astype(np.bool_) if bits.size else np.zeros(self.nodes, np.bool_))


class Fleet:
    """All nodes, one row each in name order; every column has `len(fleet)` entries.

    It is one version of the fleet and never changes. Columns are read-only: copy before you write.
    """

    def __init__(self, facts: Facts, state: pb.State, template: str = "") -> None:
        self._facts, self._state, self._template = facts, state, template

    def __len__(self) -> int:
        """Return the number of nodes."""
        return self._facts.nodes

    @property
    def version(self) -> int:
        """The fleet's version, which rises with every change."""
        return self._state.snapshot_version

    # Labels, templates and taints

    def label(self, key: str, default: str = "") -> Strings:
        """Return the value of a label on each node, `default` where it is absent."""
        codes = self._facts.labels.get(key)
        if codes is None:
            return _read_only(np.full(len(self), default, np.object_))
        table = self._facts.strings.copy()
        table[0] = default
        return _read_only(table[codes])

    def label_codes(self, key: str) -> NDArray[np.uint32]:
        """Return a number for the value of a label on each node: equal ones for equal values.

        0 where it is absent. The fast way to group nodes, as with `np.bincount`.
        """
        codes = self._facts.labels.get(key)
        return _read_only(np.zeros(len(self), columns.CODES)) if codes is None else codes

    def label_is(self, key: str, value: str) -> Bools:
        """Return which nodes have this value of a label; the fast way to compare."""
        codes, place = self._facts.labels.get(key), self._facts.index.get(value)
        if codes is None or place is None:
            return _read_only(np.zeros(len(self), np.bool_))
        return _read_only(codes == place)

    def has_label(self, key: str) -> Bools:
        """Return which nodes have a label, whatever its value."""
        codes = self._facts.labels.get(key)
        return _read_only(np.zeros(len(self), np.bool_) if codes is None else codes != 0)

    def labels_of(self, row: int) -> Mapping[str, str]:
        """Return all labels of one node."""
        found = ((key, codes[row]) for key, codes in self._facts.labels.items())
        return MappingProxyType({key: self._facts.strings[code] for key, code in found if code})

    def holds(self, template: str) -> Bools:
        """Return which nodes store a template."""
        return self._facts.holders(template)

    def taints_of(self, row: int) -> tuple[Taint, ...]:
        """Return the taints of one node."""
        return self._facts.taint_sets[self.taint_set[row]]

    def known(self, fact: str) -> Bools:
        """Return which nodes have reported this fact."""
        if fact == "snapshot_storage_writable":
            return _read_only(self._writable() >= 0)
        column: NDArray[Any] = getattr(self, fact)
        is_double = column.dtype.kind == "f"
        return _read_only(~np.isnan(column) if is_double else np.ones(len(self), np.bool_))

    # Strings

    @cached_property
    def id(self) -> Strings:
        """Names of the nodes."""
        return self._facts.names

    @cached_property
    def ip(self) -> Strings:
        """Addresses; empty where a node has none."""
        return self._text(self._facts.message.ip)

    @cached_property
    def zone(self) -> Strings:
        """Zones, by the label `topology.kubernetes.io/zone`; empty where it is absent."""
        return self._text(self._facts.message.zone)

    @cached_property
    def instance_type(self) -> Strings:
        """The type that a node accepts; empty where it accepts every one."""
        return self._text(self._facts.message.instance_type)

    # Yes or no

    @cached_property
    def healthy(self) -> Bools:
        """Ready, heard of lately, and open to new requests."""
        return _read_only(np.frombuffer(self._state.healthy, columns.FLAGS) != 0)

    @cached_property
    def template_local(self) -> Bools:
        """The node holds the request's template; False when it asks for none."""
        return self._facts.holders(self._template)

    @cached_property
    def snapshot_storage_writable(self) -> Bools:
        """The node can write snapshots; False also where it never said so."""
        return _read_only(self._writable() == 1)

    # Measured; NaN where never reported

    @cached_property
    def cpu_util(self) -> Floats:
        """How busy the cpus are, in percent."""
        return _doubles(self._state.cpu_util)

    @cached_property
    def cpu_load(self) -> Floats:
        """The load, in cores."""
        return _doubles(self._state.cpu_load)

    @cached_property
    def data_disk_usage(self) -> Floats:
        """How full the data disk is, in percent."""
        return _doubles(self._state.data_disk_usage)

    @cached_property
    def storage_disk_usage(self) -> Floats:
        """How full the storage disk is, in percent."""
        return _doubles(self._state.storage_disk_usage)

    @cached_property
    def system_disk_usage(self) -> Floats:
        """How full the system disk is, in percent."""
        return _doubles(self._state.system_disk_usage)

    @cached_property
    def mem_usage_mb(self) -> Floats:
        """Memory really used, in MiB."""
        return _doubles(self._state.mem_usage_mb)

    # Counted

    @cached_property
    def cpu_total(self) -> Floats:
        """Cores of the machine, rounded down."""
        return _doubles(self._facts.message.cpu_total)

    @cached_property
    def quota_cpu(self) -> Ints:
        """Millicores that may be promised: quota x over-commit."""
        return _ints(self._facts.message.quota_cpu)

    @cached_property
    def allocated_cpu(self) -> Ints:
        """Millicores that are promised."""
        return _ints(self._state.allocated_cpu)

    @cached_property
    def mem_total_mb(self) -> Ints:
        """Memory of the machine, in MiB."""
        return _ints(self._facts.message.mem_total_mb)

    @cached_property
    def quota_mem_mb(self) -> Ints:
        """Memory that may be promised, in MiB: quota x over-commit."""
        return _ints(self._facts.message.quota_mem_mb)

    @cached_property
    def allocated_mem_mb(self) -> Ints:
        """Memory that is promised, in MiB."""
        return _ints(self._state.allocated_mem_mb)

    @cached_property
    def creating(self) -> Ints:
        """Creates in flight, cluster-wide."""
        return _ints(self._state.creating)

    @cached_property
    def local_creating(self) -> Ints:
        """Creates in flight that the asking replica has reserved."""
        return _ints(self._state.local_creating)

    @cached_property
    def mvm_num(self) -> Ints:
        """Sandboxes on the node."""
        return _ints(self._state.mvm_num)

    @cached_property
    def taint_set(self) -> NDArray[np.uint32]:
        """Equal numbers, equal taints; 0 = none."""
        return _codes(self._facts.message.taint_set)

    def _text(self, codes: bytes) -> Strings:
        return _read_only(self._facts.strings[_codes(codes)])

    def _writable(self) -> NDArray[np.int8]:
        return np.frombuffer(self._state.snapshot_storage_writable, np.int8)


def _doubles(column: bytes) -> Floats:
    return np.frombuffer(column, columns.DOUBLES)


def _ints(column: bytes) -> Ints:
    return np.frombuffer(column, columns.INTS)


def _codes(column: bytes) -> NDArray[np.uint32]:
    return np.frombuffer(column, columns.CODES)


def _texts(strings: pb.Strings) -> Strings:
    """Return the strings, one by one."""
    ends = _codes(strings.ends).tolist()
    begins = [0, *ends[:-1]]
    if strings.text.isascii():
        text = strings.text.decode("ascii")
        pieces = [text[a:b] for a, b in zip(begins, ends, strict=False)]
    else:
        pieces = [strings.text[a:b].decode() for a, b in zip(begins, ends, strict=False)]
    column = np.empty(len(pieces), np.object_)
    column[:] = pieces
    return _read_only(column)


def _read_only(column: ArrayT) -> ArrayT:
    column.setflags(write=False)
    return column
