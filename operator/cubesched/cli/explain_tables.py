"""An explanation for people: what is known of the request, what would help, and the nodes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from cubesched.api.timestamps import unix_seconds
from cubesched.app.explanation_data import Data
from cubesched.cli.output import age, print_table, print_wrapped, shortened_name, terminal_width
from cubesched.core.amounts import binary_bytes, millis
from cubesched.core.explaining import NO_HELP

LABEL_WIDTH = 10
NAME_WIDTH = 28
_OTHER_REVISION = "; what was recorded was decided by {}"


def print_explanation(data: Data) -> None:
    """Print everything, the most important first, within the terminal's width."""
    width = terminal_width()
    for label, text in _head(data):
        print_wrapped(label.ljust(LABEL_WIDTH), text, width=width)
    if "node" in data:
        _print_node(data["node"], width)
        if not data["node"]["fits"] and not _is_paused(data):
            _print_helps(data["node"]["whatWouldHelp"], width)
    elif "nodes" in data:
        if not data["now"].get("feasible") and not _is_paused(data):
            _print_helps(data["whatWouldHelp"], width)
        _print_stages(data["stages"], width)
        _print_nodes(data, width)
    read = data["read"]
    print(f"\n{read['nodes']} nodes and {read['requests']} requests read in {read['seconds']} s")


def _head(data: Data) -> Iterator[tuple[str, str]]:
    request = data["request"]
    yield "Request", _request(request)
    if "asks" in request:
        yield "Asks for", _asks(request["asks"])
    scheduled = request.get("scheduled")
    if scheduled and scheduled["status"] == "False":
        yield "Was told", f"{scheduled['reason']}: {scheduled['message']}"
    elif request.get("explanation"):
        yield "Chosen by", request["explanation"]
    blocked = request.get("resumeBlocked")
    if blocked and blocked["status"] == "True":
        yield "Resuming", f"blocked, {blocked['reason']}: {blocked['message']}"
    for refusal in request.get("refusals", ()):
        yield "Refused", f"by {refusal['node']} at {refusal['time']}: {refusal['reason']}"
    yield from _policy(data["policy"], request.get("policyRevision", ""))
    if "metricsUnknown" in data:
        yield (
            "Metrics",
            (
                f"UNKNOWN: {data['metricsUnknown']}. Nodes count as just heard of, and as measured "
                "by nobody: what follows may be too good to be true."
            ),
        )
    if "notAsked" in data:
        names = ", ".join(data["notAsked"])
        yield "Not asked", f"{names}: only the operator can ask; what follows is without them"
    yield "Now", _now(data["now"], is_placed="nodeName" in request)
    if _is_paused(data):
        yield "Paused", f"it can be resumed on {request['nodeName']} only, when that has the room"


def _is_paused(data: Data) -> bool:
    """Whether it can only be resumed where it is, so that no change of it helps."""
    return bool(data["request"]["phase"] == "Paused")


def _request(request: Data) -> str:
    where = f" on {request['nodeName']}" if "nodeName" in request else ""
    attempts = f"{request['attempts']} attempt{'s' * (request['attempts'] != 1)}"
    text = f"{request['namespace']}/{request['name']} is {request['phase']}{where}, {attempts}"
    if request["phase"] == "Pending" and "nextAttemptTime" in request:
        left = unix_seconds(request["nextAttemptTime"]) - time.time()
        text += f", tried again within {age(left)}" if left > 0 else ""
    return text


def _asks(asks: Data) -> str:
    parts = [f"cpu {millis(asks['cpuMillis'])}", f"memory {binary_bytes(asks['memoryBytes'])}"]
    if "systemDiskBytes" in asks:
        parts.append(f"systemDisk {binary_bytes(asks['systemDiskBytes'])}")
    parts.append(f"instanceType {asks['instanceType']}")
    if "templateID" in asks:
        anywhere = " (or fetched)" if "allowNonLocalTemplate" in asks else ""
        parts.append(f"template {asks['templateID']}{anywhere}")
    parts += [f"nodeSelector {key}={value}" for key, value in asks.get("nodeSelector", {}).items()]
    if "templateNodeScope" in asks:
        parts.append(f"only nodes {', '.join(asks['templateNodeScope'])}")
    return ", ".join(parts)


def _policy(policy: Data, recorded: str) -> Iterator[tuple[str, str]]:
    if "problems" in policy:
        first, *others = policy["problems"] or ["no problem is known"]
        more = f" (and {len(others)} more)" if others else ""
        yield (
            "Policy",
            (
                f"the stored set does not compile, so replicas keep the last one that did: {first}"
                f"{more}. Below are guards and constraints alone."
            ),
        )
        return
    if "profile" in policy:
        yield "Profile", f"{policy['profile']}, {policy['why']}"
    differs = _OTHER_REVISION.format(recorded) if recorded not in {"", policy["revision"]} else ""
    yield "Policy", f"revision {policy['revision']} ({policy['source']}){differs}"


