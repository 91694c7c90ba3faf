"""One SandboxRequest as the ledger holds it, read from its stored JSON without losing any."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from cubesched.api.quantity import QuantityError, parse_millis, parse_units
from cubesched.api.timestamps import parsed
from cubesched.core.request import Request, Toleration
from cubesched.fleet.objects import RequestMeta, RequestSpec, RequestStatus, ReservationStatus
from cubesched.fleet.sandboxes import sandbox_name, uid_in
from cubesched.fleet.wishes import NO_WISHES, Wishes, wishes_of

_META = msgspec.json.Decoder(RequestMeta)
_SPEC = msgspec.json.Decoder(RequestSpec)
_STATUS = msgspec.json.Decoder(RequestStatus)
_OFF_NODE = frozenset({"Pending", "Succeeded", "Failed"})
_PAUSED = frozenset({"Paused", "Evicting"})
"""Phases in which the paused weight counts, where one was stamped."""


class InvalidSpec(ValueError):
    """A stored request's spec cannot be used; the text names the field, what was found and why."""


@dataclass(frozen=True, slots=True)
class Weight:
    """What a request counts, stamped in its reservation."""

    cpu_millis: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0


NOTHING = Weight()


@dataclass(frozen=True)
class Entry:
    """One request at one version. Raw parts stay bytes; they are decoded when needed."""

    uid: str
    namespace: str
    name: str
    version: int
    labels: dict[str, str]
    created: str
    generation: int
    phase: str
    node: str
    """The node it counts on; empty when it counts nowhere."""
    weight: Weight
    status: RequestStatus
    spec_raw: bytes
    status_raw: bytes
    unreadable: str = ""
    """Why the object cannot be read; its node then counts as full."""

    @property
    def key(self) -> str:
        """namespace/name, for people."""
        return f"{self.namespace}/{self.name}"

    @property
    def reservation_id(self) -> str:
        """The id of its reservation; empty without one."""
        return self.status.reservation.id if self.status.reservation else ""

    @property
    def replica(self) -> str:
        """The replica that wrote its reservation; empty without one."""
        return self.status.reservation.replica if self.status.reservation else ""

    @property
    def node_uid(self) -> str:
        """The uid of the node object it was reserved on."""
        return self.status.reservation.node_uid if self.status.reservation else ""

    @property
    def resume(self) -> str:
        """The paused sandbox that its reservation is to resume; empty for a new one."""
        return self.status.reservation.resume if self.status.reservation else ""

    @property
    def sandbox(self) -> str:
        """The sandbox that its reservation is for, new or to be resumed; empty without one.

        Never another request's, whatever its reservation names: what is done to it is done to a
        machine.
        """
        if self.resume and uid_in(self.resume) == self.uid:
            return self.resume
        return self.reservation_id and sandbox_name(self.uid, self.reservation_id)

    @property
    def confirmation(self) -> str:
        """Who confirms its reservation: operator, agent, or none; operator without one."""
        return self.status.reservation.confirmation if self.status.reservation else "operator"

    @property
    def full_weight(self) -> Weight:
        """What its reservation admitted, also while it is paused and counts less."""
        return _stamped(self.status.reservation)

    @property
    def paused_weight(self) -> Weight:
        """What it counts while it is paused: as stamped, else in full."""
        return _counted("Paused", self.status.reservation)

    @cached_property
    def wishes(self) -> Wishes:
        """What its client asks beside a node; nothing when the spec is unreadable."""
        spec = self._spec_or_none()
        return wishes_of(spec) if spec else NO_WISHES

    @cached_property
    def template_id(self) -> str:
        """spec.templateID; empty without one or when the spec is unreadable."""
        spec = self._spec_or_none()
        return spec.template_id if spec else ""

    @property
    def images(self) -> tuple[str, ...]:
        """spec.images, each once; none when the spec is unreadable."""
        spec = self._spec_or_none()
        return tuple(dict.fromkeys(spec.images)) if spec else ()

    def request(
        self, *, attempt: int, refused_nodes: tuple[str, ...], label_keys: Collection[str] = ()
    ) -> Request:
        """Return what the pipeline sees of it: exact sizes, rounded up, and only these labels.

        Raises InvalidSpec naming the field.
        """
        spec = self._spec()
        if spec.shutdown_time and parsed(spec.shutdown_time) is None:
            raise InvalidSpec(
                f"spec.shutdownTime: found {spec.shutdown_time!r},"
                " must be a time as in 2030-01-31T12:00:00Z"
            )
        return Request(
            uid=self.uid,
            namespace=self.namespace,
            name=self.name,
            cpu_millis=_size("cpu", parse_millis, spec.resources.cpu),
            memory_bytes=_size("memory", parse_units, spec.resources.memory),
            disk_bytes=_size("systemDisk", parse_units, spec.resources.system_disk, least=0),
            labels={key: self.labels[key] for key in label_keys if key in self.labels},
            instance_type=spec.instance_type,
            template_id=spec.template_id,
            template_node_scope=tuple(spec.template_node_scope),
            allow_non_local_template=spec.allow_non_local_template,
            images=tuple(dict.fromkeys(spec.images)),
            node_selector=tuple(sorted(spec.node_selector.items())),
            tolerations=tuple(
                Toleration(key=t.key, operator=t.operator, value=t.value, effect=t.effect)
                for t in spec.tolerations
            ),
            priority=spec.priority,
            attempt=attempt,
            refused_nodes=refused_nodes,
        )

    def priority(self) -> int:
        """Return spec.priority, 0 when the spec is unreadable."""
        spec = self._spec_or_none()
        return spec.priority if spec else 0

    def _spec(self) -> RequestSpec:
        try:
            return _SPEC.decode(self.spec_raw)
        except msgspec.MsgspecError as error:
            raise InvalidSpec(f"spec: {error}") from error

    def _spec_or_none(self) -> RequestSpec | None:
        try:
            return self._spec()
        except InvalidSpec:
            return None


