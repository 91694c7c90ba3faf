"""Deletions, each of one object in one version and of no other that bears its name."""

from __future__ import annotations

import msgspec

from cubesched.adapters.cluster.gate import WriteGate
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.cluster.writes import PRIORITY_EXPLAIN, send
from cubesched.api import Resource
from cubesched.core.writing import WriteResult


class Deleter:
    """Deletes objects of one kind, behind every write that somebody waits for."""

    def __init__(
        self, transport: Transport, resource: Resource, gate: WriteGate | None = None
    ) -> None:
        self._transport = transport
        self._resource = resource
        self.gate = gate or WriteGate()

    async def delete(
        self, *, namespace: str, name: str, uid: str, resource_version: str
    ) -> WriteResult:
        """Delete the object if it still is this one at `resource_version`."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid, "resourceVersion": resource_version},
        }
        async with self.gate.slot(PRIORITY_EXPLAIN):
            return await send(
                self._transport,
                "DELETE",
                self._resource.path(name, namespace=namespace),
                params={},
                body=msgspec.json.encode(options),
            )
