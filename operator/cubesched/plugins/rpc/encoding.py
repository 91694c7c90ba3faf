"""A frozen fleet as the protocol's messages, encoded once a version and then put in whole.

Facts are worked out again only when nodes have changed, state with every version.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, count

import numpy as np
from numpy.typing import NDArray

from cubesched.core.snapshot import Codes, Snapshot, Taint
from cubesched.plugins.rpc import columns
from cubesched.plugins.rpc.plugin_pb2 import Facts, Label, State, Strings, TaintSet, Template
from cubesched.plugins.rpc.plugin_pb2 import Taint as WireTaint
from cubesched.plugins.rpc.wire import ENCODING, FACTS_FIELD, STATE_FIELD, as_field

MOST_STATES = 4
"""Versions kept: decisions under way are about a few at a time."""
MOST_FACTS = 2


@dataclass(frozen=True, slots=True)
class EncodedFacts:
    """`number` is the facts_version that plugins see; `field` the field of a request."""

    number: int
    field: bytes


@dataclass(frozen=True, slots=True)
class Encoded:
    """One version of the fleet."""

    version: int
    facts: EncodedFacts
    state: bytes
    """The field of a request."""


@dataclass(slots=True)
class Encoder:
    """Encodes the fleet for every socket of this process; owned by the event loop."""

    client: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Names this process to plugins: versions mean nothing to others."""
    _states: deque[tuple[Snapshot, Encoded]] = field(
        default_factory=lambda: deque(maxlen=MOST_STATES)
    )
    _facts: deque[tuple[Snapshot, EncodedFacts]] = field(
        default_factory=lambda: deque(maxlen=MOST_FACTS)
    )
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ready(self, fleet: Snapshot) -> Encoded:
        """Return a frozen fleet, encoded; facts, which take longest, in a thread."""
        if self._known_facts(fleet) is None:
            async with self._turn:
                if self._known_facts(fleet) is None:
                    facts = await asyncio.to_thread(_encoded_facts, fleet, next(self._numbers))
                    self._facts.append((fleet, facts))
        return self.encoded(fleet)

    def encoded(self, fleet: Snapshot) -> Encoded:
        """Return a frozen fleet, encoded."""
        for known, encoded in self._states:
            if known.version == fleet.version and known.sandboxes is fleet.sandboxes:
                return encoded
        facts = self._known_facts(fleet)
        if facts is None:
            facts = _encoded_facts(fleet, next(self._numbers))
            self._facts.append((fleet, facts))
        encoded = Encoded(fleet.version, facts, _state(fleet, facts.number))
        self._states.append((fleet, encoded))
        return encoded

    def _known_facts(self, fleet: Snapshot) -> EncodedFacts | None:
        for known, encoded in self._facts:
            # Versions that were frozen one after another share what has not changed.
            if known.facts_version == fleet.facts_version and known.names is fleet.names:
                return encoded
        return None


def _state(fleet: Snapshot, facts_version: int) -> bytes:
    state = State(snapshot_version=fleet.version, facts_version=facts_version, encoding=ENCODING)
    for column in columns.STATE:
        setattr(state, column.name, column.encoded(fleet))
    return as_field(STATE_FIELD, state.SerializeToString())


def _encoded_facts(fleet: Snapshot, number: int) -> EncodedFacts:
    table = _Table.of(fleet)
    absent = np.zeros(len(fleet), np.int32)
    facts = Facts(
        facts_version=number,
        nodes=len(fleet),
        names=_strings(fleet.names),
        strings=_strings(table.texts),
        ip=table.column(fleet.address),
        zone=table.column(fleet.labels.get(columns.ZONE, absent)),
        instance_type=table.types[fleet.instance_type].tobytes(),
        labels=[Label(key=k, values=table.column(codes)) for k, codes in fleet.labels.items()],
        templates=[
            Template(id=key, nodes=np.packbits(holders, bitorder="little").tobytes())
            for key, holders in fleet.templates.items()
        ],
        taint_sets=[_taint_set(taints) for taints in fleet.taint_sets],
    )
    for column in columns.FACTS:
        setattr(facts, column.name, column.encoded(fleet))
    return EncodedFacts(number, as_field(FACTS_FIELD, facts.SerializeToString()))


def _taint_set(taints: Sequence[Taint]) -> TaintSet:
    return TaintSet(taints=[WireTaint(key=t.key, value=t.value, effect=t.effect) for t in taints])


@dataclass(frozen=True, slots=True)
class _Table:
    """The string table: what nodes have now, of all that any ever had."""

    texts: Sequence[str]
    values: NDArray[np.uint32]
    """The index of each interned label value."""
    types: NDArray[np.uint32]
    """The index of each instance type."""

    @classmethod
    def of(cls, fleet: Snapshot) -> _Table:
        """Collect the strings of these nodes."""
        known = dict(fleet.label_values)  # at one blow: the fleet may be adding to it
        codes = np.fromiter(known.values(), np.intp, len(known))
        values = np.zeros(codes.max(initial=0) + 1, columns.CODES)
        is_used = np.zeros(values.size, np.bool_)
        for column in (fleet.address, *fleet.labels.values()):
            is_used[column] = True
        used = is_used[codes]
        texts = ["", *compress(known, used.tolist())]
        values[codes[used]] = np.arange(1, len(texts))
        types = dict(fleet.instance_type_codes)
        places = {text: values.item(known[text]) for text in types if text in known}
        return cls(texts, values, _types(types, places, texts))

    def column(self, codes: Codes) -> bytes:
        """Return a column of interned label values."""
        return self.values[codes].tobytes()


def _types(
    interned: Mapping[str, int], values: Mapping[str, int], texts: list[str]
) -> NDArray[np.uint32]:
    """Return the index of each instance type; those that are no label's value are appended.

    `values` has the index of each label's value. None of them may change meanwhile.
    """
    types = np.zeros(max(interned.values(), default=0) + 1, columns.CODES)
    for text, code in interned.items():
        place = values.get(text, 0)
        if code and not place:
            place = len(texts)
            texts.append(text)
        types[code] = place if code else 0
    return types


def _strings(texts: Sequence[str]) -> Strings:
    text = "".join(texts)
    pieces = texts if text.isascii() else [each.encode(errors="replace") for each in texts]
    ends = np.cumsum(np.fromiter(map(len, pieces), columns.CODES, len(pieces)))
    return Strings(text=text.encode(errors="replace"), ends=ends.astype(columns.CODES).tobytes())
