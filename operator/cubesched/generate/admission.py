"""Two ValidatingAdmissionPolicies: what of a request may change, and what an agent may write.

They stand beside the CRDs because a rule on spec inside the schema would run at every status
write. Nothing in the operator's safety rests on them; they keep clients and agents honest.
"""

from __future__ import annotations

from typing import Any, Final

from cubesched.api import GROUP, NODES, REQUESTS, VERSION
from cubesched.api.rights import AGENT, GROUPS
from cubesched.generate.agent_rules import agent_validations, agent_variables, names

MUTABLE_SPEC: Final = ("priority", "paused", "schedulingGates")
"""What a client may change of a request after creation; gates can only be removed."""


def admission() -> list[dict[str, Any]]:
    """Return both policies with their bindings."""
    policies = (_immutable_spec(), _agents())
    return [entry for policy in policies for entry in (policy, _binding(policy))]


def _immutable_spec() -> dict[str, Any]:
    mutable = names(MUTABLE_SPEC)
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
        variables=agent_variables(),
        validations=agent_validations(),
        conditions={"from-an-agent": f"'{GROUPS[AGENT]}' in request.userInfo.groups"},
    )


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
