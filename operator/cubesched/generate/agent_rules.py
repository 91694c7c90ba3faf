"""What a node's agent may write, as the rules of an admission policy.

The rules confine what an agent that was taken over can do to its own node and to its own part.
"""

from __future__ import annotations

from typing import Final

from cubesched.api import NODES
from cubesched.api.rights import NODE_USER_PREFIX

AGENT_TRANSITIONS: Final = {
    "Reserved": ("Starting", "Pending", "Paused"),
    "Bound": ("Bound", "Starting", "Pending", "Paused"),
    "Starting": ("Starting", "Running", "Failed", "Pending", "Paused", "Succeeded"),
    "Running": ("Running", "Paused", "Succeeded", "Failed"),
    "Paused": ("Paused", "Succeeded", "Failed"),
    "Evicting": ("Evicting", "Pending", "Succeeded", "Failed"),
    "Succeeded": ("Succeeded",),
    "Failed": ("Failed",),
}
"""The phases an agent may write, by the phase it found; the same phase updates other fields.

What is only reserved it may touch where the reservation asks it to confirm.
"""

AGENT_FIELDS: Final = ("phase", "conditions", "sandboxID", "endpoint", "finishedTime")
"""What of a request's status an agent may write in any of these."""

PAUSE_FIELDS: Final = (*AGENT_FIELDS, "reservation")
"""What it may write when it has paused the sandbox, or resumed it."""

RETURN_FIELDS: Final = (*AGENT_FIELDS, "refusals", "nextAttemptTime")
"""What it may write when it gives the request back."""

RETURN_CLEARS: Final = (
    *RETURN_FIELDS, "nodeName", "reservation", "profile", "policyRevision", "score", "explanation",
)  # fmt: skip
"""What it may take away then."""


NODE_FIELDS: Final = ("conditions", "templates", "images", "addresses")
"""What of its SandboxNode's status an agent may write; of the conditions only Ready."""


def agent_validations() -> list[dict[str, str]]:
    """Return all rules on what an agent writes."""
    return [*_whose(), *_of_its_node(), *_what(), *_pauses()]


def agent_variables() -> dict[str, str]:
    """Return the variables of the rules; each is worked out only when a rule reads it."""
    start = len(NODE_USER_PREFIX)
    user = "request.userInfo.username"
    return {
        "node": f"{user}.startsWith('{NODE_USER_PREFIX}') ? {user}.substring({start}) : ''",
        "isNode": f"request.resource.resource == '{NODES.plural}'",
        "isNodeStatus": "variables.isNode && request.subResource == 'status'",
        "before": "has(oldObject.status) ? oldObject.status : {}",
        "after": "has(object.status) ? object.status : {}",
        "phaseBefore": _field("variables.before", "phase", "'Pending'"),
        "phaseAfter": _field("variables.after", "phase", "'Pending'"),
        "saidBefore": _field("variables.before", "conditions", "[]"),
        "saidAfter": _field("variables.after", "conditions", "[]"),
        "nodeTouched": _changed(names(NODE_FIELDS), names(NODE_FIELDS)),
        "stampBefore": _field("variables.before", "reservation", "{}"),
        "stampAfter": _field("variables.after", "reservation", "{}"),
        "toResume": "has(variables.stampBefore.resume)",
        "isPause": "variables.phaseBefore == 'Running' && variables.phaseAfter == 'Paused'",
        "isResume": (
            "variables.toResume && variables.phaseBefore == 'Starting'"
            " && variables.phaseAfter == 'Running'"
        ),
        "confirmation": _field("variables.stampBefore", "confirmation", "'operator'"),
        "isReturn": "variables.phaseAfter == 'Pending'",
        "isRefusal": (
            "variables.phaseBefore in ['Reserved', 'Bound', 'Starting']"
            " && variables.phaseAfter in ['Pending', 'Paused']"
        ),
        "writable": (
            "variables.isPause || variables.isResume"
            f" ? {names(PAUSE_FIELDS)} : variables.isReturn || variables.isRefusal"
            f" ? {names(RETURN_FIELDS)} : {names(AGENT_FIELDS)}"
        ),
        "clearable": f"variables.isReturn ? {names(RETURN_CLEARS)} : {names(AGENT_FIELDS)}",
        "touched": _changed("variables.writable", "variables.clearable"),
        "restated": (
            "variables.stampAfter.filter(k, k != 'paused' && !(k in variables.stampBefore"
            " && variables.stampAfter[k] == variables.stampBefore[k]))"
            " + variables.stampBefore.filter(k, k != 'paused' && !(k in variables.stampAfter))"
        ),
        "refusalsBefore": _field("variables.before", "refusals", "[]"),
        "refusalsAfter": _field("variables.after", "refusals", "[]"),
        "refusalsAdded": "variables.refusalsAfter.filter(r, !(r in variables.refusalsBefore))",
        "refusalsLost": "variables.refusalsBefore.filter(r, !(r in variables.refusalsAfter))",
    }


