"""The table of CubeMaster's keys: what each becomes here, or why it becomes nothing.

The reference page of the migration is made from it, and the notes in manifests take their words
from it. Paths are those of the whole file; `*` stands for a name, `[]` for each entry of a list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cubesched.policy.migration.notes import Fate


@dataclass(frozen=True, slots=True)
class Key:
    """One key: `here` is the field it becomes, empty where it becomes none."""

    path: str
    here: str
    why: str = ""
    """What to know of it; the reason where it is not carried over."""
    fate: Fate = Fate.CHANGED
    """What its note says: of keys that become nothing LOST or IGNORED."""


def _lost(path: str, why: str) -> Key:
    return Key(path, "", why, Fate.LOST)


def _ignored(path: str, why: str) -> Key:
    return Key(path, "", why, Fate.IGNORED)


_OLD_PICK: Final = "legacy where no Profile is the default"
_ENTRY: Final = "scheduler.profiles[].filters[], scores[]"

SETTINGS: Final = (
    Key("scheduler.profile_route_label_keys", "profileRouteLabelKeys"),
    Key("scheduler.disable_factory_profiles", "disableFactoryProfiles"),
    Key("scheduler.ignore_redis_allocation", "ignoreRedisAllocation"),
    Key(
        "scheduler.overcommit_ratio.cpu_ratio",
        "overcommit.cpu",
        "newer CubeMaster ignores this key: take it out where yours does",
    ),
    Key(
        "scheduler.overcommit_ratio.mem_ratio",
        "overcommit.memory",
        "newer CubeMaster ignores this key: take it out where yours does",
    ),
    Key("scheduler.node_max_cpu_util", "guards.maxCpuUtilPercent"),
    Key("scheduler.disk_usage_max_percent", "guards.diskUsageMaxPercent"),
    Key(
        "scheduler.node_max_mem_reserved_in_mb",
        "guards.memoryReserved",
        "kept free on every node; CubeMaster keeps 10 % on nodes with a smaller memory quota",
    ),
    Key("scheduler.node_max_mvm_num", "guards.maxSandboxesPerNode"),
    Key(
        "scheduler.node_max_mvm_num_reserve_num_percent",
        "guards.maxSandboxesPerNode",
        "multiplied in, so the factor mvm_num counts against the smaller number",
    ),
    Key("scheduler.metric_update_timeout", "guards.metricsMaxAge"),
    Key("cubelet_conf.create_concurrent_limit", "guards.createConcurrencyLimit"),
)
"""What becomes a setting of the SchedulerConfig."""

LEGACY: Final = (
    Key("scheduler.filter.enable_filters", "legacy.filter.enableFilters"),
    Key("scheduler.score.enable_scorers", "legacy.score.enableScorers"),
    Key("scheduler.score.resource_weights.*", "legacy.score.resourceWeights.*"),
    Key("scheduler.score.plugin_conf.*.weight", "legacy.score.pluginConf.*.weight"),
    Key(
        "scheduler.score.plugin_conf.*.enable_weight_factors",
        "legacy.score.pluginConf.*.enableWeightFactors",
    ),
    Key("scheduler.score.plugin_conf.*.disable", "legacy.score.pluginConf.*.disable"),
    _ignored(
        "scheduler.score.plugin_conf.*.score_interval", "every decision rates by what is so now"
    ),
    Key("scheduler.postscore.disable", "legacy.postscore.disable"),
    Key("scheduler.postscore.param_factor", "legacy.postscore.paramFactor"),
    Key("scheduler.postscore.resource_weights.*", "legacy.postscore.resourceWeights.*"),
    Key("scheduler.postscore.active_white_list", "legacy.postscore.activeWhiteList"),
    Key("scheduler.postscore.negative_white_list", "legacy.postscore.negativeWhiteList"),
    Key("scheduler.priority_select_num", "legacy.prioritySelectNum"),
    Key("scheduler.least_select_name", "legacy.leastSelectName"),
    Key(
        "scheduler.scarce_resource_filter.enable",
        "legacy.filter.enableFilters, and filter scarce_resource of every Profile",
    ),
    Key(
        "scheduler.scarce_resource_filter.label", "args.labels of scarce_resource in every Profile"
    ),
)
"""What becomes the legacy block where no Profile is the default; of the score block, what Profiles
rate by as well."""

PROFILES: Final = (
    Key("scheduler.profiles[]", "a SchedulerProfile; the place in the list becomes order"),
    Key("scheduler.profiles[].name", "metadata.name, in lower case, with - for _"),
    Key("scheduler.profiles[].default", "default"),
    Key("scheduler.profiles[].route.instance_types", "route.instanceTypes"),
    Key("scheduler.profiles[].route.labels.*", "route.labels.*"),
    Key(f"{_ENTRY}.name", "name"),
    Key(f"{_ENTRY}.type", "type; go becomes builtin"),
    Key(f"{_ENTRY}.enabled", "enabled"),
    Key(f"{_ENTRY}.weight", "weight; left out it is the one of plugin_conf"),
    Key(f"{_ENTRY}.default_score", "defaultScore"),
    Key(f"{_ENTRY}.expr", "expr"),
    Key(f"{_ENTRY}.socket_path", "socketPath"),
    Key(f"{_ENTRY}.timeout", "timeout"),
    Key(f"{_ENTRY}.circuit_breaker_failures", "circuitBreakerFailures"),
    Key(f"{_ENTRY}.circuit_breaker_cooldown", "circuitBreakerCooldown"),
    Key(f"{_ENTRY}.args", "args"),
    Key("scheduler.profiles[].selection.top_n", "selection.topN"),
    Key("scheduler.profiles[].selection.method", "selection.method"),
    Key("scheduler.profiles[].failure.filter", "failure.filter"),
    Key("scheduler.profiles[].failure.score", "failure.score"),
    Key("scheduler.profiles[].failure.no_candidate", "failure.noCandidate; left out it is fail"),
)
"""What becomes SchedulerProfiles."""

GONE: Final = (
    _lost("scheduler.pre_select_num", "all nodes are looked at"),
    _lost(
        "scheduler.overcommit_ratio_conf",
        "set the quota of these nodes (SandboxNode spec.quota), which over-commit multiplies",
    ),
    _lost(
        "scheduler.node_max_mvm_num_conf",
        "set the quota of these nodes: SandboxNode spec.quota.sandboxes",
    ),
    _lost(
        "scheduler.node_max_mem_reserved_conf",
        "what is kept free is the same on all nodes: guards.memoryReserved",
    ),
    _lost("scheduler.max_mvm_cpu", "no request is refused for its size alone: use a quota"),
    _lost("scheduler.max_mvm_memory", "no request is refused for its size alone: use a quota"),
    _lost(
        "scheduler.affinityconf",
        "give the nodes a label, and the requests a spec.nodeSelector",
    ),
    _lost(
        "scheduler.large_size_affinity_conf",
        "give the nodes a label, and large requests a spec.nodeSelector or a route of their own",
    ),
    _lost(
        "scheduler.instance_type_conf",
        "say on each node which type it accepts: SandboxNode spec.instanceType",
    ),
    _lost(
        "scheduler.disable_circuit_filter",
        "a node that refused a request is left out for it for some minutes",
    ),
    _ignored("scheduler.local_metric_update_timeout", "CubeMaster reads it and uses it nowhere"),
    _ignored(
        "scheduler.disable_backoff_filter_instance_type",
        "no request is placed past the guards, so there is nothing to disable",
    ),
    _ignored("scheduler.thirtparty_filter_instance_type", "the filter kept every node"),
    _ignored("scheduler.in_backoff_mode", "a request that fits nowhere waits"),
    _ignored(
        "scheduler.node_affinity_selector_allowed_keys",
        "spec.nodeSelector may name any label of nodes",
    ),
    _ignored("scheduler.overhead", "the scheduler adds none: requests ask for what they need"),
    _ignored("scheduler.enable_run_instance_host_ips", "requests name no host"),
    _ignored(
        "scheduler.reservation_redis_error_policy",
        "reservations are writes to the API server, not to Redis",
    ),
)
"""What becomes nothing."""

KEYS: Final = (*SETTINGS, *LEGACY, *PROFILES, *GONE)

_BY_PATH: Final = {key.path: key for key in KEYS}


def key_of(path: str) -> Key:
    """Return the row of a path; names and places in lists are to be left out by the caller."""
    return _BY_PATH[path]
