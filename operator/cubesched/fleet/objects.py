"""What the fleet reads of stored objects: only the fields that matter, decoded straight from JSON.

Spelling and bounds are the API models' business; a stored object that does not decode is told
apart from one that decodes and is invalid, because its node must count as full.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

Quantity = int | float | str
Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
"""Of things on one node; a stored one that is larger or negative fits no column."""
Amount = Annotated[int, msgspec.Meta(ge=0)]
"""What a reservation weighs: a negative one would make room that is not there."""


class _Struct(msgspec.Struct, rename="camel", gc=False, frozen=True):
    """Fields are camelCase on the wire; unknown ones are skipped without being built."""


class Meta(_Struct, frozen=True):
    """An object's metadata."""

    name: str
    uid: str = ""
    resource_version: str = "0"
    namespace: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    creation_timestamp: str = ""


class Name(_Struct, frozen=True):
    """Who an object is, and nothing else."""

    name: str
    uid: str = ""


class NamedObject(_Struct, frozen=True):
    """An object of which nothing but its name can be read."""

    metadata: Name


class Condition(_Struct, frozen=True):
    """One of status.conditions."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""


class PausedWeight(_Struct, frozen=True):
    """What a paused sandbox still takes of cores and memory."""

    cpu_millis: Amount = 0
    memory_bytes: Amount = 0


class ReservationStatus(_Struct, frozen=True):
    """A status.reservation: what was admitted; the ledger counts this, never a later spec."""

    id: str
    replica: str
    time: str = ""
    node_uid: str = msgspec.field(name="nodeUID", default="")
    """The SandboxNode object reserved on: one recreated under the same name is another node."""
    cpu_millis: Amount = 0
    memory_bytes: Amount = 0
    disk_bytes: Amount = 0
    resume: str = ""
    """The paused sandbox that it is to resume; empty for a new one."""
    paused: PausedWeight | None = None
    """What counts while the phase is Paused, and while one is evicted from there."""
    confirmation: str = "operator"
    """Who confirms it: operator, agent or none."""


class Refusal(_Struct, frozen=True):
    """One of status.refusals: a node whose agent could not start this request."""

    node: str
    reason: str = ""
    time: str = ""


class RequestStatus(_Struct, frozen=True):
    """The status, as far as scheduling reads it."""

    phase: str = "Pending"
    node_name: str = ""
    profile: str = ""
    attempts: int = 0
    reservation: ReservationStatus | None = None
    refusals: list[Refusal] = []
    conditions: list[Condition] = []


class RequestMeta(_Struct, frozen=True):
    """A SandboxRequest's metadata and status; `spec` and `raw_status` stay undecoded bytes."""

    metadata: Meta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


class WireToleration(_Struct, frozen=True):
    """One of spec.tolerations."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class WireGate(_Struct, frozen=True):
    """One of spec.schedulingGates."""

    name: str = ""


class Resources(_Struct, frozen=True):
    """One spec.resources."""

    cpu: Quantity
    memory: Quantity
    system_disk: Quantity = 0


class RequestSpec(_Struct, frozen=True):
    """The spec of a SandboxRequest."""

    resources: Resources
    instance_type: str = "cubebox"
    template_id: str = msgspec.field(name="templateID", default="")
    template_node_scope: list[str] = []
    allow_non_local_template: bool = False
    images: list[str] = []
    node_selector: dict[str, str] = {}
    tolerations: list[WireToleration] = []
    priority: int = 0
    scheduling_gates: list[WireGate] = []
    paused: bool = False
    ttl_seconds_after_finished: Number | None = None
    shutdown_time: str = ""


class WireTaint(_Struct, frozen=True):
    """One of a SandboxNode's spec.taints."""

    key: str
    effect: str
    value: str = ""


class NodeAmounts(_Struct, frozen=True):
    """A spec.capacity or spec.quota."""

    cpu: Quantity | None = None
    memory: Quantity | None = None
    system_disk: Quantity | None = None
    sandboxes: Number | None = None
    create_concurrency: Number | None = None
    paused_resource_release_ratio: float | None = None


class NodeSpec(_Struct, frozen=True):
    """The spec of a SandboxNode."""

    capacity: NodeAmounts
    quota: NodeAmounts = NodeAmounts()
    instance_type: str = ""
    unschedulable: bool = False
    drain: str = "None"
    taints: list[WireTaint] = []


class WireImage(_Struct, frozen=True):
    """One of a SandboxNode's status.images."""

    name: str
    size_bytes: Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]


class WireAddress(_Struct, frozen=True):
    """One of a SandboxNode's status.addresses."""

    type: str = ""
    address: str = ""


class NodeStatus(_Struct, frozen=True):
    """The status of a SandboxNode, as far as scheduling reads it."""

    conditions: list[Condition] = []
    templates: list[str] = []
    images: list[WireImage] = []
    addresses: list[WireAddress] = []


class NodeObject(_Struct, frozen=True):
    """A SandboxNode; `spec` stays undecoded, so that an invalid one still names its node."""

    metadata: Meta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: NodeStatus = NodeStatus()


def plain(raw: bytes) -> dict[str, Any]:
    """Decode raw JSON into plain dicts and lists, to be changed and written back whole."""
    value = msgspec.json.decode(raw)
    return value if isinstance(value, dict) else {}
