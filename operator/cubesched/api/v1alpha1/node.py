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
)

MAX_IMAGES: Final = 128
"""What a node reports of its images: the largest ones."""

Limit = Annotated[int, Field(ge=1, le=100_000)]
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


class SandboxNodeStatus(Model):
    """What is observed of the machine; agent and operator each apply their own fields."""

    conditions: ConditionMap = []
    """Ready is the agent's; Accepted is the operator's."""
    templates: Annotated[
        list[TemplateID], Field(max_length=2048, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """Templates held on the machine, from which sandboxes start fast. Written by the agent."""
    images: Annotated[
        list[Image], Field(max_length=MAX_IMAGES, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """Images held on the machine, the largest ones. Written by the agent."""
