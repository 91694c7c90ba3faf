"""Roles hold the least that is needed."""

from __future__ import annotations

from cubesched.generate.rbac import AGENT, OPERATOR, RIGHTS, VIEWER, rbac


def verbs(role: str, resource: str) -> set[str]:
    return {verb for r in RIGHTS if r.role == role and resource in r.resources for verb in r.verbs}


def test_nobody_may_patch_or_delete_a_request() -> None:
    for role in (OPERATOR, AGENT, VIEWER):
        assert verbs(role, "sandboxrequests") <= {"get", "list", "watch"}
        assert verbs(role, "sandboxrequests/status") <= {"update"}


def test_no_right_is_a_wildcard() -> None:
    for right in RIGHTS:
        assert "*" not in (*right.resources, *right.verbs, right.group)


def test_an_agent_may_not_delete_its_node() -> None:
    assert "delete" not in verbs(AGENT, "sandboxnodes")


def test_leases_are_reached_in_the_system_namespace_only() -> None:
    roles = [entry for entry in rbac() if "leases" in str(entry.get("rules", ""))]

    assert [(role["kind"], role["metadata"]["namespace"]) for role in roles] == [
        ("Role", "cubesched-system")
    ]


def test_every_role_is_bound_to_its_group() -> None:
    bound = {
        entry["roleRef"]["name"]: entry["subjects"][0]["name"]
        for entry in rbac()
        if entry["kind"] == "ClusterRoleBinding"
    }

    assert bound == {
        OPERATOR: "cubesched:operators",
        AGENT: "cubesched:nodes",
        VIEWER: "cubesched:viewers",
    }
