"""Roles hold the least that is needed."""

from __future__ import annotations

from cubesched.api.rights import AGENT, GRANTS, OPERATOR, VIEWER
from cubesched.generate.rbac import rbac


def verbs(role: str, resource: str) -> set[str]:
    return {verb for g in GRANTS if g.role == role and resource in g.resources for verb in g.verbs}


def test_nobody_may_patch_a_request_and_only_the_operator_delete_one() -> None:
    for role in (OPERATOR, AGENT, VIEWER):
        may_delete = {"delete"} if role == OPERATOR else set()
        assert verbs(role, "sandboxrequests") <= {"get", "list", "watch"} | may_delete
        assert verbs(role, "sandboxrequests/status") <= {"update"}


def test_no_grant_is_a_wildcard() -> None:
    for grant in GRANTS:
        assert "*" not in (*grant.resources, *grant.verbs, grant.group)


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
