"""The admission policies name only fields and phases that exist."""

from __future__ import annotations

from cubesched.generate.admission import MUTABLE_SPEC, admission
from cubesched.generate.agent_rules import AGENT_TRANSITIONS, RETURN_CLEARS
from cubesched.generate.crds import object_schema
from cubesched.generate.kinds import REQUEST

PROPERTIES = object_schema(REQUEST)["properties"]


def test_every_field_named_exists() -> None:
    assert set(MUTABLE_SPEC) <= set(PROPERTIES["spec"]["properties"])
    assert set(RETURN_CLEARS) <= set(PROPERTIES["status"]["properties"])


def test_every_phase_named_exists() -> None:
    named = {phase for before, after in AGENT_TRANSITIONS.items() for phase in (before, *after)}

    assert named <= set(PROPERTIES["status"]["properties"]["phase"]["enum"])


def test_each_policy_fails_closed_and_is_bound_to_deny() -> None:
    policies = [entry for entry in admission() if entry["kind"] == "ValidatingAdmissionPolicy"]
    bindings = [entry for entry in admission() if entry["kind"].endswith("Binding")]

    assert {policy["spec"]["failurePolicy"] for policy in policies} == {"Fail"}
    assert [binding["spec"]["policyName"] for binding in bindings] == [
        policy["metadata"]["name"] for policy in policies
    ]
    assert {tuple(binding["spec"]["validationActions"]) for binding in bindings} == {("Deny",)}
