"""An explanation as plain data: what `-o json` prints, and what the tables are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from cubesched.app.explanation import Decided, Explained, on_one_node
from cubesched.core.counterfactuals import Counterfactual
from cubesched.core.decision import Placed
from cubesched.core.explaining import plain
from cubesched.core.inspecting import FITS, Inspection, counted
from cubesched.core.request import Request
from cubesched.core.snapshot import NO_LIMIT, Snapshot
from cubesched.fleet.entries import Entry
from cubesched.fleet.objects import Condition
from cubesched.scheduling import statuses

Data = dict[str, Any]


def as_data(explained: Explained, *, most_nodes: int | None = None) -> Data:
    """Return everything; of the nodes the first `most_nodes` in their order, all when None."""
    data = _head(explained)
    decided = explained.decided
    if decided is not None:
        ranked = decided.inspection.ranked().tolist()
        shown = ranked[:most_nodes]
        data["stages"] = _stages(decided.inspection)
        helps = () if _is_paused(explained) else decided.helps
        data["whatWouldHelp"] = [_help(each, each.line) for each in helps]
        data["nodes"] = [_node(decided.inspection, row) for row in shown]
        data["nodesLeftOut"] = len(ranked) - len(shown)
    return data


def as_data_of_node(explained: Explained, node: str) -> Data:
    """Return the same of one node: every stage's verdict and every score."""
    data = _head(explained)
    decided = explained.decided
    if decided is not None:
        fleet = decided.inspection.fleet
        row = fleet.row_of[node]
        helps = () if _is_paused(explained) else on_one_node(explained, node)
        data["node"] = {
            "name": node,
            "facts": _facts(explained, row),
            "fits": bool(decided.inspection.first[row] == FITS),
            "stages": _verdicts(decided.inspection, row),
            **_rating(decided.inspection, row),
            "whatWouldHelp": [_help(each, f"it would fit {each.change.text}") for each in helps],
        }
    return data


def _is_paused(explained: Explained) -> bool:
    """Whether only its own node can take it: changing the request would help it nowhere."""
    return explained.entry.phase == "Paused"


def _head(explained: Explained) -> Data:
    data: Data = {"request": _request(explained.entry)}
    if explained.decided is not None:
        data["request"]["asks"] = _asks(explained.decided.request)
    data["policy"] = _policy(explained)
    if explained.state.metrics_problem:
        data["metricsUnknown"] = explained.state.metrics_problem
    if explained.unasked:
        data["notAsked"] = list(explained.unasked)
    data["now"] = _now(explained)
    return data


def _request(entry: Entry) -> Data:
    stored = statuses.copied(entry)
    conditions = {each.type: each for each in entry.status.conditions}
    data: Data = {
        "namespace": entry.namespace,
        "name": entry.name,
        "phase": entry.phase,
        "created": entry.created,
        "attempts": entry.status.attempts,
    }
    for key, kind in (
        ("scheduled", statuses.SCHEDULED),
        ("resumeBlocked", statuses.RESUME_BLOCKED),
    ):
        if kind in conditions:
            data[key] = _condition(conditions[kind])
    kept = ("nodeName", "profile", "policyRevision", "score", "explanation", "nextAttemptTime")
    data |= {key: str(stored[key]) for key in kept if stored.get(key)}
    if entry.status.refusals:
        data["refusals"] = [
            {"node": each.node, "reason": each.reason, "time": each.time}
            for each in entry.status.refusals
        ]
    return data


def _condition(stored: Condition) -> Data:
    return {
        "status": stored.status,
        "reason": stored.reason,
        "message": stored.message,
        "since": stored.last_transition_time,
    }


def _asks(request: Request) -> Data:
    asks: Data = {
        "cpuMillis": request.cpu_millis,
        "memoryBytes": request.memory_bytes,
        "systemDiskBytes": request.disk_bytes,
        "instanceType": request.instance_type,
        "templateID": request.template_id,
        "allowNonLocalTemplate": request.allow_non_local_template,
        "templateNodeScope": list(request.template_node_scope),
        "nodeSelector": dict(request.node_selector),
        "refusedBy": list(request.refused_nodes),
    }
    return {key: value for key, value in asks.items() if value}


def _policy(explained: Explained) -> Data:
    policy, compiled = explained.state.current, explained.state.compiled
    if policy is None:
        return {"problems": [problem.text for problem in compiled.problems]}
    data: Data = {"revision": policy.revision, "source": policy.source}
    if explained.routed:
        data |= {"profile": explained.routed.profile, "why": explained.routed.why}
    return data


