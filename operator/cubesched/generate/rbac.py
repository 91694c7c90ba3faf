"""Who may do what: one table of rules, from which deploy/rbac.yaml is made.

Status of requests is written by `update` alone, never by `patch`: an update without the
version it was read at is refused, so every such write is conditional.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from cubesched.api import CONFIGS, GROUP, NODES, PROFILES, REQUESTS, SYSTEM_NAMESPACE

READ: Final = ("get", "list", "watch")
_POLICY_STATUS: Final = (
    f"{PROFILES.plural}/status",
    f"{CONFIGS.plural}/status",
    f"{NODES.plural}/status",
)


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on resources of one API group; only in the system namespace where local."""

    role: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    group: str = GROUP
    is_local: bool = False


OPERATOR: Final = "cubesched-operator"
AGENT: Final = "cubesched-agent"
VIEWER: Final = "cubesched-viewer"

RIGHTS: Final = (
    Right(OPERATOR, (PROFILES.plural, CONFIGS.plural, NODES.plural, REQUESTS.plural), READ),
    Right(OPERATOR, (f"{REQUESTS.plural}/status",), ("update",)),
    Right(OPERATOR, _POLICY_STATUS, ("update", "patch")),
    Right(OPERATOR, ("events",), ("create", "patch"), group="events.k8s.io"),
    Right(
        OPERATOR,
        ("leases",),
        (*READ, "create", "update", "delete"),
        group="coordination.k8s.io",
        is_local=True,
    ),
    Right(AGENT, (NODES.plural,), (*READ, "create", "update", "patch")),
    Right(AGENT, (f"{NODES.plural}/status",), ("update", "patch")),
    Right(AGENT, (REQUESTS.plural,), READ),
    Right(AGENT, (f"{REQUESTS.plural}/status",), ("update",)),
    Right(VIEWER, (NODES.plural, REQUESTS.plural), READ),
)

SUBJECTS: Final = {
    OPERATOR: "cubesched:operators",
    AGENT: "cubesched:nodes",
    VIEWER: "cubesched:viewers",
}
"""The group that holds each role; client certificates carry it as their organization."""


def rbac() -> Iterator[dict[str, Any]]:
    """Return the system namespace, the roles, and their bindings to groups."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": _meta(SYSTEM_NAMESPACE)}
    for role, subject in SUBJECTS.items():
        for is_local in (False, True):
            rights = [r for r in RIGHTS if r.role == role and r.is_local is is_local]
            if rights:
                yield _role(role, rights, is_local=is_local)
                yield _binding(role, subject, is_local=is_local)


def _role(name: str, rights: list[Right], *, is_local: bool) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role" if is_local else "ClusterRole",
        "metadata": _meta(name, is_local=is_local),
        "rules": [
            {
                "apiGroups": [right.group],
                "resources": list(right.resources),
                "verbs": list(right.verbs),
            }
            for right in rights
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
