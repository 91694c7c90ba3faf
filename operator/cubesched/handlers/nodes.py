"""SandboxNode: what stands in its status. The columns are fed by a watch of their own."""

from __future__ import annotations

from typing import Any

import kopf

from cubesched.api import GROUP, NODES, VERSION
from cubesched.handlers.ports import App


def register(registry: kopf.OperatorRegistry, app: App) -> None:
    """Attach the handler of SandboxNodes."""

    @kopf.on.event(GROUP, VERSION, NODES.plural, registry=registry)
    async def node_changed(type: str | None, body: kopf.Body, **_: Any) -> None:  # noqa: A002
        """Look at the node as it now is."""
        if type == "DELETED":
            app.node_statuses.forget(body.metadata.uid or "")
        else:
            app.node_statuses.observe(body)