def _size(name: str, parse: Any, value: Any, *, least: int = 1) -> int:
    try:
        size: int = parse(value, round_up=True)
    except QuantityError as error:
        raise InvalidSpec(f"spec.resources.{name}: {error}") from error
    if size < least:
        raise InvalidSpec(f"spec.resources.{name}: found {value!r}, must be greater than 0")
    return size


def read_entry(raw: bytes) -> Entry:
    """Read one stored object; one that does not decode becomes an entry that says so."""
    try:
        meta = _META.decode(raw)
        status = _STATUS.decode(meta.status)
    except msgspec.MsgspecError as error:
        return _unreadable(raw, str(error))
    counted = bool(status.node_name) and status.phase not in _OFF_NODE
    reservation = status.reservation
    broken = "status.reservation: missing" if counted and reservation is None else ""
    return Entry(
        uid=meta.metadata.uid,
        namespace=meta.metadata.namespace,
        name=meta.metadata.name,
        version=int(meta.metadata.resource_version),
        labels=meta.metadata.labels or {},
        created=meta.metadata.creation_timestamp,
        generation=meta.metadata.generation,
        phase=status.phase,
        node=status.node_name if counted else "",
        weight=_counted(status.phase, reservation) if counted else NOTHING,
        status=status,
        spec_raw=bytes(meta.spec),
        status_raw=bytes(meta.status),
        unreadable=broken,
    )


def _counted(phase: str, reservation: ReservationStatus | None) -> Weight:
    """Return what counts on the node: less than was admitted only while it is paused.

    The stamp can take room off, never add any: what rises is a reservation with a new id.
    """
    full = _stamped(reservation)
    paused = reservation.paused if reservation and phase in _PAUSED else None
    if paused is None:
        return full
    return Weight(
        min(full.cpu_millis, paused.cpu_millis),
        min(full.memory_bytes, paused.memory_bytes),
        full.disk_bytes,
    )


def _stamped(reservation: ReservationStatus | None) -> Weight:
    if reservation is None:
        return NOTHING
    return Weight(reservation.cpu_millis, reservation.memory_bytes, reservation.disk_bytes)


def _unreadable(raw: bytes, why: str) -> Entry:
    """Keep what can be told of an object that does not decode: who it is, and on which node."""
    try:
        found = msgspec.json.decode(raw)
    except msgspec.MsgspecError:
        found = None
    meta = _part(found, "metadata")
    status = _part(found, "status")
    node, phase = status.get("nodeName", ""), status.get("phase", "Pending")
    known = _has_status(found) and isinstance(node, str) and isinstance(phase, str)
    off_node = known and (not node or phase in _OFF_NODE)
    namespace, name = str(meta.get("namespace", "")), str(meta.get("name", "unreadable"))
    return Entry(
        uid=str(meta.get("uid", f"{namespace}/{name}")),
        namespace=namespace,
        name=name,
        version=_version(meta.get("resourceVersion")),
        labels={},
        created=str(meta.get("creationTimestamp", "")),
        generation=0,
        phase=phase if known else "Unreadable",
        node=node if known and not off_node else "",
        weight=NOTHING,
        status=RequestStatus(),
        spec_raw=b"null",
        status_raw=b"{}",
        unreadable="" if off_node else why,
    )


def _has_status(found: object) -> bool:
    """Tell whether a status can be looked into; none at all is an empty one."""
    return isinstance(found, dict) and isinstance(found.get("status", {}), dict | None)


def _part(found: object, name: str) -> dict[str, Any]:
    part = found.get(name) if isinstance(found, dict) else None
    return part if isinstance(part, dict) else {}


def _version(value: object) -> int:
    text = str(value)
    return int(text) if text.isdecimal() else 0
