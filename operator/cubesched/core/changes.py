"""One thing changed at a time: what a request could ask for instead, each a case of its own.

A change is proposed where its dimension may reject a node now; whether it helps is told by
running the masks on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cubesched.core.amounts import millis, rounded_down
from cubesched.core.cycle import feasible_rows
from cubesched.core.errors import PluginError
from cubesched.core.pipeline import Pipeline
from cubesched.core.request import Request, Toleration
from cubesched.core.snapshot import Codes, Ints, Snapshot
from cubesched.core.tolerating import untolerated

MOST_ALIKE = 8
"""Taints or instance types that are looked at, those of the most nodes first."""
WAIT, FLAG, PEOPLE = 0.25, 0.5, 1.0
"""How large a change is beside an amount's share in 0..1: nothing but time, one field of the
request, something that others than its author have to do."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """What a decision looks at."""

    fleet: Snapshot
    request: Request
    pipeline: Pipeline
    route: Callable[[Request], Pipeline | None]
    """Which pipeline serves a request; None when no Profile does."""

    def asking(self, **fields: Any) -> Case:
        """Return the case of a request that differs in these fields, on the same route."""
        return replace(self, request=replace(self.request, **fields))

    def rows(self) -> Ints:
        """Return the rows of the nodes that fit; none where a plugin fails."""
        try:
            return feasible_rows(self.fleet, self.request, self.pipeline)
        except PluginError:
            return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A case that differs in one thing."""

    kind: str
    text: str
    """`with cpu <= 1500m`, `without nodeSelector`, `once metrics are fresh`"""
    case: Case
    size: float
    """How much is asked of people; smaller is better."""


@dataclass(frozen=True, slots=True)
class _Amount:
    """One of the sizes that a request asks for."""

    name: str
    field: str
    least: int
    room: Callable[[Snapshot], Ints]
    rounded: Callable[[int], tuple[int, str]]


_CPU = _Amount(
    "cpu",
    "cpu_millis",
    1,
    lambda fleet: fleet.derived.cpu_room_millis,
    lambda amount: (amount, millis(amount)),
)
_MEMORY = _Amount(
    "memory", "memory_bytes", 1, lambda fleet: fleet.derived.memory_room_bytes, rounded_down
)
_DISK = _Amount(
    "systemDisk", "disk_bytes", 0, lambda fleet: fleet.derived.disk_room_bytes, rounded_down
)


def of_the_request(case: Case) -> Iterator[Change]:
    """Yield every change of one thing of the request, or of its Profile, that may help."""
    for amount in (_CPU, _MEMORY, _DISK):
        yield from _less(case, amount)
    yield from _template(case)
    yield from _selector(case)
    yield from _instance_types(case)
    yield from _tolerations(case)
    if case.request.refused_nodes:
        text = "once the refusals there have passed"
        yield Change("refused", text, case.asking(refused_nodes=()), WAIT)
    yield from _filters(case)


def less_cpu_and_memory(case: Case) -> Iterator[Change]:
    """Yield the largest part of cpu and memory together that one node would take, if any."""
    request = case.request
    rows = case.asking(cpu_millis=_CPU.least, memory_bytes=_MEMORY.least).rows()
    if not rows.size:
        return
    cpu, memory = _CPU.room(case.fleet)[rows], _MEMORY.room(case.fleet)[rows]
    share = np.minimum(cpu / request.cpu_millis, memory / request.memory_bytes)
    best = int(share.argmax())
    fewer, cpu_text = _CPU.rounded(min(request.cpu_millis, int(cpu[best])))
    less, memory_text = _MEMORY.rounded(min(request.memory_bytes, int(memory[best])))
    text = f"with cpu <= {cpu_text} and memory <= {memory_text}"
    changed = case.asking(cpu_millis=fewer, memory_bytes=less)
    yield Change("cpu and memory", text, changed, 1.0 - float(share[best]))


def _less(case: Case, amount: _Amount) -> Iterator[Change]:
    asked, room = getattr(case.request, amount.field), amount.room(case.fleet)
    if (room >= asked).all():
        return
    rows = case.asking(**{amount.field: amount.least}).rows()
    largest = int(room[rows].max(initial=-1))
    if not rows.size or largest >= asked:
        return
    value, text = amount.rounded(largest)
    changed = case.asking(**{amount.field: value})
    yield Change(amount.name, f"with {amount.name} <= {text}", changed, 1.0 - value / asked)


def _template(case: Case) -> Iterator[Change]:
    request, fleet = case.request, case.fleet
    if request.template_id and not request.allow_non_local_template:
        cached = copy(fleet)
        everywhere = np.ones(len(fleet), dtype=np.bool_)
        cached.templates = {**fleet.templates, request.template_id: everywhere}
        text = f"with template {request.template_id} cached"
        yield Change("template", text, replace(case, fleet=cached), FLAG)
        allowed = case.asking(allow_non_local_template=True)
        yield Change("allowNonLocalTemplate", "with allowNonLocalTemplate: true", allowed, FLAG)
    if request.template_node_scope:
        anywhere = case.asking(template_node_scope=())
        yield Change("templateNodeScope", "without templateNodeScope", anywhere, FLAG)


def _selector(case: Case) -> Iterator[Change]:
    selector = case.request.node_selector
    if len(selector) > 1:
        for pair in selector:
            rest = tuple(other for other in selector if other != pair)
            text = f"without {pair[0]}={pair[1]} in nodeSelector"
            yield Change("nodeSelector", text, case.asking(node_selector=rest), FLAG)
    if selector:
        size = FLAG * len(selector)
        changed = case.asking(node_selector=())
        yield Change("nodeSelector", "without nodeSelector", changed, size)


def _instance_types(case: Case) -> Iterator[Change]:
    """Another type may be another Profile's."""
    fleet = case.fleet
    names = {code: name for name, code in fleet.instance_type_codes.items() if name and code}
    for code in _most_frequent(fleet.instance_type):
        name = names.get(code, case.request.instance_type)
        if name != case.request.instance_type:
            changed = case.asking(instance_type=name)
            pipeline = case.route(changed.request)
            if pipeline is not None:
                changed = replace(changed, pipeline=pipeline)
                yield Change("instanceType", f"with instanceType {name}", changed, FLAG)


def _tolerations(case: Case) -> Iterator[Change]:
    fleet, request = case.fleet, case.request
    proposed = dict.fromkeys(
        untolerated(request, fleet.taint_sets[code]) for code in _most_frequent(fleet.taint_set)
    )
    for taints in proposed:
        if taints:
            added = tuple(Toleration(t.key, "Equal", t.value, t.effect) for t in taints)
            listed = " and ".join(map(str, taints))
            changed = case.asking(tolerations=(*request.tolerations, *added))
            text = f"with a toleration of {listed}"
            yield Change("tolerations", text, changed, FLAG * len(taints))


def _most_frequent(codes: Codes) -> list[int]:
    """Return the codes but 0 that stand in the most rows."""
    counts = np.bincount(codes) if codes.size else np.zeros(1, dtype=np.int64)
    ranked = [int(code) for code in np.argsort(-counts, kind="stable") if code and counts[code]]
    return ranked[:MOST_ALIKE]


def _filters(case: Case) -> Iterator[Change]:
    pipeline = case.pipeline
    for left_out in pipeline.filters:
        rest = tuple(other for other in pipeline.filters if other is not left_out)
        text = f"without filter {left_out.name} of Profile {pipeline.profile}"
        changed = replace(case, pipeline=replace(pipeline, filters=rest))
        yield Change("filter", text, changed, PEOPLE)
