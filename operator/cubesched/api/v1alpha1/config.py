"""SchedulerConfig: the settings of the whole scheduler, one object named `default`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from cubesched.api import duration
from cubesched.api.v1alpha1.common import ConditionMap, Model, Problems
from cubesched.api.v1alpha1.legacy import Legacy
from cubesched.api.v1alpha1.schema import SHORT_KEYS, extra, rule
from cubesched.api.v1alpha1.values import (
    EACH_ONCE,
    BytesOrNone,
    DurationBetween,
    FactorWeight,
    LabelKey,
    PluginName,
)

Ratio = Annotated[float, Field(ge=1, le=16)]
Percent = Annotated[float, Field(ge=1, le=100)]
PerNode = Annotated[int, Field(ge=1, le=100_000)]


class Overcommit(Model):
    """Factors on every node's quota; leave them at 1 where nodes carry their own quota."""

    cpu: Ratio = 1.0
    """Factor on cores, 1 to 16. Default: 1, no over-commit."""
    memory: Ratio = 1.0
    """Factor on memory, 1 to 16. Default: 1, no over-commit."""


class GuardSettings(Model):
    """Bounds of the guards, which are always on."""

    max_cpu_util_percent: Percent = 80.0
    """A node this busy or busier takes nothing new, in percent. Default: 80."""
    disk_usage_max_percent: Percent = 80.0
    """A node with any disk this full takes nothing new, in percent. Default: 80."""
    memory_reserved: BytesOrNone | None = None
    """Bytes kept free of a node's real memory. Default: 10Gi or 10 %, the smaller."""
    max_sandboxes_per_node: PerNode = 3000
    """Most sandboxes on a node without a quota of its own. Default: 3000."""
    create_concurrency_limit: PerNode = 100
    """Most creates in flight on a node without a quota of its own. Default: 100."""
    metrics_max_age: Annotated[str, DurationBetween("5s", "1h")] = "300s"
    """A node silent for this long takes nothing new, 5s to 1h. Default: 300s."""


class ScoreSwitches(Model):
    """What holds for one score in every Profile whose `args` do not name its factors."""

    factors: (
        Annotated[
            list[PluginName],
            Field(max_length=32, json_schema_extra=extra(list_type="set")),
            EACH_ONCE,
        ]
        | None
    ) = None
    """What it rates by; an empty list switches it off. Default: the score's own factors."""
    disabled: bool = False
    """True takes the score out: no rating, no weight. Default: false."""


class ScoreSettings(Model):
    """The global score tree; `factors` in the `args` of a Profile win over all of it."""

    resource_weights: Annotated[
        dict[PluginName, FactorWeight], Field(max_length=32, json_schema_extra=SHORT_KEYS)
    ] = {}
    """Weight of each factor, 0 to 1000000; 0 switches it off. Default: 1 for each."""
    plugins: Annotated[
        dict[PluginName, ScoreSwitches], Field(max_length=32, json_schema_extra=SHORT_KEYS)
    ] = {}
    """Switches of single scores, by name. Default: none."""


class QueueSettings(Model):
    """When requests that wait are tried again."""

    model_config = ConfigDict(
        json_schema_extra=extra(
            rule(
                "duration(self.initialBackoff) <= duration(self.maxBackoff)",
                "initialBackoff must not be longer than maxBackoff",
            )
        )
    )

    initial_backoff: Annotated[str, DurationBetween("10ms", "10m")] = "1s"
    """Least time before the second attempt; doubles with each one. Default: 1s."""
    max_backoff: Annotated[str, DurationBetween("10ms", "1h")] = "10s"
    """Most that the least time grows to. Default: 10s."""
    flush_interval: Annotated[str, DurationBetween("1s", "1h")] = "60s"
    """Every request that waits is tried about this often. Default: 60s."""

    @model_validator(mode="after")
    def _backoff_can_grow(self) -> QueueSettings:
        """Refuse what the server's rule refuses."""
        if duration.parse_nanos(self.initial_backoff) > duration.parse_nanos(self.max_backoff):
            raise ValueError("initialBackoff must not be longer than maxBackoff")
        return self


class ConcurrencySettings(Model):
    """How much is under way at a time, over all replicas."""

    max_in_flight: Annotated[int, Field(ge=1, le=65_536)] = 256
    """Requests between decision and confirmation, shared by the live replicas. Default: 256."""
    own_nodes_first: bool = True
    """Replicas prefer different nodes of about equal score: fewer conflicts. Default: true."""


class SchedulerConfigSpec(Model):
    """Settings of the whole scheduler; every one has a default."""

    profile_route_label_keys: Annotated[
        list[LabelKey],
        Field(max_length=16, json_schema_extra=extra(list_type="set")),
        EACH_ONCE,
    ] = ["workload"]
    """The only request labels that routes and plugins may see. Default: workload."""
    disable_factory_profiles: bool = False
    """True runs no built-in Profiles where none is Active. Default: false."""
    overcommit: Overcommit = Overcommit()
    """Factors on every node's quota."""
    paused_resource_release_ratio: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of cores and memory that a paused sandbox gives up, 0 to 1. Default: 0, none."""
    ignore_redis_allocation: bool = False
    """True ignores what nodes report beyond the requests placed here. Default: false."""
    guards: GuardSettings = GuardSettings()
    """Bounds of the guards."""
    score: ScoreSettings = ScoreSettings()
    """What scores rate by where a Profile does not say."""
    queue: QueueSettings = QueueSettings()
    """When requests that wait are tried again."""
    concurrency: ConcurrencySettings = ConcurrencySettings()
    """How much is under way at a time."""
    start_deadline: Annotated[str, DurationBetween("1s", "24h")] = "300s"
    """A bound request its agent has not begun by then goes to another node. Default: 300s."""
    node_lost_grace: Annotated[str, DurationBetween("1s", "24h")] = "300s"
    """What runs on a node that fell silent is given up after this. Default: 300s."""
    confirmation: Literal["operator", "agent", "none"] = "operator"
    """Who checks a reservation against all others: the operator, the node's agent (one write
    less), or none (one write, over-dispatch possible for a moment). Default: operator."""
    legacy: Legacy | None = None
    """Settings of CubeMaster, run as the default Profile named default; no other may be one.
    Default: none."""


class SchedulerConfigStatus(Model):
    """What the replicas made of it, written by the operator."""

    active_revision: Annotated[str, Field(max_length=64)] | None = None
    """The revision of the policy set that runs."""
    problems: Problems = []
    """Everything wrong with this object, each line starting with its field."""
    conditions: ConditionMap = []
    """Accepted, Active, and whether the factory Profiles run."""
