"""Every write to an object's status: one conditional form, one module, a few at a time.

A write is a lean PUT: only the identity, the version it is conditional on, and the whole status
go over the wire. What became of it is a value, never an exception.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cubesched.adapters.cluster.answers import message_of, retry_after_seconds
from cubesched.adapters.cluster.gate import WriteGate
from cubesched.adapters.cluster.transport import Response, Transport
from cubesched.api import API_VERSION, Resource
from cubesched.core.errors import ApiError, OutcomeUnknown
from cubesched.core.writing import Outcome, WriteResult

FIELD_MANAGER: Final = "cubesched"
APPLY_PATCH: Final = "application/apply-patch+yaml"
PRIORITY_RESERVE: Final = 1
PRIORITY_EXPLAIN: Final = 2
PRIORITY_SUMMARY: Final = 3
"""What nothing waits for: all others go first."""


class _StoredMeta(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str = ""


class _Stored(msgspec.Struct, frozen=True):
    metadata: _StoredMeta = _StoredMeta()


_STORED: Final = msgspec.json.Decoder(_Stored)


class StatusWriter:
    """Writes the status of objects of one kind, each write conditional on a version."""

    def __init__(
        self, transport: Transport, resource: Resource, gate: WriteGate | None = None
    ) -> None:
        self._transport = transport
        self._resource = resource
        self.gate = gate or WriteGate()

    async def put_status(
        self,
        *,
        namespace: str,
        name: str,
        uid: str,
        resource_version: str,
        status: Mapping[str, Any],
        priority: int = PRIORITY_RESERVE,
    ) -> WriteResult:
        """Replace the whole status if the object still is at `resource_version`."""
        metadata = {"name": name, "uid": uid, "resourceVersion": resource_version}
        if namespace:
            metadata["namespace"] = namespace
        body = {
            "apiVersion": API_VERSION,
            "kind": self._resource.kind,
            "metadata": metadata,
            "status": status,
        }
        async with self.gate.slot(priority):
            return await send(
                self._transport,
                "PUT",
                self._resource.path(name, namespace=namespace, subresource="status"),
                params={"fieldManager": FIELD_MANAGER},
                body=msgspec.json.encode(body),
            )


class StatusApplier:
    """Writes an operator's or agent's own part of a status by server-side apply, by force.

    For SandboxNode, SchedulerProfile and SchedulerConfig, where each field has one manager;
    SandboxRequests are written by `StatusWriter` only.
    """

    def __init__(self, transport: Transport, gate: WriteGate | None = None) -> None:
        self._transport = transport
        self.gate = gate or WriteGate()

    async def apply_status(
        self,
        resource: Resource,
        name: str,
        field_manager: str,
        status: Mapping[str, Any],
        *,
        uid: str = "",
        priority: int = PRIORITY_EXPLAIN,
    ) -> WriteResult:
        """Make `status` the whole of what `field_manager` says; with `uid`, of that object only."""
        metadata = {"name": name, "uid": uid} if uid else {"name": name}
        body = {
            "apiVersion": API_VERSION,
            "kind": resource.kind,
            "metadata": metadata,
            "status": status,
        }
        async with self.gate.slot(priority):
            return await send(
                self._transport,
                "PATCH",
                resource.path(name, subresource="status"),
                params={"fieldManager": field_manager, "force": "true"},
                body=msgspec.json.encode(body),
                content_type=APPLY_PATCH,
            )


async def get_raw(
    transport: Transport, resource: Resource, name: str, *, namespace: str = ""
) -> bytes | None:
    """Read one object as the bytes the server sent; None when there is none."""
    path = resource.path(name, namespace=namespace)
    response = await transport.request("GET", path)
    if response.status == 404:
        return None
    if response.status != 200:
        raise ApiError(f"GET {path}: {message_of(response)}", response.status)
    return response.body


async def send(
    transport: Transport,
    method: str,
    path: str,
    *,
    params: Mapping[str, str],
    body: bytes,
    content_type: str = "application/json",
) -> WriteResult:
    """Send one write, again after each 429, and tell what became of it."""
    while True:
        try:
            response = await transport.request(
                method, path, params=params, body=body, content_type=content_type
            )
        except OutcomeUnknown as error:
            return WriteResult(Outcome.UNKNOWN, error.status, "", str(error))
        except ApiError as error:
            return WriteResult(Outcome.REJECTED, error.status, "", str(error))
        if response.status != 429:
            return _result(response)
        # The server did not look at it, so sending it again cannot be a second write.
        await asyncio.sleep(retry_after_seconds(response, otherwise=1.0))


def _result(response: Response) -> WriteResult:
    if 200 <= response.status < 300:
        return WriteResult(Outcome.LANDED, response.status, _version_of(response.body), "")
    outcome = {409: Outcome.REFUSED, 404: Outcome.MISSING}.get(
        response.status,
        Outcome.REJECTED if 400 <= response.status < 500 else Outcome.UNKNOWN,
    )
    return WriteResult(outcome, response.status, "", message_of(response))


def _version_of(body: bytes) -> str:
    try:
        return _STORED.decode(body).metadata.resource_version
    except msgspec.MsgspecError:
        return ""
