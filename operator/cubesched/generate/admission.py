"""What else is refused: changes of a request's spec, deep arguments, what agents may not write.

These ValidatingAdmissionPolicies stand beside the CRDs because a rule on spec inside the schema
would run at every status write, and because no rule of a schema can look at what has none. Nothing
in the operator's safety rests on them; they keep clients and agents honest.
"""

from __future__ import annotations

from typing import Any, Final

from cubesched.api import GROUP, NODES, PROFILES, REQUESTS, VERSION
from cubesched.api.rights import AGENT, GROUPS
from cubesched.generate.agent_rules import agent_validations, agent_variables, names

MUTABLE_SPEC: Final = ("priority", "paused", "schedulingGates")
"""What a client may change of a request after creation; gates can only be removed."""

MAX_ARGS_DEPTH: Final = 3
"""Lists and maps inside each other; `args` itself is the first."""


def admission() -> list[dict[str, Any]]:
    """Return all policies with their bindings."""
    policies = (_immutable_spec(), _shallow_args(), _agents())
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


def _shallow_args() -> dict[str, Any]:
    """Bound what has no schema: readers of JSON fail at some depth, all replicas alike."""
    return _policy(
        "cubesched-profile-args",
        rules=[
            _rule("CREATE", PROFILES.plural),
            _rule("UPDATE", PROFILES.plural),
        ],
        variables={},
        validations=[
            {
                "expression": (
                    f"!has(object.spec.{field}) || object.spec.{field}.all(entry,"
                    " !has(entry.args) || entry.args.all(k,"
                    f" {_is_shallow('entry.args[k]', MAX_ARGS_DEPTH - 1)}))"
                ),
                "message": f"spec.{field}[].args: lists and maps are nested more than"
                f" {MAX_ARGS_DEPTH} deep",
            }
            for field in ("filters", "scores")
        ],
    )


def _is_shallow(value: str, depth: int) -> str:
    """Return the expression: lists and maps are at most so many inside each other here."""
    if depth == 0:
        return f"type({value}) != map && type({value}) != list"
    key, item = f"k{depth}", f"i{depth}"
    return (
        f"(type({value}) == map ? {value}.all({key}, {_is_shallow(f'{value}[{key}]', depth - 1)})"
        f" : type({value}) == list ? {value}.all({item}, {_is_shallow(item, depth - 1)}) : true)"
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
