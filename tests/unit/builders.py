"""Builders with defaults: a healthy node with room, a small request, a fleet of such nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from typing_extensions import override

from cubesched.core.pipeline import (
    NoCandidate,
    Pipeline,
    ScoreFailure,
    Selection,
    SelectionMethod,
    WeightedScore,
)
from cubesched.core.request import Request
from cubesched.core.snapshot import NO_LIMIT, Safety, Snapshot, Taint
from cubesched.plugins import registry

GIB = 1 << 30
UNKNOWN = float("nan")


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One node as a plain object; the defaults are a healthy node, nearly empty."""

    name: str = "node-1"
    cpu_limit_millis: int = 64_000
    memory_limit_bytes: int = 128 * GIB
    disk_limit_bytes: int = NO_LIMIT
    sandbox_limit: int = 3000
    create_limit: int = 100
    cpu_used_millis: int = 0
    memory_used_bytes: int = 0
    disk_used_bytes: int = 0
    sandboxes: int = 0
    creating: int = 0
    creating_ledger: int = 0
    creating_reported: int = 0
    creating_own: int = 0
    address: str = ""
    snapshot_storage_writable: int = 1
    cpus: float = 64.0
    memory_capacity_bytes: int = 128 * GIB
    memory_reserved_bytes: int = 10 * GIB
    cpu_util_percent: float = 10.0
    cpu_load: float = 1.0
    memory_really_used_bytes: float = 1.0 * GIB
    data_disk_percent: float = 10.0
    storage_disk_percent: float = 10.0
    system_disk_percent: float = 10.0
    safety: Safety = Safety.OK
    instance_type: str = ""
    taints: tuple[Taint, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    templates: tuple[str, ...] = ()
    images: Mapping[str, int] = field(default_factory=dict)
    template_creating: Mapping[str, int] = field(default_factory=dict)
    own: bool = False


_INTS = (
    "cpu_limit_millis",
    "memory_limit_bytes",
    "disk_limit_bytes",
    "sandbox_limit",
    "create_limit",
    "cpu_used_millis",
    "memory_used_bytes",
    "disk_used_bytes",
    "sandboxes",
    "creating",
    "creating_ledger",
    "creating_reported",
    "creating_own",
    "memory_capacity_bytes",
    "memory_reserved_bytes",
)
_FLOATS = (
    "cpus",
    "cpu_util_percent",
    "cpu_load",
    "memory_really_used_bytes",
    "data_disk_percent",
    "storage_disk_percent",
    "system_disk_percent",
)


def a_node(name: str = "node-1", **facts: Any) -> NodeFacts:
    """Return a node with these facts and defaults for the rest."""
    return NodeFacts(name=name, **facts)


def a_request(uid: str = "uid-1", **facts: Any) -> Request:
    """Return a request of 1 cpu and 1 GiB with these facts."""
    defaults: dict[str, Any] = {
        "namespace": "default",
        "name": uid,
        "cpu_millis": 1000,
        "memory_bytes": GIB,
    }
    return Request(uid=uid, **{**defaults, **facts})


class Growing(dict[str, int]):
    """Interned texts that another thread adds to: whoever goes through them step by step fails."""

    @override
    def items(self) -> NoReturn:
        raise RuntimeError("dictionary changed size during iteration")

    @override
    def values(self) -> NoReturn:
        self.items()


def a_snapshot(
    nodes: Sequence[NodeFacts],
    version: int = 1,
    *,
    max_cpu_util_percent: float = 80.0,
    disk_usage_max_percent: float = 80.0,
) -> Snapshot:
    """Return the columns of these nodes, in name order."""
    nodes = sorted(nodes, key=lambda node: node.name)
    type_codes = _codes(node.instance_type for node in nodes if node.instance_type)
    taint_sets = [(), *dict.fromkeys(node.taints for node in nodes if node.taints)]
    label_values = _codes(
        value
        for node in nodes
        for value in (*node.labels.values(), *([node.address] * bool(node.address)))
    )
    columns: dict[str, Any] = {
        name: np.array([getattr(node, name) for node in nodes], dtype=np.int64) for name in _INTS
    }
    columns |= {
        name: np.array([getattr(node, name) for node in nodes], dtype=np.float64)
        for name in _FLOATS
    }
    return Snapshot(
        version=version,
        names=[node.name for node in nodes],
        row_of={node.name: row for row, node in enumerate(nodes)},
        safety=np.array([node.safety for node in nodes], dtype=np.uint8),
        address=np.array([label_values.get(node.address, 0) for node in nodes], dtype=np.int32),
        snapshot_storage_writable=np.array(
            [node.snapshot_storage_writable for node in nodes], dtype=np.int8
        ),
        instance_type=np.array(
            [type_codes.get(node.instance_type, 0) for node in nodes], dtype=np.int32
        ),
        instance_type_codes=type_codes,
        taint_set=np.array([taint_sets.index(node.taints) for node in nodes], dtype=np.int32),
        taint_sets=taint_sets,
        labels={
            key: np.array(
                [label_values.get(node.labels.get(key, "\0"), 0) for node in nodes], dtype=np.int32
            )
            for key in sorted({key for node in nodes for key in node.labels})
        },
        label_values=label_values,
        templates={
            template: np.array([template in node.templates for node in nodes], dtype=np.bool_)
            for template in sorted({template for node in nodes for template in node.templates})
        },
        images={
            image: np.array([node.images.get(image, 0) for node in nodes], dtype=np.int64)
            for image in sorted({image for node in nodes for image in node.images})
        },
        template_creating={
            template: np.array(
                [node.template_creating.get(template, 0) for node in nodes], dtype=np.int64
            )
            for template in sorted({key for node in nodes for key in node.template_creating})
        },
        own=np.array([node.own for node in nodes], dtype=np.bool_),
        max_cpu_util_percent=max_cpu_util_percent,
        disk_usage_max_percent=disk_usage_max_percent,
        **columns,
    )


def a_pipeline(
    *scores: tuple[str, Mapping[str, object], float] | WeightedScore,
    filters: Mapping[str, Mapping[str, object]] | None = None,
    method: SelectionMethod = SelectionMethod.HIGHEST,
    top_n: int = 1,
    score_failure: ScoreFailure = ScoreFailure.DEFAULT_SCORE,
    no_candidate: NoCandidate = NoCandidate.BACKOFF,
) -> Pipeline:
    """Return a Profile's pipeline; a score is (built-in name, args, weight) or ready-made."""
    return Pipeline(
        profile="a-profile",
        guards=registry.GUARDS,
        constraints=registry.CONSTRAINTS,
        filters=tuple(registry.build_filter(name, args) for name, args in (filters or {}).items()),
        scores=tuple(
            score
            if isinstance(score, WeightedScore)
            else WeightedScore(registry.build_score(score[0], score[1]), score[2], 0.0)
            for score in scores
        ),
        selection=Selection(method, top_n),
        score_failure=score_failure,
        no_candidate=no_candidate,
    )


def _codes(values: Any) -> dict[str, int]:
    return {value: code for code, value in enumerate(dict.fromkeys(values), start=1)}
