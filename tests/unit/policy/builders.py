"""Policy objects as the API server would hand them out."""

from __future__ import annotations

from typing import Any

from cubesched.policy.objects import CONFIG_KIND, CONFIG_NAME, PROFILE_KIND, PolicyObject


def a_profile(name: str = "burst", *, generation: int = 1, **spec: Any) -> PolicyObject:
    """A Profile that serves `workload: NAME`, unless told otherwise."""
    if "route" not in spec and not spec.get("default"):
        spec["route"] = {"labels": {"workload": name}}
    return raw_profile(name, spec, generation=generation)


def raw_profile(name: str, spec: Any, *, generation: int = 1, uid: str = "") -> PolicyObject:
    """A Profile with exactly this spec, however malformed."""
    return PolicyObject(PROFILE_KIND, name, uid or f"uid-{name}", generation, "1", spec)


def a_config(*, generation: int = 1, name: str = CONFIG_NAME, **spec: Any) -> PolicyObject:
    """A SchedulerConfig."""
    return PolicyObject(CONFIG_KIND, name, f"uid-{name}", generation, "1", spec)
