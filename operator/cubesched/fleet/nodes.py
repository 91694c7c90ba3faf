"""One SandboxNode as read from its object: limits before policy, labels, taints, readiness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import msgspec

from cubesched.api.quantity import QuantityError, parse_millis, parse_units
from cubesched.core.scheduler_settings import Settings
from cubesched.core.snapshot import NO_LIMIT, Safety, Taint
from cubesched.fleet.objects import (
    NamedObject,
    NodeAmounts,
    NodeObject,
    NodeSpec,
    Quantity,
    WireAddress,
)

_NODE = msgspec.json.Decoder(NodeObject)
_NAMED = msgspec.json.Decoder(NamedObject)
_SPEC = msgspec.json.Decoder(NodeSpec)
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """What the columns need of one node; sizes of an invalid spec are 0 and `problem` says why."""

    name: str
    uid: str
    labels: dict[str, str]
    instance_type: str
    taints: tuple[Taint, ...]
    templates: frozenset[str]
    safety: Safety
    images: tuple[tuple[str, int], ...] = ()
    """Names with their bytes, in order of name."""
    cpu_millis: int = 0
    memory_bytes: int = 0
    disk_bytes: int = NO_LIMIT
    sandboxes: int | None = None
    creates: int | None = None
    capacity_cpu_millis: int = 0
    capacity_memory_bytes: int = 0
    paused_release_ratio: Fraction | None = None
    """Share that a paused sandbox gives up here; None = the config's."""
    drain: str = "None"
    """None, Unstarted or All."""
    address: str = ""
    """Where the machine is reached; empty when its agent does not say."""
    problem: str = ""


def read_node(raw: bytes) -> NodeRecord:
    """Read one stored SandboxNode; raises msgspec.MsgspecError when not even its name is there.

    One that cannot be read otherwise still stands, as a node that takes nothing: what runs on
    it must not be taken for lost.
    """
    try:
        node = _NODE.decode(raw)
        return _record(node, _SPEC.decode(node.spec))
    except (msgspec.MsgspecError, QuantityError) as error:
        meta = _NAMED.decode(raw).metadata
        return NodeRecord(
            name=meta.name,
            uid=meta.uid,
            labels={},
            instance_type="",
            taints=(),
            templates=frozenset(),
            safety=Safety.INVALID_SPEC,
            problem=str(error),
        )


def _record(node: NodeObject, spec: NodeSpec) -> NodeRecord:
    capacity, quota, images = spec.capacity, spec.quota, node.status.images
    cpu = _amount("capacity.cpu", parse_millis, capacity.cpu)
    memory = _amount("capacity.memory", parse_units, capacity.memory)
    return NodeRecord(
        name=node.metadata.name,
        uid=node.metadata.uid,
        labels=node.metadata.labels or {},
        instance_type=spec.instance_type,
        taints=tuple(Taint(t.key, t.value, t.effect) for t in spec.taints),
        templates=frozenset(node.status.templates),
        safety=_safety(node, spec),
        images=tuple(sorted({i.name: _shared(i.name, i.size_bytes) for i in images}.values())),
        cpu_millis=cpu if quota.cpu is None else _amount("quota.cpu", parse_millis, quota.cpu),
        memory_bytes=memory
        if quota.memory is None
        else _amount("quota.memory", parse_units, quota.memory),
        disk_bytes=_disk(capacity, quota),
        sandboxes=quota.sandboxes,
        creates=quota.create_concurrency,
        capacity_cpu_millis=cpu,
        capacity_memory_bytes=memory,
        paused_release_ratio=_ratio(quota.paused_resource_release_ratio),
        drain=spec.drain,
        address=_address(node.status.addresses),
    )


@lru_cache(maxsize=1 << 16)
def _shared(name: str, size_bytes: int) -> tuple[str, int]:
    """Return one pair for all nodes that hold the same image."""
    return name, size_bytes


def _address(addresses: Sequence[WireAddress]) -> str:
    """Return the first InternalIP, else the first there is."""
    internal = (one.address for one in addresses if one.type == "InternalIP")
    return next(internal, addresses[0].address if addresses else "")


def _amount(field: str, parse: object, value: Quantity | None) -> int:
    if value is None:
        raise QuantityError(f"spec.{field}: missing")
    try:
        return int(parse(value, round_up=False))  # type: ignore[operator]
    except QuantityError as error:
        raise QuantityError(f"spec.{field}: {error}") from error


def _disk(capacity: NodeAmounts, quota: NodeAmounts) -> int:
    value = capacity.system_disk if quota.system_disk is None else quota.system_disk
    return NO_LIMIT if value is None else _amount("quota.systemDisk", parse_units, value)


def _ratio(value: float | None) -> Fraction | None:
    if value is None:
        return None
    if not 0 <= value <= 1:
        raise QuantityError(
            f"spec.quota.pausedResourceReleaseRatio: found {value}, must be from 0 to 1"
        )
    return Fraction(str(value))


def _safety(node: NodeObject, spec: NodeSpec) -> Safety:
    ready = any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
    if not ready:
        return Safety.NOT_READY
    is_closed = spec.unschedulable or spec.drain != "None"
    return Safety.UNSCHEDULABLE if is_closed else Safety.OK


def scaled(amount: int, ratio: Fraction) -> int:
    """Return amount times ratio, rounded down, exactly; never more than NO_LIMIT."""
    return min(NO_LIMIT, amount * ratio.numerator // ratio.denominator)


def memory_reserved_bytes(record: NodeRecord, settings: Settings) -> int:
    """Return what the mem guard keeps free: configured, else the smaller of 10 Gi and 10 %."""
    configured = settings.guards.memory_reserved_bytes
    if configured is not None:
        return configured
    return min(10 * _GIB, record.capacity_memory_bytes // 10)
