"""Warnings that only a look at the live fleet can give, a Profile at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from cubesched.core.answers import settled_mask
from cubesched.core.errors import PluginError
from cubesched.core.pipeline import Filter, FilterFailure
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Safety, Snapshot
from cubesched.plugins.cel.plugins import ExprFilter
from cubesched.policy.objects import CONFIG_KIND, CONFIG_NAME, PROFILE_KIND, Problem
from cubesched.policy.policyset import CompiledProfile, PolicySet

_NAMED = 3
_ASKS_REQUEST = re.compile(r"\b(request|template_local)\b")


def look(profile: CompiledProfile, fleet: Snapshot) -> Iterator[Problem]:
    """Yield a warning for each filter that no live node passes, whoever asks."""
    live = fleet.safety == Safety.OK
    if not live.any():
        return
    request = _anybody(profile)
    for plugin in profile.pipeline.local_filters:
        if isinstance(plugin, ExprFilter) and _ASKS_REQUEST.search(plugin.program.text):
            continue  # it may pass some for another request
        mask = _mask(plugin, fleet, request, profile)
        if mask is not None and not (mask & live).any():
            message = f"none of {int(live.sum())} live nodes passes it"
            path = f"spec.filters[{plugin.name}]"
            yield Problem(PROFILE_KIND, profile.name, path, message, "FilterPassesNoNode")


def look_at_limits(policy: PolicySet, fleet: Snapshot) -> Iterator[Problem]:
    """Yield a warning where quotas above capacity are over-committed once more."""
    settings = policy.settings
    for name, factor, limits, capacity in (
        ("cpu", settings.overcommit_cpu, fleet.cpu_limit_millis, fleet.cpus * 1000.0),
        ("memory", settings.overcommit_memory, fleet.memory_limit_bytes,
         fleet.memory_capacity_bytes),
    ):  # fmt: skip
        # Rounding down loses less than one unit.
        rows = np.flatnonzero((limits + 1) / float(factor) > capacity + 1.0)
        if factor > 1 and rows.size:
            names = ", ".join(fleet.names[row] for row in rows[:_NAMED].tolist())
            message = (
                f"{rows.size} nodes have a {name} quota above their capacity, which"
                f" {float(factor):g} multiplies again: {names}{', ...' * (rows.size > _NAMED)}"
            )
            path = f"spec.overcommit.{name}"
            yield Problem(CONFIG_KIND, CONFIG_NAME, path, message, "OvercommitTwice")


def _anybody(profile: CompiledProfile) -> Request:
    """Return a request on this route that asks for nothing in particular."""
    labels = dict(profile.route.labels)
    return Request("", "", "", cpu_millis=1, memory_bytes=1, labels=labels)


def _mask(
    plugin: Filter, fleet: Snapshot, request: Request, profile: CompiledProfile
) -> Bools | None:
    keeps_failed = profile.pipeline.filter_failure is FilterFailure.FAIL_OPEN
    try:
        return settled_mask(plugin, fleet, request, keeps_failed=keeps_failed)
    except PluginError:
        return None
