"""The system namespace, the roles and their bindings, from the table of grants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cubesched.api import SYSTEM_NAMESPACE
from cubesched.api.rights import GRANTS, GROUPS, Grant


def rbac() -> Iterator[dict[str, Any]]:
    """Return the objects of deploy/rbac.yaml in the order to create them."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": _meta(SYSTEM_NAMESPACE)}
    for role, group in GROUPS.items():
        for is_local in (False, True):
            grants = [g for g in GRANTS if g.role == role and g.is_local is is_local]
            if grants:
                yield _role(role, grants, is_local=is_local)
                yield _binding(role, group, is_local=is_local)


def _role(name: str, grants: list[Grant], *, is_local: bool) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role" if is_local else "ClusterRole",
        "metadata": _meta(name, is_local=is_local),
        "rules": [
            {
                "apiGroups": [grant.group],
                "resources": list(grant.resources),
                "verbs": list(grant.verbs),
            }
            for grant in grants
        ],
    }


def _binding(name: str, group: str, *, is_local: bool) -> dict[str, Any]:
    kind = "Role" if is_local else "ClusterRole"
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": f"{kind}Binding",
        "metadata": _meta(name, is_local=is_local),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group},
        ],
    }


def _meta(name: str, *, is_local: bool = False) -> dict[str, Any]:
    place = {"namespace": SYSTEM_NAMESPACE} if is_local else {}
    return {"name": name, **place, "labels": {"app.kubernetes.io/name": "cubesched"}}
