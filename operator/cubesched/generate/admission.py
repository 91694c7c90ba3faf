"""Two ValidatingAdmissionPolicies: what of a request may change, and what an agent may write.

They stand beside the CRDs because a rule on spec inside the schema would run at every status
write. Nothing in the operator's safety rests on them; they keep clients and agents honest.
"""

from __future__ import annotations

from typing import Any, Final

from cubesched.api import GROUP, NODES, REQUESTS, VERSION
from cubesched.api.rights import AGENT, GROUPS, NODE_USER_PREFIX

MUTABLE_SPEC: Final = ("priority", "paused", "schedulingGates")
"""What a client may change of a request after creation; gates can only be removed."""

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


def admission() -> list[dict[str, Any]]:
    """Return both policies with their bindings."""
    policies = (_immutable_spec(), _agents())
    return [entry for policy in policies for entry in (policy, _binding(policy))]


def _immutable_spec() -> dict[str, Any]:
    mutable = _names(MUTABLE_SPEC)
    return _policy(
        "cubesched-request-spec",
        rules=[_rule("UPDATE", REQUESTS.plural)],
        variables={
            "changed": (
                f"object.spec.filter(k, !(k in {mutable}) && !(k in oldObject.spec"
                " && object.spec[k] == oldObject.spec[k]))"
                f" + oldObject.spec.filter(k, !(k in {mutable}) && !(k in object.spec))"
            ),
        },
        validations=[
            {
                "expression": "size(variables.changed) == 0",
                "message": "spec is immutable, except " + ", ".join(MUTABLE_SPEC),
                "messageExpression": (
                    "'spec.' + variables.changed.join(', spec.') + ' cannot change: spec is"
                    f" immutable, except {', '.join(MUTABLE_SPEC)}; create a new request instead'"
                ),
            },
            {
                "expression": (
                    "!has(object.spec.schedulingGates) || (has(oldObject.spec.schedulingGates)"
                    " && object.spec.schedulingGates.all(g,"
                    " g in oldObject.spec.schedulingGates))"
                ),
                "message": "spec.schedulingGates can only be removed once a request exists",
            },
        ],
    )


def _agents() -> dict[str, Any]:
    return _policy(
        "cubesched-agents",
        rules=[
            _rule("CREATE", NODES.plural),
            _rule("UPDATE", NODES.plural, f"{NODES.plural}/status"),
            _rule("UPDATE", f"{REQUESTS.plural}/status"),
        ],
        variables=_agent_variables(),
        validations=[*_whose(), *_what(), *_pauses()],
        conditions={"from-an-agent": f"'{GROUPS[AGENT]}' in request.userInfo.groups"},
    )


def _agent_variables() -> dict[str, str]:
    start = len(NODE_USER_PREFIX)
    user = "request.userInfo.username"
    return {
        "node": f"{user}.startsWith('{NODE_USER_PREFIX}') ? {user}.substring({start}) : ''",
        "isNode": f"request.resource.resource == '{NODES.plural}'",
        "before": "has(oldObject.status) ? oldObject.status : {}",
        "after": "has(object.status) ? object.status : {}",
        "phaseBefore": _field("variables.before", "phase", "'Pending'"),
        "phaseAfter": _field("variables.after", "phase", "'Pending'"),
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
            f" ? {_names(PAUSE_FIELDS)} : variables.isReturn || variables.isRefusal"
            f" ? {_names(RETURN_FIELDS)} : {_names(AGENT_FIELDS)}"
        ),
        "clearable": f"variables.isReturn ? {_names(RETURN_CLEARS)} : {_names(AGENT_FIELDS)}",
        "touched": (
            "variables.after.filter(k, !(k in variables.writable) && !(k in variables.before"
            " && variables.after[k] == variables.before[k]))"
            " + variables.before.filter(k, !(k in variables.clearable) && !(k in variables.after))"
        ),
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


def _what() -> list[dict[str, str]]:
    """Return the rules on what it may write into a request's status."""
    allowed = " || ".join(
        f"(variables.phaseBefore == '{before}' && variables.phaseAfter in {_names(after)})"
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


def _field(block: str, name: str, default: str) -> str:
    return f"has({block}.{name}) ? {block}.{name} : {default}"


def _names(names: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def _rule(operation: str, *resources: str) -> dict[str, Any]:
    return {
        "apiGroups": [GROUP],
        "apiVersions": [VERSION],
        "operations": [operation],
        "resources": list(resources),
    }


def _policy(
    name: str,
    *,
    rules: list[dict[str, Any]],
    variables: dict[str, str],
    validations: list[dict[str, str]],
    conditions: dict[str, str] | None = None,
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
        "variables": [{"name": key, "expression": text} for key, text in variables.items()],
        "validations": validations,
    }
    if conditions:
        spec["matchConditions"] = [
            {"name": key, "expression": text} for key, text in conditions.items()
        ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "cubesched"}},
        "spec": spec,
    }


def _binding(policy: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": policy["metadata"],
        "spec": {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]},
    }
