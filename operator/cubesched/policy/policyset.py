"""One compiled, immutable policy: what an attempt leases and keeps until it ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from cubesched.core.pipeline import Pipeline
from cubesched.core.request import Request


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
    ignore_redis_allocation: bool = False
    guards: GuardSettings = GuardSettings()
    initial_backoff_seconds: float = 1.0
    max_backoff_seconds: float = 10.0
    flush_interval_seconds: float = 60.0
    max_in_flight: int = 256
    own_nodes_first: bool = True
    start_deadline_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Route:
    """Every part given must match; a default Profile has an empty route and is tried last."""

    instance_types: tuple[re.Pattern[str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    def matches(self, instance_type: str, labels: Mapping[str, str]) -> bool:
        """Tell whether a request with these facts takes this route."""
        if self.instance_types and not any(p.fullmatch(instance_type) for p in self.instance_types):
            return False
        return all(labels.get(key) == value for key, value in self.labels)


@dataclass(frozen=True, slots=True)
class CompiledProfile:
    """One Profile of the set; `generation` is 0 for a factory Profile."""

    name: str
    generation: int
    route: Route
    is_default: bool
    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class PolicySet:
    """The Profiles in the order they are tried, default last, and the settings beside them."""

    revision: str
    """Hash of the specs, the same on every replica."""
    source: str
    """custom, factory, or none (factory disabled and nothing configured)."""
    settings: Settings
    config_generation: int
    profiles: tuple[CompiledProfile, ...]

    def route(self, request: Request) -> Pipeline | None:
        """Return the first matching Profile's pipeline, None when no Profile matches."""
        for profile in self.profiles:
            if profile.is_default or profile.route.matches(request.instance_type, request.labels):
                return profile.pipeline
        return None
