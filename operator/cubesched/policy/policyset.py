"""One compiled, immutable policy: what an attempt leases and keeps until it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cubesched.core.pipeline import Pipeline
from cubesched.core.request import Request
from cubesched.core.scheduler_settings import Confirmation, GuardSettings, Settings
from cubesched.policy.patterns import Pattern

__all__ = ["CompiledProfile", "Confirmation", "GuardSettings", "PolicySet", "Route", "Settings"]


@dataclass(frozen=True, slots=True)
class Route:
    """Every part given must match; a default Profile has an empty route and is tried last."""

    instance_types: tuple[Pattern, ...] = ()
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
    uid: str = ""
    """The object it was compiled from: one recreated under the same name is another Profile."""
    source: str = "custom"
    """custom, factory, legacy (the SchedulerConfig's block) or none (nothing is configured)."""
    places: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Where the object lists a plugin: `spec.filters[2]` by `("filters", name)`."""


@dataclass(frozen=True, slots=True)
class PolicySet:
    """The Profiles in the order they are tried, default last, and the settings beside them."""

    revision: str
    """Hash of the specs, the same on every replica."""
    source: str
    """custom, factory, legacy, or none (factory disabled and nothing configured)."""
    settings: Settings
    config_generation: int
    profiles: tuple[CompiledProfile, ...]
    config_uid: str = ""
    """Empty while no SchedulerConfig exists."""

    def route(self, request: Request) -> Pipeline | None:
        """Return the first matching Profile's pipeline, None when no Profile matches."""
        for profile in self.profiles:
            if profile.is_default or profile.route.matches(request.instance_type, request.labels):
                return profile.pipeline
        return None
