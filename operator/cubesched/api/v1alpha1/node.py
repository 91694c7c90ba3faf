"""SandboxNode: a machine that runs sandboxes, its size and its limits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cubesched.api.v1alpha1.common import ConditionMap, Model
from cubesched.api.v1alpha1.schema import ATOMIC, extra
from cubesched.api.v1alpha1.values import (
    BytesHeld,
    CpuHeld,
    InstanceType,
    LabelKey,
    LabelValue,
    TemplateID,
)

Count = Annotated[int, Field(ge=0, le=1_000_000)]
Limit = Annotated[int, Field(ge=1, le=100_000)]
Shown = Annotated[str, Field(max_length=20)]


class Taint(Model):
    """Keeps away requests that do not tolerate it."""

    key: LabelKey
    """What a toleration names."""
    value: LabelValue = ""
    """What a toleration with operator Equal must equal. Default: empty."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """NoSchedule and NoExecute keep new requests away; PreferNoSchedule only advises."""


class Capacity(Model):
    """What the machine has, fractions rounded down."""

    cpu: CpuHeld
    """Cores, as in 64, 500m or "0.5" (quote a fraction)."""
    memory: BytesHeld
    """Memory in bytes, as in 256Gi."""
    system_disk: BytesHeld | None = None
    """System disk in bytes, as in 2Ti. Default: unset, the system disk is not limited."""


class Quota(Model):
    """What requests may take in all, where it differs from capacity: over-commit of one node."""

    cpu: CpuHeld | None = None
    """Cores. Default: capacity."""
    memory: BytesHeld | None = None
    """Memory in bytes. Default: capacity."""
    system_disk: BytesHeld | None = None
    """System disk in bytes. Default: capacity."""
    sandboxes: Limit | None = None
    """Most sandboxes at a time. Default: the SchedulerConfig's maxSandboxesPerNode."""
    create_concurrency: Limit | None = None
    """Most creates in flight. Default: the SchedulerConfig's createConcurrencyLimit."""


class SandboxNodeSpec(Model):
    """What the machine offers, written by its agent or an administrator."""

    instance_type: InstanceType | None = None
    """The only instance type this node accepts. Default: unset, it accepts every type."""
    unschedulable: bool = False
    """True takes no new request; what runs here stays. Default: false."""
    taints: Annotated[
        list[Taint], Field(max_length=32, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """Only requests that tolerate all of these come here. Default: none."""
    capacity: Capacity
    """What the machine has."""
    quota: Quota | None = None
    """What requests may take in all. Default: capacity, and the SchedulerConfig's limits."""


class NodeImage(Model):
    """One image on the machine."""

    name: Annotated[str, Field(min_length=1, max_length=512)]
    """Reference of the image."""
    size_bytes: Annotated[int, Field(ge=0, le=1 << 60)] | None = None
    """Size on disk in bytes. Default: unset, unknown."""


class NodeAddress(Model):
    """One way to reach the machine."""

    type: Literal["InternalIP", "ExternalIP", "Hostname"]
    """What kind of address it is."""
    address: Annotated[str, Field(min_length=1, max_length=253)]
    """The IP address or DNS name."""


class Allocated(Model):
    """A summary of what requests take, for people; decisions never read it."""

    cpu: Shown | None = None
    """Cores."""
    memory: Shown | None = None
    """Memory in bytes."""
    system_disk: Shown | None = None
    """System disk in bytes."""
    sandboxes: Count | None = None
    """Requests that count here: reserved, bound, starting, running and paused."""
    creating: Count | None = None
    """Requests reserved, bound or starting here."""


class EffectiveCapacity(Model):
    """The limits decisions use: quota, else capacity, times over-commit, rounded down."""

    cpu: Shown | None = None
    """Cores."""
    memory: Shown | None = None
    """Memory in bytes."""
    system_disk: Shown | None = None
    """System disk in bytes; unset means not limited."""
    sandboxes: Count | None = None
    """Most sandboxes at a time."""
    create_concurrency: Count | None = None
    """Most creates in flight."""


class SandboxNodeStatus(Model):
    """What is observed of the machine; agent and operator each apply their own fields."""

    conditions: ConditionMap = []
    """Ready is the agent's; Accepted, MetricsComplete and Overcommitted are the operator's."""
    templates: Annotated[
        list[TemplateID], Field(max_length=2048, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """Templates held on the machine, from which sandboxes start fast. Written by the agent."""
    images: Annotated[
        list[NodeImage], Field(max_length=256, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """Images held on the machine. Written by the agent."""
    addresses: Annotated[
        list[NodeAddress], Field(max_length=16, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """Ways to reach the machine. Written by the agent."""
    allocated: Annotated[Allocated | None, Field(json_schema_extra=ATOMIC)] = None
    """What requests take of it. Written by the operator, now and then."""
    effective_capacity: Annotated[EffectiveCapacity | None, Field(json_schema_extra=ATOMIC)] = None
    """The limits decisions use. Written by the operator."""
