"""SandboxRequest: one sandbox to be placed, and all that happened to it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from cubesched.api.conditions import MAX_CONDITIONS
from cubesched.api.v1alpha1.common import Condition, Model
from cubesched.api.v1alpha1.schema import ATOMIC, extra, rule
from cubesched.api.v1alpha1.values import (
    EACH_ONCE,
    BytesAsked,
    BytesOrNone,
    CpuAsked,
    ImageName,
    InstanceType,
    LabelKey,
    Labels,
    LabelValue,
    ObjectName,
    TemplateID,
    Timestamp,
)

Phase = Literal[
    "Pending",
    "Reserved",
    "Bound",
    "Starting",
    "Running",
    "Paused",
    "Evicting",
    "Succeeded",
    "Failed",
]
Amount = Annotated[int, Field(ge=0, le=1 << 60)]

_TOLERATION = "operator Equal needs a key, operator Exists takes no value"


class RequestResources(Model):
    """What the sandbox needs, fractions rounded up."""

    cpu: CpuAsked
    """Cores, as in 2, 500m or "0.5" (quote a fraction). More than 0."""
    memory: BytesAsked
    """Memory in bytes, as in 4Gi. More than 0."""
    system_disk: BytesOrNone = 0
    """System disk in bytes, as in 10Gi. Default: 0, it takes none that counts."""


class SchedulingGate(Model):
    """One reason to hold the request back."""

    name: LabelKey
    """Who holds it back, spelled like a label key."""


class Toleration(Model):
    """Lets the request onto nodes with a matching taint."""

    model_config = ConfigDict(
        json_schema_extra=extra(
            rule(
                "has(self.operator) && self.operator == 'Exists'"
                " ? !has(self.value) || self.value == '' : has(self.key)",
                _TOLERATION,
            )
        )
    )

    key: LabelKey | None = None
    """The taint's key. Default: unset, every key, with operator Exists only."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """Equal compares the value, Exists does not. Default: Equal, as for pods."""
    value: LabelValue = ""
    """The taint's value, for operator Equal. Default: empty."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """The taint's effect. Default: unset, every effect."""

    @model_validator(mode="after")
    def _key_and_value_suit_the_operator(self) -> Toleration:
        """Refuse what the server's rule refuses."""
        if self.value if self.operator == "Exists" else self.key is None:
            raise ValueError(_TOLERATION)
        return self


