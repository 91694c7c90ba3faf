"""SandboxNode: a machine that runs sandboxes, its size and its limits."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from cubesched.api.v1alpha1.common import ConditionMap, Model
from cubesched.api.v1alpha1.schema import extra
from cubesched.api.v1alpha1.values import (
    BytesHeld,
    CpuHeld,
    ImageName,
    InstanceType,
    LabelKey,
    LabelValue,
    TemplateID,
    Timestamp,
)

MAX_IMAGES: Final = 128
"""What a node reports of its images: the largest ones."""

Limit = Annotated[int, Field(ge=1, le=100_000)]
Number = Annotated[int, Field(ge=0, le=(1 << 31) - 1)]
Shown = Annotated[str, Field(max_length=24)]
"""A quantity as the operator writes it, always in the one shortest spelling."""
ReleaseRatio = Annotated[float, Field(ge=0, le=1)]


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
    paused_resource_release_ratio: ReleaseRatio | None = None
    """Share of cores and memory that a paused sandbox gives up, 0 to 1. Default: the
    SchedulerConfig's pausedResourceReleaseRatio."""


class SandboxNodeSpec(Model):
    """What the machine offers, written by its agent or an administrator."""

    instance_type: InstanceType | None = None
    """The only instance type this node accepts. Default: unset, it accepts every type."""
    unschedulable: bool = False
    """True takes no new request; what runs here stays. Default: false."""
    drain: Literal["None", "Unstarted", "All"] = "None"
    """Empties the node: Unstarted takes no new request and moves those that have not begun to
    start, All also evicts what runs or is paused. Default: None."""
    taints: Annotated[
        list[Taint], Field(max_length=32, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """Only requests that tolerate all of these come here. Default: none."""
    capacity: Capacity
    """What the machine has."""
    quota: Quota | None = None
    """What requests may take in all. Default: capacity, and the SchedulerConfig's limits."""


class Image(Model):
    """An image that is stored on the machine."""

    name: ImageName
    """What a request's `images` must equal."""
    size_bytes: Annotated[int, Field(ge=0, le=1 << 50)]
    """Bytes it takes on this machine."""


class Allocated(Model):
    """What the guards count as used: all requests placed here, and what runs here beside them."""

    cpu: Shown
    """Cores."""
    memory: Shown
    """Memory in bytes."""
    system_disk: Shown
    """System disk in bytes."""
    sandboxes: Number
    """The larger of what is placed here and what the machine reports."""
    creating: Number
    """Creates in flight, likewise."""
    cpu_percent: Number | None = None
    """Of the effective capacity, rounded down; above 100 when too much is placed here."""
    memory_percent: Number | None = None
    """Likewise."""


class EffectiveCapacity(Model):
    """What requests may take in all by the policy that runs: an agent's own limits."""

    cpu: Shown
    """Cores: quota, else capacity, times over-commit, rounded down."""
    memory: Shown
    """Memory in bytes, likewise."""
    system_disk: Shown | None = None
    """System disk in bytes: quota, else capacity. Unset: it is not limited."""
    sandboxes: Number
    """Most sandboxes at a time."""
    create_concurrency: Number
    """Most creates in flight."""
    paused_resource_release_ratio: ReleaseRatio
    """Share of cores and memory that a paused sandbox gives up here."""


class Address(Model):
    """One way to reach the machine."""

    type: Literal["InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"]
    """What kind of address it is, as for a Kubernetes Node."""
    address: Annotated[str, Field(min_length=1, max_length=253)]
    """The address itself."""


class SandboxNodeStatus(Model):
    """What is observed of the machine; agent and operator each apply their own fields."""

    conditions: ConditionMap = []
    """Ready is the agent's, all others are the operator's."""
    schedulable: Annotated[str, Field(max_length=32)] | None = None
    """True, or in one word why the node takes nothing new. Written by the operator."""
    metrics_time: Timestamp | None = None
    """When the last report was seen, to about a minute while reports come. By the operator."""
    allocated: Allocated | None = None
    """What is used of the machine. Written by the operator, at most every 5 seconds."""
    effective_capacity: EffectiveCapacity | None = None
    """What requests may take in all. Written by the operator; unset while the spec is invalid."""
    templates: Annotated[
        list[TemplateID], Field(max_length=2048, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """Templates held on the machine, from which sandboxes start fast. Written by the agent."""
    images: Annotated[
        list[Image], Field(max_length=MAX_IMAGES, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """Images held on the machine, the largest ones. Written by the agent."""
    addresses: Annotated[
        list[Address], Field(max_length=16, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """Where the machine is reached; routing records carry the first InternalIP, else the first.
    Written by the agent."""
