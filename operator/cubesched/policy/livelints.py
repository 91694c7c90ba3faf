"""Warnings that only a look at the live fleet can give, a Profile at a time.

A look at a Profile costs what one decision of it costs. Plugins that are waited for are not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from cubesched.core.answers import ask_scores, settled_mask
from cubesched.core.errors import PluginError
from cubesched.core.pipeline import (
    Filter,
    FilterFailure,
    NotApplicable,
    ScoreFailure,
    WeightedScore,
)
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Safety, Snapshot
from cubesched.plugins.builtin.filters.node_labels import NodeLabels
from cubesched.plugins.builtin.filters.scarce_resource import ScarceResource
from cubesched.plugins.cel.plugins import ExprFilter, ExprScore
from cubesched.policy.compiler import SOURCE_CUSTOM
from cubesched.policy.objects import CONFIG_KIND, CONFIG_NAME, PROFILE_KIND, Problem
from cubesched.policy.policyset import CompiledProfile, PolicySet

_NAMED = 3
_ASKS_REQUEST = re.compile(r"\b(request|template_local)\b")
_FACT = re.compile(r"\bnode\s*\.\s*(\w+)")
LASTING: Final = frozenset({
    "id", "ip", "zone", "instance_type", "labels",
    "cpu_total", "quota_cpu", "mem_total_mb", "quota_mem_mb",
})  # fmt: skip
"""Facts that nodes keep. What is counted and measured is often alike on all of an idle fleet, so a
score of it is constant now and then without anything being wrong."""


def is_known(fleet: Snapshot) -> bool:
    """Tell whether a look can tell anything: some node is live, and every one was heard of."""
    awaited = (fleet.safety == Safety.AWAITING_REPORT).any()
    return bool((fleet.safety == Safety.OK).any()) and not awaited


def look_at_set(policy: PolicySet, fleet: Snapshot, *, is_measured: bool) -> Iterator[Problem]:
    """Yield every warning about what people have written."""
    yield from look_at_limits(policy, fleet)
    for profile in policy.profiles:
        if profile.source == SOURCE_CUSTOM and is_known(fleet):
            yield from look(profile, fleet, is_measured=is_measured)


def look(
    profile: CompiledProfile, fleet: Snapshot, *, is_measured: bool = True
) -> Iterator[Problem]:
    """Yield a warning for each filter that no live node passes, and each score that is constant.

    `is_measured` false: no node's report was read, so only what nodes keep can be judged.
    """
    request = _anybody(profile)
    rows = fleet.safety == Safety.OK
    for plugin in profile.pipeline.local_filters:
        if _depends_on_request(plugin) or not (is_measured or _asks_what_lasts(plugin)):
            continue  # it may pass some for another request, or at another time
        mask = _mask(plugin, fleet, request, profile)
        if mask is None:
            continue
        if not (mask & (fleet.safety == Safety.OK)).any():
            message = "no live node passes it, whoever asks"
            yield _problem(profile, "filters", plugin.name, "FilterPassesNoNode", message)
        rows = rows & mask
    for entry in profile.pipeline.scores:
        why = _why_constant(entry, fleet, request, np.flatnonzero(rows), profile)
        if why:
            yield _problem(profile, "scores", entry.plugin.name, "ConstantScore", why)


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


def _depends_on_request(plugin: object) -> bool:
    if isinstance(plugin, ExprFilter | ExprScore):
        return _ASKS_REQUEST.search(plugin.program.text) is not None
    return isinstance(plugin, ScarceResource)


def _mask(
    plugin: Filter, fleet: Snapshot, request: Request, profile: CompiledProfile
) -> Bools | None:
    """Return what a filter keeps; None where it keeps all or fails."""
    keeps_failed = profile.pipeline.filter_failure is FilterFailure.FAIL_OPEN
    try:
        return settled_mask(plugin, fleet, request, keeps_failed=keeps_failed)
    except PluginError:
        return None


def _why_constant(
    entry: WeightedScore, fleet: Snapshot, request: Request, rows: Ints, profile: CompiledProfile
) -> str:
    """Say why an expression rates all these nodes alike; empty where it tells some apart."""
    plugin = entry.plugin
    if rows.size < 2 or not isinstance(plugin, ExprScore):
        return ""
    if not plugin.program.root.per_node or not _asks_what_lasts(plugin):
        return ""
    try:
        with np.errstate(all="ignore"):
            scores = ask_scores(plugin, fleet, request, rows)
    except PluginError as error:
        if profile.pipeline.score_failure is ScoreFailure.FAIL_CLOSED:
            return ""  # the attempts say so
        return f"it fails on live nodes, so defaultScore stands in for all: {error.message}"
    if isinstance(scores, NotApplicable) or scores.min() != scores.max():
        return ""
    return "it rates all live nodes alike"


def _asks_what_lasts(plugin: object) -> bool:
    """Tell whether the answer depends on nothing but what nodes keep."""
    if isinstance(plugin, ExprFilter | ExprScore):
        facts = set(_FACT.findall(plugin.program.text))
        return facts <= LASTING and not _depends_on_request(plugin)
    return isinstance(plugin, NodeLabels)


def _problem(
    profile: CompiledProfile, listed: str, plugin: str, lint: str, message: str
) -> Problem:
    path = profile.places.get((listed, plugin), f"spec.{listed}")
    return Problem(PROFILE_KIND, profile.name, path, message, lint)