def _now(now: Data, *, is_placed: bool) -> str:
    without = "without it, " if is_placed else ""
    if "total" not in now:
        return f"{now['reason']}: {now['message']}"
    counted = f"{without}{now['feasible']} of {now['total']} nodes fit"
    if "itsNode" in now:
        return f"{counted}; {_its_node(now['itsNode'])}"
    if "wouldTake" in now:
        return f"{counted}; a decision would take {now['wouldTake']}"
    if now.get("reason") in {"Gated", "NoProfile", "NoActivePolicy"}:
        return f"{now['reason']}: {now['message']}. But for that, {counted}"
    return f"{counted} ({now['reason']})" if "reason" in now else counted


def _its_node(node: Data) -> str:
    if not node["fits"]:
        return f"{node['name']} would not take it now: {node['plugin']}: {node['why']}"
    score = f" with score {node['score']:.2f}" if "score" in node else ""
    return f"{node['name']} would take it again{score}, number {node['place']} by score"


def _print_helps(helps: Sequence[Data], width: int) -> None:
    print("\nWhat would help, each line by itself:" if helps else f"\n{NO_HELP}")
    for each in helps:
        print_wrapped("  ", each["text"], width=width)


def _print_stages(stages: Sequence[Data], width: int) -> None:
    if stages:
        print()
        rows = [
            (stage["kind"], stage.get("plugin", ""), str(stage.get("rejected", "-")), _why(stage))
            for stage in stages
        ]
        print_table(("STAGE", "PLUGIN", "REJECTS", "WHY"), rows, width=width)


def _why(stage: Data) -> str:
    if "failed" in stage:
        return f"FAILED: {stage['failed']}"
    reasons = stage["reasons"]
    texts = ", ".join(
        text if len(reasons) == 1 else f"{count} {text}" for text, count in reasons.items()
    )
    if "nearest" not in stage:
        return texts
    nearest = stage["nearest"]
    return f"{texts}; nearest {shortened_name(nearest['node'], NAME_WIDTH)}: {nearest['why']}"


def _print_nodes(data: Data, width: int) -> None:
    if data["nodes"]:
        print()
        rows = [
            (shortened_name(node["name"], NAME_WIDTH), *_fit(node), _reason_or_parts(node))
            for node in data["nodes"]
        ]
        print_table(("NODE", "FITS", "SCORE", "WHY"), rows, width=width)
    if data["nodesLeftOut"]:
        print(f"and {data['nodesLeftOut']} more; --all shows them")


def _fit(node: Data) -> tuple[str, str]:
    if not node["fits"]:
        return "no", "-"
    return "yes", f"{node['score']:.2f}" if "score" in node else "-"


def _reason_or_parts(node: Data) -> str:
    if not node["fits"]:
        return f"{node['plugin']}: {node['why']}"
    return ", ".join(_part(part) for part in node.get("parts", ()))


def _part(part: Data) -> str:
    weight = f" x{part['weight']:g}" if part["weight"] != 1 else ""
    failed = " (failed: default)" if "failed" in part else ""
    return f"{part['plugin']} {part['score']:.2f}{weight}{failed}"


def _print_node(node: Data, width: int) -> None:
    print()
    print_wrapped(
        "Node".ljust(LABEL_WIDTH), f"{node['name']}: {_facts(node['facts'])}", width=width
    )
    print()
    rows = [(stage["kind"], stage["plugin"], _verdict(stage)) for stage in node["stages"]]
    rows += [
        ("score", part["plugin"], f"{part['score']:.2f}, weight {part['weight']:g}")
        for part in node.get("parts", ())
    ]
    if "score" in node:
        rows.append(("score", "in all", f"{node['score']:.2f}"))
    print_table(("STAGE", "PLUGIN", "VERDICT"), rows, width=width)


def _verdict(stage: Data) -> str:
    if "failed" in stage:
        return f"FAILED: {stage['failed']}"
    return "passes" if stage["passes"] else f"NO: {stage['why']}"


def _facts(facts: Data) -> str:
    cpu, memory = facts["cpuMillis"], facts["memoryBytes"]
    parts = [
        f"cpu {millis(cpu[0])} of {millis(cpu[1])} taken",
        f"memory {binary_bytes(memory[0])} of {binary_bytes(memory[1])}",
    ]
    if "systemDiskBytes" in facts:
        used, limit = facts["systemDiskBytes"]
        parts.append(f"system disk {binary_bytes(used)} of {binary_bytes(limit)}")
    parts.append("{} of {} sandboxes".format(*facts["sandboxes"]))
    parts.append("{} of {} creates in flight".format(*facts["creating"]))
    if "cpuUtilPercent" in facts:
        parts.append(f"cpu {facts['cpuUtilPercent']} % busy")
    if "reportAgeSeconds" in facts:
        parts.append(f"last report {facts['reportAgeSeconds']} s ago")
    if "templates" in facts:
        parts.append(f"templates {', '.join(facts['templates'])}")
    parts += [f"{key}={value}" for key, value in facts.get("labels", {}).items()]
    return ", ".join(parts)