def _whose() -> list[dict[str, str]]:
    """Return the rules on whose objects an agent may write at all."""
    return [
        {
            "expression": "variables.node != ''",
            "message": f"an agent's user name must be {NODE_USER_PREFIX}NODE",
        },
        {
            "expression": "!variables.isNode || object.metadata.name == variables.node",
            "message": "an agent may write only the SandboxNode of its own name",
            "messageExpression": "'the agent of ' + variables.node + ' may not write SandboxNode '"
            " + object.metadata.name",
        },
        {
            "expression": "variables.isNode || (has(variables.before.nodeName)"
            " && variables.before.nodeName == variables.node)",
            "message": "an agent may write only requests that are on its own node",
            "messageExpression": "'the agent of ' + variables.node"
            " + ' may write only requests that are on its node'",
        },
    ]


def _of_its_node() -> list[dict[str, str]]:
    """Return the rules that keep what the operator says of a node out of its agent's hands."""
    return [
        {
            "expression": "!variables.isNodeStatus || size(variables.nodeTouched) == 0",
            "message": "an agent may not write these fields of its SandboxNode's status",
            "messageExpression": "'an agent may not write status.'"
            " + variables.nodeTouched.join(', status.') + ' of its SandboxNode'",
        },
        {
            "expression": "!variables.isNodeStatus"
            " || variables.saidAfter.filter(c, c.type != 'Ready')"
            " == variables.saidBefore.filter(c, c.type != 'Ready')",
            "message": "an agent may write no condition of its SandboxNode but Ready",
        },
    ]


def _what() -> list[dict[str, str]]:
    """Return the rules on what it may write into a request's status."""
    allowed = " || ".join(
        f"(variables.phaseBefore == '{before}' && variables.phaseAfter in {names(after)})"
        for before, after in AGENT_TRANSITIONS.items()
    )
    return [
        {
            "expression": f"variables.isNode || {allowed}",
            "message": "an agent may not make this change of phase",
            "messageExpression": "'an agent may not take a request from '"
            " + variables.phaseBefore + ' to ' + variables.phaseAfter",
        },
        {
            "expression": "variables.isNode || variables.phaseBefore != 'Reserved'"
            " || variables.confirmation == 'agent'",
            "message": "an agent may not touch a reservation that it is not asked to confirm",
        },
        {
            "expression": "variables.isNode || size(variables.touched) == 0",
            "message": "an agent may not write these fields of status",
            "messageExpression": "'an agent may not write status.'"
            " + variables.touched.join(', status.')",
        },
        {
            "expression": "variables.isNode || !variables.isReturn ||"
            " (!has(variables.after.nodeName) && !has(variables.after.reservation))",
            "message": "a request given back to Pending keeps neither nodeName nor reservation",
        },
        {
            "expression": "variables.isNode || !variables.isRefusal"
            " || (size(variables.refusalsAdded) == 1"
            " && variables.refusalsAdded[0].node == variables.node"
            " && size(variables.refusalsLost) <= (size(variables.refusalsBefore) == 8 ? 1 : 0))",
            "message": "a request given back gains one entry in refusals,"
            " for the agent's own node, and loses none but the oldest of eight",
        },
        {
            "expression": "variables.isNode || variables.phaseBefore != 'Evicting'"
            " || (size(variables.refusalsAdded) == 0 && size(variables.refusalsLost) == 0)",
            "message": "a request that was evicted keeps its refusals as they are",
        },
    ]


def _pauses() -> list[dict[str, str]]:
    """Return the rules on what a pause may take off, and what has to be there to resume."""
    return [
        {
            "expression": "variables.isNode || !variables.isRefusal"
            " || (variables.phaseAfter == 'Paused') == variables.toResume",
            "message": "a request given back goes to Paused if it was to be resumed, else to"
            " Pending",
        },
        {
            "expression": "variables.isNode || variables.toResume"
            " || variables.phaseBefore != 'Starting' || variables.phaseAfter != 'Succeeded'",
            "message": "a request that has never run cannot have succeeded",
        },
        {
            "expression": "variables.isNode || variables.isReturn || size(variables.restated) == 0",
            "message": "an agent may change nothing of status.reservation but its stamp 'paused'",
        },
        {
            "expression": "variables.isNode || !variables.isPause"
            " || (has(variables.stampAfter.paused)"
            " && variables.stampAfter.paused.cpuMillis <= variables.stampAfter.cpuMillis"
            " && variables.stampAfter.paused.memoryBytes <= variables.stampAfter.memoryBytes)",
            "message": "a paused request says in status.reservation.paused what it keeps, at most"
            " what was admitted",
        },
        {
            "expression": "variables.isNode || !variables.isResume"
            " || !has(variables.stampAfter.paused)",
            "message": "a resumed request has no status.reservation.paused",
        },
    ]


def _changed(writable: str, clearable: str) -> str:
    """Return the fields of status that changed, but for those that may; both are CEL lists."""
    return (
        f"variables.after.filter(k, !(k in {writable}) && !(k in variables.before"
        " && variables.after[k] == variables.before[k]))"
        f" + variables.before.filter(k, !(k in {clearable}) && !(k in variables.after))"
    )


def _field(block: str, name: str, default: str) -> str:
    return f"has({block}.{name}) ? {block}.{name} : {default}"


def names(of: tuple[str, ...]) -> str:
    """Return a list of strings as CEL writes it."""
    return "[" + ", ".join(f"'{name}'" for name in of) + "]"
