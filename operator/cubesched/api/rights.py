"""Who may do what: one table, from which deploy/rbac.yaml is made and a start-up checks itself.

Status of requests is written by `update` alone, never by `patch`: an update without the
version it was read at is refused, so every such write is conditional.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cubesched.api import CONFIGS, GROUP, NODES, PROFILES, REQUESTS

READ: Final = ("get", "list", "watch")

OPERATOR: Final = "cubesched-operator"
AGENT: Final = "cubesched-agent"
VIEWER: Final = "cubesched-viewer"

GROUPS: Final = {
    OPERATOR: "cubesched:operators",
    AGENT: "cubesched:nodes",
    VIEWER: "cubesched:viewers",
}
"""The group that holds each role; client certificates carry it as their organization."""

NODE_USER_PREFIX: Final = "cubesched:node:"
"""An agent's user name is this and the name of its node."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Verbs on resources of one API group; only in the system namespace where local."""

    role: str
    resources: tuple[str, ...]
    """Plural names, a subresource after a slash."""
    verbs: tuple[str, ...]
    group: str = GROUP
    is_local: bool = False


GRANTS: Final = (
    Grant(OPERATOR, (PROFILES.plural, CONFIGS.plural, NODES.plural, REQUESTS.plural), READ),
    Grant(OPERATOR, (f"{REQUESTS.plural}/status",), ("update",)),
    Grant(OPERATOR, (REQUESTS.plural,), ("delete",)),
    Grant(
        OPERATOR,
        (f"{PROFILES.plural}/status", f"{CONFIGS.plural}/status", f"{NODES.plural}/status"),
        ("patch",),
    ),
    Grant(OPERATOR, ("events",), ("create",), group="events.k8s.io"),
    Grant(
        OPERATOR,
        ("leases",),
        ("get", "list", "create", "update", "delete"),
        group="coordination.k8s.io",
        is_local=True,
    ),
    Grant(
        OPERATOR,
        ("controllerrevisions",),
        ("list", "create", "patch", "delete"),
        group="apps",
        is_local=True,
    ),
    Grant(AGENT, (NODES.plural,), (*READ, "create", "update", "patch")),
    Grant(AGENT, (f"{NODES.plural}/status",), ("update", "patch")),
    Grant(AGENT, (REQUESTS.plural,), READ),
    Grant(AGENT, (f"{REQUESTS.plural}/status",), ("update",)),
    Grant(VIEWER, (PROFILES.plural, CONFIGS.plural, NODES.plural, REQUESTS.plural), READ),
)
