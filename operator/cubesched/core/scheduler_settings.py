"""SchedulerConfig.spec as plain values, with its defaults; read by fleet, policy and scheduling."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction


class Confirmation(StrEnum):
    """Who checks a reservation against all others before it counts as a binding."""

    OPERATOR = "operator"
    AGENT = "agent"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """The bounds of the guards, from SchedulerConfig.spec.guards."""

    max_cpu_util_percent: float = 80.0
    disk_usage_max_percent: float = 80.0
    memory_reserved_bytes: int | None = None
    """None: the smaller of 10 Gi and 10 % of the node's memory."""
    max_sandboxes_per_node: int = 3000
    create_concurrency_limit: int = 100
    metrics_max_age_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything else of SchedulerConfig.spec, with its defaults."""

    profile_route_label_keys: tuple[str, ...] = ("workload",)
    disable_factory_profiles: bool = False
    overcommit_cpu: Fraction = Fraction(1)
    overcommit_memory: Fraction = Fraction(1)
    paused_resource_release_ratio: Fraction = Fraction(0)
    """Of every node without a ratio of its own."""
    ignore_redis_allocation: bool = False
    guards: GuardSettings = GuardSettings()
    initial_backoff_seconds: float = 1.0
    max_backoff_seconds: float = 10.0
    flush_interval_seconds: float = 60.0
    max_in_flight: int = 256
    own_nodes_first: bool = True
    start_deadline_seconds: float = 300.0
    node_lost_grace_seconds: float = 300.0
    confirmation: Confirmation = Confirmation.OPERATOR
