"""The node's own SandboxNode: created once, then only its status, by server-side apply."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from cubesched.adapters.cluster.answers import error_of
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.cluster.writes import StatusApplier, get_raw
from cubesched.agent.stored import Stored
from cubesched.api import API_VERSION, NODES
from cubesched.api.conditions import Condition, condition
from cubesched.api.timestamps import timestamp
from cubesched.core.errors import ApiError
from cubesched.core.writing import Outcome
from cubesched.fleet.objects import Meta

FIELD_MANAGER: Final = "cubesched-agent"
Address = tuple[str, str]
"""What kind of address (InternalIP, ExternalIP, Hostname, ...), and the address."""


class _Named(msgspec.Struct, frozen=True):
    metadata: Meta


_NAMED: Final = msgspec.json.Decoder(_Named)


class NodeObject:
    """Registers one node and tells whether it is ready. `spec` belongs to admins once created."""

    def __init__(
        self,
        node: str,
        transport: Transport,
        *,
        applier: StatusApplier,
        addresses: Sequence[Address] = (),
        epoch_seconds: Callable[[], float] = time.time,
    ) -> None:
        self.node = node
        self._transport = transport
        self._applier = applier
        self._addresses = [{"type": kind, "address": address} for kind, address in addresses]
        self._now = epoch_seconds
        self._meta: Meta | None = None
        self._ready: Condition = {}
        self._applied: tuple[str, Stored] | None = None

    @property
    def uid(self) -> str:
        """metadata.uid; empty before `ensure`."""
        return self._meta.uid if self._meta else ""

    async def ensure(self, spec: Mapping[str, Any], labels: Mapping[str, str]) -> None:
        """Create the object unless it exists; an existing spec is left as it is."""
        body = {
            "apiVersion": API_VERSION,
            "kind": NODES.kind,
            "metadata": {"name": self.node, "labels": dict(labels)},
            "spec": dict(spec),
        }
        response = await self._transport.request(
            "POST",
            NODES.path(),
            params={"fieldManager": FIELD_MANAGER},
            body=msgspec.json.encode(body),
        )
        if response.status == 409:
            raw = await get_raw(self._transport, NODES, self.node)
            if raw is None:
                raise ApiError(f"{self.node} was deleted while it was registered", 409)
        elif response.status != 201:
            raise error_of(response, f"cannot register {self.node}")
        else:
            raw = response.body
        self._meta = _NAMED.decode(raw).metadata

    async def report_ready(self, stored: Stored) -> None:
        """Say that the agent acts on what is bound here, and what the node stores."""
        await self._apply("True", "AgentReady", "the agent runs", stored)

    async def report_stopped(self, stored: Stored) -> None:
        """Say that the agent was stopped: nothing new should be placed here."""
        await self._apply("False", "AgentStopped", "the agent was stopped", stored)

    async def refresh(self, stored: Stored) -> None:
        """Look whether the object is still the same, and write only what changed.

        A deleted object stays deleted: somebody took the machine out. One that was created
        again is another node, which this agent serves from now on.
        """
        raw = await get_raw(self._transport, NODES, self.node)
        if raw is None:
            return
        self._meta = _NAMED.decode(raw).metadata
        if self._applied != (self.uid, stored):
            await self.report_ready(stored)

    async def _apply(self, value: str, reason: str, message: str, stored: Stored) -> None:
        self._ready = condition(
            "Ready",
            value,
            reason=reason,
            message=message,
            generation=self._meta.generation if self._meta else 0,
            now=timestamp(self._now()),
            before=self._ready,
        )
        status = {
            "conditions": [self._ready],
            "addresses": self._addresses,
            **stored.status(),
        }
        result = await self._applier.apply_status(
            NODES, self.node, FIELD_MANAGER, status, uid=self.uid
        )
        if result.outcome is not Outcome.LANDED:
            raise ApiError(f"cannot write the status of {self.node}: {result.message}")
        self._applied = (self.uid, stored)
