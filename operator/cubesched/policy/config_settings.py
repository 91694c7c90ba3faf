"""From SchedulerConfig.spec to the plain settings that fleet, policy and scheduling read."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from cubesched.api.duration import parse_seconds
from cubesched.api.quantity import parse_units
from cubesched.api.v1alpha1 import SchedulerConfigSpec
from cubesched.policy.legacy import PATH as LEGACY_PATH
from cubesched.policy.legacy import check_legacy
from cubesched.policy.objects import CONFIG_NAME, NOT_THE_CONFIG, PolicyObject, ProblemList
from cubesched.policy.policyset import Confirmation, GuardSettings, Settings
from cubesched.policy.reading import read
from cubesched.policy.score_settings import PATH as SCORE_PATH
from cubesched.policy.score_settings import check_score_tree


def check_config(config: PolicyObject | None, problems: ProblemList) -> SchedulerConfigSpec | None:
    """Return the config's model, all defaults where none is stored, None where it is invalid."""
    if config is None:
        return SchedulerConfigSpec()
    if config.name != CONFIG_NAME:
        problems.add("metadata.name", NOT_THE_CONFIG)
    check_score_tree(problems)
    check_legacy(problems)
    spec = read(SchedulerConfigSpec, problems)
    return None if problems.covers(SCORE_PATH) or problems.covers(LEGACY_PATH) else spec


def settings_of(spec: SchedulerConfigSpec) -> Settings:
    """Return the settings; over-commit factors are exact, as their decimal text says."""
    return Settings(
        profile_route_label_keys=tuple(spec.profile_route_label_keys),
        disable_factory_profiles=spec.disable_factory_profiles,
        overcommit_cpu=exact(spec.overcommit.cpu),
        overcommit_memory=exact(spec.overcommit.memory),
        paused_resource_release_ratio=exact(spec.paused_resource_release_ratio),
        ignore_redis_allocation=spec.ignore_redis_allocation,
        guards=_guards(spec),
        initial_backoff_seconds=parse_seconds(spec.queue.initial_backoff),
        max_backoff_seconds=parse_seconds(spec.queue.max_backoff),
        flush_interval_seconds=parse_seconds(spec.queue.flush_interval),
        max_in_flight=spec.concurrency.max_in_flight,
        own_nodes_first=spec.concurrency.own_nodes_first,
        start_deadline_seconds=parse_seconds(spec.start_deadline),
        node_lost_grace_seconds=parse_seconds(spec.node_lost_grace),
        confirmation=Confirmation(spec.confirmation),
    )


def exact(factor: float) -> Fraction:
    """Return the fraction that the factor's shortest decimal text names: 1.1 is 11/10."""
    return Fraction(str(factor))


def route_label_keys(config: PolicyObject | None) -> Sequence[str] | None:
    """Return the labels routes may look at; None where the config is too broken to tell."""
    default = SchedulerConfigSpec().profile_route_label_keys
    if config is None:
        return default
    keys: Any = config.spec.get("profileRouteLabelKeys") if isinstance(config.spec, dict) else None
    if keys is None:
        return default
    is_readable = isinstance(keys, list) and all(isinstance(key, str) for key in keys)
    return keys if is_readable else None


def _guards(spec: SchedulerConfigSpec) -> GuardSettings:
    guards = spec.guards
    reserved = guards.memory_reserved
    return GuardSettings(
        max_cpu_util_percent=guards.max_cpu_util_percent,
        disk_usage_max_percent=guards.disk_usage_max_percent,
        memory_reserved_bytes=None if reserved is None else parse_units(reserved, round_up=True),
        max_sandboxes_per_node=guards.max_sandboxes_per_node,
        create_concurrency_limit=guards.create_concurrency_limit,
        metrics_max_age_seconds=parse_seconds(guards.metrics_max_age),
    )
