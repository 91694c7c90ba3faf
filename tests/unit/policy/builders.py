"""Policy objects as the API server would hand them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cubesched.policy.active import ActivePolicy
from cubesched.policy.compiler import compile_set
from cubesched.policy.objects import CONFIG_KIND, CONFIG_NAME, PROFILE_KIND, PolicyObject
from cubesched.policy.policyset import PolicySet


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


def compiled(profiles: Sequence[PolicyObject], config: PolicyObject | None) -> PolicySet:
    """The set of objects that must compile."""
    result = compile_set(profiles, config)
    assert result.policy is not None, result.problems
    return result.policy


def offer(
    policy: ActivePolicy, profiles: Sequence[PolicyObject], config: PolicyObject | None
) -> None:
    """Compile the objects and have the set adopted."""
    policy.adopt(compile_set(profiles, config))
