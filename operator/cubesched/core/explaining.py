"""A decision in words: one line for the condition, a few for `kubectl describe`.

Counts are taken anew from the fleet given, so they speak of that version. Plugins' and users'
texts are stripped of control characters and cut, never interpreted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from cubesched.core.amounts import binary_bytes, millis, told_apart
from cubesched.core.answers import ask_nearest, ask_reasons, settled_mask
from cubesched.core.counterfactuals import HELPED, Counterfactual
from cubesched.core.cycle import failure_policy, stages
from cubesched.core.decision import Placed, Reason, Rejected
from cubesched.core.errors import PluginError
from cubesched.core.pipeline import Filter, FilterFailure, Pipeline
from cubesched.core.request import Request
from cubesched.core.snapshot import Ints, Snapshot

MESSAGE_MAX_BYTES = 1024
EXPLANATION_MAX_BYTES = 4096
PLACED_LINE_MAX_BYTES = 300
NO_HELP = "No change of one thing alone would make a node fit."
HELP_UNKNOWN = "What would help is not told: a filter outside the operator has its own say."
_TEXT_MAX_CHARACTERS = 200
_NAME_MAX_CHARACTERS = 40


@dataclass(frozen=True, slots=True, eq=False)
class Rejects:
    """The rows that one stage was the first to reject."""

    kind: str
    stage: Filter
    rows: Ints


def rejects(fleet: Snapshot, request: Request, pipeline: Pipeline) -> list[Rejects]:
    """Run the masks once more and return the first-failure rows of each stage that has any.

    Stops where a plugin fails as a whole, unless the policy keeps what it fails on.
    """
    result = []
    alive = np.ones(len(fleet), dtype=np.bool_)
    for kind, stage in stages(pipeline):
        keeps_failed = failure_policy(pipeline, kind) is FilterFailure.FAIL_OPEN
        try:
            mask = settled_mask(stage, fleet, request, keeps_failed=keeps_failed)
        except PluginError:
            if keeps_failed:
                continue
            break
        if mask is None:
            continue
        rows = np.flatnonzero(alive & ~mask)
        alive &= mask
        if rows.size:
            result.append(Rejects(kind, stage, rows))
    return result


def message(rejected: Rejected, fleet: Snapshot, request: Request, pipeline: Pipeline) -> str:
    """Return one line, as the condition and the event show it."""
    return _clip(_headline(rejected, fleet, request, pipeline), MESSAGE_MAX_BYTES)


def explanation(
    rejected: Rejected,
    fleet: Snapshot,
    request: Request,
    pipeline: Pipeline,
    *,
    helps: Sequence[Counterfactual] | None,
) -> str:
    """Return several lines: the message, each stage's count and nearest miss, what would help.

    `helps` is None where that cannot be told: a filter that is waited for has its own say.
    """
    lines = [message(rejected, fleet, request, pipeline)]
    parts = _up_to_the_failed(rejected, rejects(fleet, request, pipeline))
    lines += [_stage_line(part, fleet, request) for part in parts]
    ending = "\n".join(_help_lines(helps)) if parts and rejected.reason in HELPED else ""
    room = EXPLANATION_MAX_BYTES - len(ending.encode()) - 1
    shown = _clip_lines(lines, room)
    return f"{shown}\n{ending}" if ending else shown


def _help_lines(helps: Sequence[Counterfactual] | None) -> list[str]:
    if helps is None:
        return [HELP_UNKNOWN]
    if not helps:
        return [NO_HELP]
    return ["What would help:", *(f"  {plain(each.line)}" for each in helps)]


def placed_line(placed: Placed) -> str:
    """Return one line: the score and its parts, the next two, how many nodes were feasible."""
    head = f"score {placed.score:.2f}"
    tail = f"{placed.feasible} of {placed.total} nodes feasible"
    if placed.runners_up:
        others = ", ".join(f"{_name(node)} {score:.2f}" for node, score in placed.runners_up)
        tail = f"next {others}; {tail}"
    failed = {fault.plugin for fault in placed.faults}
    parts = [
        f"{_name(part.plugin)} {part.score:.2f}"
        + (f" x{part.weight:g}" if part.weight != 1 else "")
        + (" (failed: default)" if part.plugin in failed else "")
        for part in placed.parts
    ]
    room = PLACED_LINE_MAX_BYTES - len(f"{head} (); {tail}".encode())
    listed = _as_many_as_fit(parts, room)
    return f"{head} ({listed}); {tail}" if listed else f"{head}; {tail}"


def plain(text: str) -> str:
    """Return the text on one line, without characters that do not print, cut to a bound."""
    kept = "".join(letter if letter.isprintable() else " " for letter in text)
    kept = " ".join(kept.split())
    return kept if len(kept) <= _TEXT_MAX_CHARACTERS else f"{kept[:_TEXT_MAX_CHARACTERS]}..."


def _headline(rejected: Rejected, fleet: Snapshot, request: Request, pipeline: Pipeline) -> str:
    if rejected.reason is Reason.NO_NODES:
        return "0/0 nodes are available: there is no SandboxNode."
    if rejected.reason is Reason.PLUGIN_FAILED and not _lost_nodes(rejected):
        plugin, detail = plain(rejected.failed_plugin), plain(rejected.detail)
        return f"Not decided: plugin {plugin} failed ({detail}); tried again after a pause."
    opening = f"0/{rejected.total} nodes are available"
    if rejected.reason is Reason.NEVER_FITS:
        return f"{opening}: even an empty node is too small: {_too_big(fleet, request)}."
    counts = _by_text(rejects(fleet, request, pipeline), fleet, request)
    listed = ", ".join(f"{number} {text}" for text, number in counts) or "the fleet has changed"
    if rejected.reason is Reason.STALE_METRICS:
        return f"{opening}: no node is Ready with fresh metrics: {listed}."
    return f"{opening}: {listed}."


def _lost_nodes(rejected: Rejected) -> bool:
    """Tell whether a filter failed on single nodes, so that the counts say it all."""
    return any(count.failed for count in rejected.counts)


def _up_to_the_failed(rejected: Rejected, parts: Sequence[Rejects]) -> list[Rejects]:
    """Leave out a filter that failed as a whole, which has rejected nobody, and what follows it."""
    if not rejected.failed_plugin or _lost_nodes(rejected):
        return list(parts)
    return list(takewhile(lambda part: part.stage.name != rejected.failed_plugin, parts))


def _by_text(parts: Sequence[Rejects], fleet: Snapshot, request: Request) -> list[tuple[str, int]]:
    totals: Counter[str] = Counter()
    for part in parts:
        for text, number in ask_reasons(part.stage, fleet, request, part.rows):
            totals[plain(text)] += number
    return sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))


def _too_big(fleet: Snapshot, request: Request) -> str:
    asked = (
        ("cpu", request.cpu_millis, fleet.cpu_limit_millis, millis),
        ("memory", request.memory_bytes, fleet.memory_limit_bytes, binary_bytes),
        ("disk", request.disk_bytes, fleet.disk_limit_bytes, binary_bytes),
    )
    too_big = []
    for kind, needed, limits, show in asked:
        largest = int(limits.max(initial=0))
        if needed > largest:
            needs, has = told_apart(needed, largest, show)
            too_big.append(f"needs {kind} {needs}, the largest has {has}")
    if too_big:
        return "; ".join(too_big)
    wanted = ", ".join(f"{kind} {show(needed)}" for kind, needed, _, show in asked if needed)
    return f"needs {wanted}, and no node has all of it"


def _stage_line(part: Rejects, fleet: Snapshot, request: Request) -> str:
    number = int(part.rows.size)
    line = f"  {plain(part.stage.name)}: {number} node{'s' * (number != 1)} rejected"
    texts = _by_text([part], fleet, request)
    if len(texts) > 1:
        line += " (" + ", ".join(f"{count} {text}" for text, count in texts) + ")"
    miss = ask_nearest(part.stage, fleet, request, part.rows)
    if miss is None:
        return line if len(texts) > 1 else f"{line}: {texts[0][0]}"
    return f"{line}; nearest {_name(fleet.names[miss.row])}: {plain(miss.text)}"


def _name(name: str) -> str:
    name = plain(name)
    return name if len(name) <= _NAME_MAX_CHARACTERS else f"{name[: _NAME_MAX_CHARACTERS - 3]}..."


def _as_many_as_fit(parts: Sequence[str], room_bytes: int) -> str:
    """Join what fits and say how many more there are."""
    for number in range(len(parts), 0, -1):
        rest = [f"{len(parts) - number} more"] if number < len(parts) else []
        text = ", ".join([*parts[:number], *rest])
        if len(text.encode()) <= room_bytes:
            return text
    return ""


def _clip(text: str, max_bytes: int) -> str:
    if len(text.encode()) <= max_bytes:
        return text
    return text.encode()[: max_bytes - 3].decode(errors="ignore") + "..."


def _clip_lines(lines: Sequence[str], max_bytes: int) -> str:
    """Join the first lines that fit; the last one says how many were left out."""
    for number in range(len(lines), 1, -1):
        left_out = len(lines) - number
        rest = [f"  and {left_out} more"] if left_out else []
        text = "\n".join([*lines[:number], *rest])
        if len(text.encode()) <= max_bytes:
            return text
    return lines[0]