class SandboxRequestSpec(Model):
    """What is asked for; once created only `priority`, `paused` and fewer gates may follow."""

    model_config = ConfigDict(json_schema_extra=ATOMIC)

    instance_type: InstanceType = "cubebox"
    """The kind of sandbox runtime. Default: cubebox."""
    resources: RequestResources
    """What the sandbox needs."""
    template_id: TemplateID | None = None
    """The template it starts from; only nodes that hold it qualify. Default: unset, none."""
    template_node_scope: Annotated[
        list[ObjectName], Field(max_length=256, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """The only nodes it may be placed on, as for a template stored on some. Default: all nodes."""
    allow_non_local_template: bool = False
    """True also allows nodes that must fetch the template first: slower. Default: false."""
    images: Annotated[
        list[ImageName],
        Field(max_length=16, json_schema_extra=extra(list_type="set")),
        EACH_ONCE,
    ] = []
    """Images it starts from, spelled as nodes report them; only scores look at them.
    Default: none."""
    node_selector: Labels = {}
    """Labels the node must have. Default: none."""
    tolerations: Annotated[
        list[Toleration], Field(max_length=32, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """Taints the request puts up with. Default: none."""
    priority: Annotated[int, Field(ge=-1_000_000_000, le=1_000_000_000)] = 0
    """Higher is tried first; equal ones in order of age. Default: 0."""
    scheduling_gates: Annotated[
        list[SchedulingGate], Field(max_length=16, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """It is not placed while any stands; each is removed by whoever asked for it. Default: none."""
    paused: bool = False
    """True pauses the sandbox once it runs, false resumes it on its node; one created with
    true, or that waits for a node, is not placed. Default: false."""
    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=(1 << 31) - 1)] | None = None
    """Seconds after its end at which the request is deleted. Default: unset, never."""
    shutdown_time: Timestamp | None = None
    """When the sandbox is stopped, or the wait for a node ends. Default: unset, never."""


class PausedWeight(Model):
    """What a paused sandbox still takes."""

    cpu_millis: Amount
    """Thousandths of a core."""
    memory_bytes: Amount
    """Bytes of memory."""


class Reservation(Model):
    """What was admitted on the node; limits count this, never a later spec."""

    model_config = ConfigDict(json_schema_extra=ATOMIC)

    id: Annotated[str, Field(min_length=16, max_length=64, pattern=r"^[-A-Za-z0-9_]+$")]
    """128 random bits, new in every reservation; a confirmation is for this id only."""
    replica: Annotated[str, Field(min_length=1, max_length=128)]
    """The operator process that made it."""
    time: Timestamp | None = None
    """When it was made, by that process's clock."""
    node_uid: Annotated[str, Field(max_length=64)] | None = None
    """metadata.uid of the SandboxNode reserved on; one of the same name later is another."""
    cpu_millis: Amount
    """Thousandths of a core."""
    memory_bytes: Amount
    """Bytes of memory."""
    disk_bytes: Amount = 0
    """Bytes of system disk. Default: 0."""
    resume: Annotated[str, Field(max_length=253)] | None = None
    """The paused sandbox that this reservation is to resume; unset for a new one."""
    paused: PausedWeight | None = None
    """What counts while the phase is Paused; stamped by the agent once the machine let go."""
    confirmation: Literal["operator", "agent", "none"] | None = None
    """Who confirms it, where that is not the operator; none says that nobody has."""


class Refusal(Model):
    """A node whose agent could not start the sandbox."""

    node: ObjectName
    """The node; it is left out for 5 minutes."""
    reason: Annotated[str, Field(max_length=256)] = ""
    """The agent's word for it."""
    time: Timestamp
    """When it refused."""


class SandboxRequestStatus(Model):
    """What became of it: the operator writes until it is bound, the node's agent after that."""

    model_config = ConfigDict(
        json_schema_extra=extra(
            # One rule of few accesses: each costs every status write.
            rule(
                "self.phase in ['Succeeded', 'Failed'] || (self.phase == 'Pending'"
                " ? !has(self.nodeName) && !has(self.reservation)"
                " : has(self.nodeName) && has(self.reservation))",
                "a request that is placed has a nodeName and a reservation, one that is Pending"
                " has neither",
            )
        )
    )

    phase: Phase = "Pending"
    """Where it stands: Pending, Reserved, Bound, Starting, Running, Paused or Evicting, then
    Succeeded or Failed."""
    node_name: ObjectName | None = None
    """The SandboxNode it is on; usable in a field selector."""
    profile: Annotated[str, Field(max_length=253)] | None = None
    """The SchedulerProfile that decided."""
    policy_revision: Annotated[str, Field(max_length=64)] | None = None
    """The revision of the policy set that decided."""
    attempts: Annotated[int, Field(ge=0, le=(1 << 31) - 1)] = 0
    """Verdicts on it so far; what failed for want of reports or policy is none."""
    next_attempt_time: Timestamp | None = None
    """Before this it is not tried again, unless something changes that could help."""
    reservation: Reservation | None = None
    """What was admitted on the node."""
    refusals: Annotated[
        list[Refusal], Field(max_length=8, json_schema_extra=extra(list_type="atomic"))
    ] = []
    """The last nodes whose agent could not start it, newest last."""
    sandbox_id: Annotated[str, Field(max_length=253)] | None = None
    """The sandbox on the node."""
    endpoint: Annotated[str, Field(max_length=512)] | None = None
    """Where the sandbox can be reached, once it runs."""
    finished_time: Timestamp | None = None
    """When it succeeded or failed."""
    score: Annotated[str, Field(max_length=20)] | None = None
    """The chosen node's score, 0 to 100."""
    conditions: Annotated[
        list[Condition],
        Field(max_length=MAX_CONDITIONS, json_schema_extra=extra(list_type="atomic")),
    ] = []
    """Scheduled says whether it has a node, Ready whether the sandbox runs."""
    explanation: Annotated[str, Field(max_length=4096)] | None = None
    """Why it waits or why this node, in a few lines for people."""
