"""Plain requests over any Transport, for tests: objects in, (code, object) out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from cubesched.adapters.cluster.transport import Transport
from cubesched.api import API_VERSION, REQUESTS, Resource

NAMESPACE = "default"
Answer = tuple[int, dict[str, Any]]


def a_request(name: str, **spec: Any) -> dict[str, Any]:
    """Return a SandboxRequest as a client would create it."""
    return {
        "apiVersion": API_VERSION,
        "kind": "SandboxRequest",
        "metadata": {"name": name, "labels": {"workload": "test"}},
        "spec": {"resources": {"cpu": "1", "memory": "1Gi"}, **spec},
    }


def a_node(name: str, **spec: Any) -> dict[str, Any]:
    """Return a SandboxNode as an agent would create it."""
    return {
        "apiVersion": API_VERSION,
        "kind": "SandboxNode",
        "metadata": {"name": name},
        "spec": {"capacity": {"cpu": "4", "memory": "8Gi"}, **spec},
    }


def placed(phase: str, node: str = "n", *, cpu_millis: int = 1000) -> dict[str, Any]:
    """Return the status of a request that has a place."""
    reservation = {"id": "0123456789abcdef", "replica": "r", "cpuMillis": cpu_millis}
    return {
        "phase": phase,
        "nodeName": node,
        "reservation": {**reservation, "memoryBytes": 1 << 30},
    }


def version_of(obj: Mapping[str, Any]) -> str:
    """Return an object's (or list's) resourceVersion."""
    return str(obj["metadata"]["resourceVersion"])


@dataclass(frozen=True)
class Http:
    """Requests of one client to one collection."""

    transport: Transport
    resource: Resource = REQUESTS
    namespace: str = NAMESPACE

    def path(self, name: str = "", subresource: str = "") -> str:
        """Return the path of the collection or of one object."""
        namespace = self.namespace if self.resource.namespaced else ""
        return self.resource.path(name, namespace=namespace, subresource=subresource)

    async def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """Send one request and decode its answer."""
        response = await self.transport.request(
            method,
            path,
            params=params,
            body=None if body is None else orjson.dumps(body),
            content_type=content_type,
        )
        return response.status, orjson.loads(response.body)

    async def create(self, obj: Mapping[str, Any]) -> Answer:
        return await self.send("POST", self.path(), obj)

    async def get(self, name: str) -> Answer:
        return await self.send("GET", self.path(name))

    async def list(self, **params: str) -> Answer:
        return await self.send("GET", self.path(), params=params)

    async def delete(self, name: str, options: Mapping[str, Any] | None = None) -> Answer:
        return await self.send("DELETE", self.path(name), options)

    async def replace(self, obj: Mapping[str, Any]) -> Answer:
        return await self.send("PUT", self.path(obj["metadata"]["name"]), obj)

    async def put_status(
        self, obj: Mapping[str, Any], status: Mapping[str, Any], **metadata: str | None
    ) -> Answer:
        """Send a lean PUT of /status; `metadata` overrides (None drops) what identifies `obj`."""
        stored = obj["metadata"]
        identity = {key: stored.get(key) for key in ("name", "namespace", "resourceVersion", "uid")}
        identity |= metadata
        body = {
            "apiVersion": API_VERSION,
            "kind": self.resource.kind,
            "metadata": {key: value for key, value in identity.items() if value},
            "status": status,
        }
        return await self.send("PUT", self.path(stored["name"], "status"), body)

    async def patch(
        self, name: str, body: Mapping[str, Any], *, subresource: str = "", kind: str = "merge"
    ) -> Answer:
        return await self.send(
            "PATCH",
            self.path(name, subresource),
            body,
            content_type=f"application/{kind}-patch+json",
        )

    async def apply(
        self, obj: Mapping[str, Any], *, manager: str, subresource: str = "", force: bool = False
    ) -> Answer:
        """Apply server-side."""
        return await self.send(
            "PATCH",
            self.path(obj["metadata"]["name"], subresource),
            {"apiVersion": API_VERSION, "kind": self.resource.kind, **obj},
            params={"fieldManager": manager, **({"force": "true"} if force else {})},
            content_type="application/apply-patch+yaml",
        )

    @asynccontextmanager
    async def watch(self, **params: str) -> AsyncIterator[Events]:
        """Watch the whole collection."""
        async with self.transport.stream(
            self.path(), params={"watch": "1", **params}, idle_seconds=30
        ) as lines:
            yield Events(lines)


class Events:
    """The events of one watch; a read that takes too long gives None and loses nothing."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines
        self._reading: asyncio.Task[bytes] | None = None

    async def next(self, within_seconds: float = 2.0) -> dict[str, Any] | None:
        """Return the next event; None when there is none in time."""
        reading = self._reading or asyncio.ensure_future(anext(self._lines))
        done, _ = await asyncio.wait([reading], timeout=within_seconds)
        self._reading = None if done else reading
        event: dict[str, Any] | None = orjson.loads(reading.result()) if done else None
        return event

    async def take(self, number: int) -> list[tuple[str, str, str]]:
        """Return (type, name, version) of the next `number` events, bookmarks left out."""
        taken: list[tuple[str, str, str]] = []
        while len(taken) < number:
            event = await self.next()
            assert event is not None, f"only {taken} of {number} events came"
            if event["type"] != "BOOKMARK":
                obj = event["object"]
                taken.append((event["type"], obj["metadata"]["name"], version_of(obj)))
        return taken

    async def close(self) -> None:
        """Give up a read that is still under way."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
