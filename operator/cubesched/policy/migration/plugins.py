"""One entry of a Profile's filters or scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cubesched.api.v1alpha1 import GUARDS
from cubesched.plugins.registry import FILTERS, SCORES
from cubesched.policy.legacy import HINTS
from cubesched.policy.migration.durations import written
from cubesched.policy.migration.legacy_block import ELSEWHERE, UNKNOWN
from cubesched.policy.migration.notes import Fate
from cubesched.policy.migration.score_settings import ScoreConf
from cubesched.policy.migration.settings import duration
from cubesched.policy.migration.yamltree import Block

Entry = dict[str, Any]

_BUILTIN: Final = ("", "go", "builtin")
_GRPC: Final = "its server must speak cubesched.schedulerplugin.v1: build it anew from our proto"
_GUARD: Final = "a guard is always on, and cannot be listed"
_WEIGHT_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class Around:
    """What an entry depends on beside itself."""

    conf: ScoreConf
    shares: Mapping[str, float]
    """What each score that rates by factors weighs here of its weight there."""
    scarce: str | None


def filter_entry(block: Block, around: Around) -> Entry | None:
    """Return the entry of a filter; None where it cannot be carried over."""
    name = block.text("name") or ""
    if name == "scarce_resource" and around.scarce:
        return None  # every Profile gets it
    return _entry(block, name, FILTERS)


def score_entry(block: Block, around: Around) -> Entry | None:
    """Return the entry of a score; None where it cannot be carried over."""
    name = block.text("name") or ""
    entry = _entry(block, name, SCORES)
    if entry is None:
        return None
    is_builtin = "type" not in entry
    weight = block.number("weight") or 0
    scorer = around.conf.scorers.get(name) if is_builtin else None
    if not weight:
        weight = scorer.weight if scorer is not None and scorer.weight else 1
    if is_builtin:
        weight = round(weight * around.shares.get(name, 1.0), _WEIGHT_DIGITS) or weight
    default = block.number("default_score")
    return {**entry, "weight": weight, **({"defaultScore": default} if default else {})}


def _entry(block: Block, name: str, known: Mapping[str, object]) -> Entry | None:
    kind = block.text("type") or ""
    entry: Entry = {"name": name}
    if kind not in _BUILTIN:
        entry["type"] = kind
        entry |= _expr(block) if kind == "expr" else _grpc(block) if kind == "grpc" else {}
    elif name in known:
        args = block.plain("args")
        entry |= {"args": args} if args else {}
    else:
        _note_unknown(block, name)
        return None
    return {**entry, "enabled": False} if block.flag("enabled") is False else entry


def _expr(block: Block) -> Entry:
    return {"expr": block.text("expr") or ""}


def _grpc(block: Block) -> Entry:
    entry: Entry = {"socketPath": (block.text("socket_path") or "").removeprefix("unix://")}
    if seconds := duration(block, "timeout"):
        entry["timeout"] = written(seconds)
    if failures := block.number("circuit_breaker_failures"):
        entry["circuitBreakerFailures"] = int(failures)
    if seconds := duration(block, "circuit_breaker_cooldown"):
        entry["circuitBreakerCooldown"] = written(seconds)
    block.note("socket_path", Fate.CHANGED, _GRPC)
    return entry


def _note_unknown(block: Block, name: str) -> None:
    block.taken.update(block.values)
    if name in GUARDS:
        block.note("name", Fate.IGNORED, f"{name}: {_GUARD}")
    elif name in HINTS:
        block.note("name", Fate.IGNORED, f"{name}: {HINTS[name].removesuffix(': take it out')}")
    else:
        block.note("name", Fate.LOST, f"{name}: {ELSEWHERE.get(name, UNKNOWN)}")