def _now(explained: Explained) -> Data:
    now: Data = {"reason": explained.reason, "message": explained.message}
    now = {key: value for key, value in now.items() if value}
    decided = explained.decided
    if decided is None:
        return now
    now |= {"feasible": int(decided.inspection.rows.size), "total": len(decided.inspection.fleet)}
    if isinstance(decided.decision, Placed) and not explained.reason:
        now["wouldTake"] = decided.decision.node
    node = explained.entry.node
    if node in decided.inspection.fleet.row_of:
        now["itsNode"] = _place(decided, node)
    return now


def _place(decided: Decided, node: str) -> Data:
    """Return how the node that a placed request stands on compares now."""
    inspection = decided.inspection
    row = inspection.fleet.row_of[node]
    if inspection.first[row] != FITS:
        return _node(inspection, row)
    place = int(np.count_nonzero(inspection.scores > inspection.scores[inspection.position(row)]))
    return _node(inspection, row) | {"place": place + 1}


def _stages(inspection: Inspection) -> list[Data]:
    result = []
    for count in counted(inspection):
        data: Data = {
            "kind": count.stage.kind,
            "plugin": plain(count.stage.plugin.name),
            "rejected": count.rejected,
            "reasons": {plain(text): number for text, number in count.texts},
        }
        if count.nearest is not None:
            node = inspection.fleet.names[count.nearest.row]
            data["nearest"] = {"node": node, "why": plain(count.nearest.text)}
        result.append(data)
    failed = [stage for stage in inspection.stages if stage.failure]
    result += [
        {"kind": each.kind, "plugin": plain(each.plugin.name), "failed": plain(each.failure)}
        for each in failed
    ]
    if inspection.failure:
        result.append({"kind": "score", "failed": plain(inspection.failure)})
    return result


def _node(inspection: Inspection, row: int) -> Data:
    index = int(inspection.first[row])
    data: Data = {"name": inspection.fleet.names[row], "fits": index == FITS}
    if index == FITS:
        return data | _rating(inspection, row)
    stage = inspection.stages[index]
    why = plain(inspection.why(index, row))
    return data | {"kind": stage.kind, "plugin": plain(stage.plugin.name), "why": why}


def _rating(inspection: Inspection, row: int) -> Data:
    """Return the score and its parts; nothing where a node does not fit."""
    if inspection.first[row] != FITS or inspection.failure:
        return {}
    position = inspection.position(row)
    return {
        "score": round(inspection.scores.item(position), 2),
        "parts": [
            {
                "plugin": plain(rating.plugin),
                "weight": rating.weight,
                "score": round(rating.scores.item(position), 2),
            }
            | ({"failed": True} if rating.failure != "" else {})
            for rating in inspection.ratings
        ],
    }


def _verdicts(inspection: Inspection, row: int) -> list[Data]:
    result = []
    for index, stage in enumerate(inspection.stages):
        data: Data = {"kind": stage.kind, "plugin": plain(stage.plugin.name)}
        if stage.failure:
            data["failed"] = plain(stage.failure)
        elif stage.mask[row]:
            data["passes"] = True
        else:
            data |= {"passes": False, "why": plain(inspection.why(index, row))}
        result.append(data)
    return result


def _help(each: Counterfactual, line: str) -> Data:
    return {"text": plain(line), "change": plain(each.change.text), "nodes": each.nodes}


def _facts(explained: Explained, row: int) -> Data:
    fleet, reported = explained.state.fleet.snapshot, explained.state.fleet.columns.reported
    facts: Data = {
        "cpuMillis": [fleet.cpu_used_millis.item(row), fleet.cpu_limit_millis.item(row)],
        "memoryBytes": [fleet.memory_used_bytes.item(row), fleet.memory_limit_bytes.item(row)],
        "systemDiskBytes": [fleet.disk_used_bytes.item(row), fleet.disk_limit_bytes.item(row)],
        "sandboxes": [fleet.sandboxes.item(row), fleet.sandbox_limit.item(row)],
        "creating": [fleet.creating.item(row), fleet.create_limit.item(row)],
        "cpuUtilPercent": _known(fleet, "cpu_util_percent", row),
        "labels": dict(explained.state.fleet.records[fleet.names[row]].labels),
        "templates": sorted(explained.state.fleet.records[fleet.names[row]].templates),
    }
    if facts["systemDiskBytes"][1] >= NO_LIMIT:
        del facts["systemDiskBytes"]
    seen = reported.advanced_monotonic.item(row)
    if np.isfinite(seen) and not explained.state.metrics_problem:
        age = explained.state.read_at - seen
        facts["reportAgeSeconds"] = round(max(0.0, age), 1)
    return {key: value for key, value in facts.items() if value not in (None, {}, [])}


def _known(fleet: Snapshot, column: str, row: int) -> float | None:
    value: float = getattr(fleet, column).item(row)
    return None if np.isnan(value) else round(value, 1)
