"""What becomes a setting of the SchedulerConfig."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from cubesched.policy.migration.durations import seconds_of, written
from cubesched.policy.migration.keys import key_of
from cubesched.policy.migration.notes import Fate
from cubesched.policy.migration.yamltree import Block

Spec = dict[str, Any]

_DEFAULT_MOST_SANDBOXES: Final = 3000
_LEAST_AGE, _MOST_AGE = 5.0, 3600.0
_SILENCE: Final = "a node may be silent for 1h there, for 300s here"
_RESERVED: Final = "10 GiB are kept free there, 10 GiB or 10 % here, whichever is smaller"


def settings_spec(scheduler: Block, cubelet: Block | None) -> Spec:
    """Return the part of the spec that is neither legacy block nor score tree."""
    spec: Spec = {}
    if "profile_route_label_keys" in scheduler:
        spec["profileRouteLabelKeys"] = scheduler.names("profile_route_label_keys")
    elif scheduler.values.get("profiles"):
        spec["profileRouteLabelKeys"] = []  # there no label may route unless it is listed
    for key, field in (
        ("disable_factory_profiles", "disableFactoryProfiles"),
        ("ignore_redis_allocation", "ignoreRedisAllocation"),
    ):
        if scheduler.flag(key):
            spec[field] = True
    spec |= _block("overcommit", _overcommit(scheduler))
    spec |= _block("guards", _guards(scheduler, cubelet))
    return spec


def _block(name: str, content: Mapping[str, Any]) -> Spec:
    return {name: dict(content)} if content else {}


def _overcommit(scheduler: Block) -> Spec:
    ratios, spec = scheduler.block("overcommit_ratio"), {}
    for key, field in (("cpu_ratio", "cpu"), ("mem_ratio", "memory")):
        ratio = bounded(ratios, key, 1, 16) if ratios else None
        if ratios and ratio is not None:
            spec[field] = ratio
            path = f"scheduler.overcommit_ratio.{key}"
            ratios.note(key, Fate.CHANGED, key_of(path).why)
    return spec


def _guards(scheduler: Block, cubelet: Block | None) -> Spec:
    spec: Spec = {
        "maxCpuUtilPercent": bounded(scheduler, "node_max_cpu_util", 1, 100),
        "diskUsageMaxPercent": bounded(scheduler, "disk_usage_max_percent", 1, 100),
        "memoryReserved": _reserved(scheduler),
        "maxSandboxesPerNode": _most_sandboxes(scheduler),
        "metricsMaxAge": _age(scheduler),
    }
    if cubelet is not None:
        limit = bounded(cubelet, "create_concurrent_limit", 1, 100_000)
        spec["createConcurrencyLimit"] = None if limit is None else int(limit)
    return {field: value for field, value in spec.items() if value is not None}


def _reserved(scheduler: Block) -> str | None:
    key = "node_max_mem_reserved_in_mb"
    amount = bounded(scheduler, key, 1, 1 << 40)
    if amount is None:
        scheduler.notes.add(Fate.DEFAULT, 0, scheduler.at(key), _RESERVED)
        return None
    scheduler.note(key, Fate.CHANGED, key_of(f"scheduler.{key}").why)
    return f"{int(amount)}Mi"


def _most_sandboxes(scheduler: Block) -> int | None:
    number = bounded(scheduler, "node_max_mvm_num", 1, 100_000)
    key = "node_max_mvm_num_reserve_num_percent"
    share = bounded(scheduler, key, 0, 1) or 1.0
    if share == 1.0:
        return None if number is None else int(number)
    scheduler.note(key, Fate.CHANGED, key_of(f"scheduler.{key}").why)
    return max(1, math.ceil((number or _DEFAULT_MOST_SANDBOXES) * share))


def _age(scheduler: Block) -> str | None:
    key = "metric_update_timeout"
    seconds = duration(scheduler, key)
    if not seconds:
        scheduler.notes.add(Fate.DEFAULT, 0, scheduler.at(key), _SILENCE)
        return None
    age = min(max(seconds, _LEAST_AGE), _MOST_AGE) if seconds > 0 else _MOST_AGE
    if age != seconds:
        why = f"at least 5s, at most 1h: written as {written(age)}"
        scheduler.note(key, Fate.CHANGED, why)
    return written(age)


def duration(block: Block, key: str) -> float | None:
    """Return the seconds of a key; None where it is left out or no duration."""
    text = block.text(key)
    seconds = None if text is None else seconds_of(text)
    if text is not None and seconds is None:
        block.note(key, Fate.LOST, "must be a duration, as in 300s")
    return seconds


def bounded(block: Block, key: str, least: float, most: float) -> float | int | None:
    """Return a number within bounds; None where it is left out or 0, which there is the same."""
    number = block.number(key)
    if not number:
        return None
    if number < 0:
        block.note(key, Fate.LOST, "must not be negative")
        return None
    kept = min(max(number, least), most)
    if kept != number:
        why = f"must be from {least:g} to {most:g}: written as {kept:g}"
        block.note(key, Fate.CHANGED, why)
    return kept
