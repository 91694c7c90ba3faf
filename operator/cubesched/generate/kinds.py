"""The table of kinds: models, columns and selectable fields, from which CRDs and pages are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cubesched.api import CONFIGS, NODES, PROFILES, REQUESTS, Resource
from cubesched.api.v1alpha1 import (
    Model,
    SandboxNodeSpec,
    SandboxNodeStatus,
    SandboxRequestSpec,
    SandboxRequestStatus,
    SchedulerConfigSpec,
    SchedulerConfigStatus,
    SchedulerProfileSpec,
    SchedulerProfileStatus,
)
from cubesched.api.v1alpha1.schema import Rule, rule


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`; wide ones show with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    is_wide: bool = False
    what: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """All that a CRD and its reference page need to know of one kind."""

    resource: Resource
    what: str
    spec: type[Model]
    status: type[Model]
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    is_spec_required: bool = True
    is_status_defaulted: bool = False
    """True shows the defaults of status from the first moment on."""


AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")


def _condition(kind: str, field: str = "status") -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


PROFILE: Final = Kind(
    resource=PROFILES,
    what="A scheduling policy: which requests it serves and how their node is chosen.",
    spec=SchedulerProfileSpec,
    status=SchedulerProfileStatus,
    columns=(
        Column("Active", _condition("Active"), what="Whether this generation runs"),
        Column("Revision", ".status.activeRevision", what="The policy set that runs"),
        Column("Order", ".spec.order", "integer", what="Lower is tried first"),
        Column("Default", ".spec.default", "boolean", what="Serves what no other does"),
        Column("Mode", ".spec.mode", what="Active or Disabled"),
        Column("Replicas", ".status.replicasOnRevision", what="Replicas that run the set"),
        Column(
            "Plugins",
            _condition("PluginsHealthy", "reason"),
            is_wide=True,
            what="How plugins in Python and in other processes do; empty without any",
        ),
        AGE,
    ),
)

CONFIG: Final = Kind(
    resource=CONFIGS,
    what="The settings of the whole scheduler: one object, named default.",
    spec=SchedulerConfigSpec,
    status=SchedulerConfigStatus,
    columns=(
        Column("Active", _condition("Active"), what="Whether this generation runs"),
        Column("Revision", ".status.activeRevision", what="The policy set that runs"),
        Column("Factory", _condition("FactoryProfilesActive"), what="Built-in Profiles run"),
        AGE,
    ),
    rules=(rule("self.metadata.name == 'default'", "the only SchedulerConfig is named default"),),
    is_spec_required=False,
)

NODE: Final = Kind(
    resource=NODES,
    what="A machine that runs sandboxes.",
    spec=SandboxNodeSpec,
    status=SandboxNodeStatus,
    columns=(
        Column("Ready", _condition("Ready"), what="The agent's word"),
        Column("Schedulable", ".status.schedulable", what="True, or why it takes nothing new"),
        Column("CPU%", ".status.allocated.cpuPercent", "integer", what="Used of what it may hold"),
        Column("Mem%", ".status.allocated.memoryPercent", "integer", what="Likewise"),
        Column("Sandboxes", ".status.allocated.sandboxes", "integer", what="Placed or running"),
        Column("Creating", ".status.allocated.creating", "integer", what="Creates in flight"),
        Column(
            "Metrics-Age",
            ".status.metricsTime",
            "date",
            what="Since the last report seen; to about a minute while reports come",
        ),
        Column("CPU", ".spec.capacity.cpu", is_wide=True, what="Cores of the machine"),
        Column("Mem", ".spec.capacity.memory", is_wide=True, what="Memory of the machine"),
        Column("Type", ".spec.instanceType", is_wide=True, what="The only type it accepts"),
        AGE,
    ),
)

REQUEST: Final = Kind(
    resource=REQUESTS,
    what="One sandbox to be placed on a node.",
    spec=SandboxRequestSpec,
    status=SandboxRequestStatus,
    columns=(
        Column("Phase", ".status.phase", what="Where it stands"),
        Column("Profile", ".status.profile", what="The Profile that decided"),
        Column("Node", ".status.nodeName", what="The node it is on"),
        Column(
            "Reason",
            '.status.conditions[?(@.status=="False")].reason',
            what="Why it is not scheduled, or once it is, why not running; empty when it runs",
        ),
        Column(
            "Blocked",
            _condition("ResumeBlocked", "reason"),
            is_wide=True,
            what="Why a paused one is not resumed; empty when nothing is in the way",
        ),
        Column("Attempts", ".status.attempts", "integer", what="Decisions so far"),
        Column("CPU", ".spec.resources.cpu", is_wide=True, what="Cores asked for"),
        Column("Mem", ".spec.resources.memory", is_wide=True, what="Memory asked for"),
        Column("Template", ".spec.templateID", is_wide=True, what="Template asked for"),
        Column("Score", ".status.score", is_wide=True, what="The chosen node's score"),
        Column("Revision", ".status.policyRevision", is_wide=True, what="The deciding set"),
        AGE,
    ),
    selectable=(".status.nodeName", ".status.phase"),
    is_status_defaulted=True,
)

KINDS: Final = (PROFILE, CONFIG, NODE, REQUEST)
