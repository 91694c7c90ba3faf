"""A cluster of a few objects in memory, and a membership, as the handlers' loops see them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cubesched.adapters.cluster.transport import Response
from cubesched.api import Resource
from cubesched.core.errors import ApiError
from cubesched.core.writing import Outcome, WriteResult
from cubesched.fleet.rendezvous import Member, owner


def a_body(name: str, spec: Any, *, generation: int = 1, uid: str = "") -> dict[str, Any]:
    """An object as JSON; without a `spec` key when spec is None."""
    meta = {"name": name, "uid": uid or f"uid-{name}", "generation": generation}
    body: dict[str, Any] = {"metadata": meta}
    return body if spec is None else body | {"spec": spec}


@dataclass
class Cluster:
    """Serves lists in pages and takes applied statuses."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    """`PLURAL/NAME` to object."""
    writes: list[tuple[str, str]] = field(default_factory=list)
    """What was written, and by which field manager."""
    page_size: int = 500
    is_down: bool = False
    expire_pages: int = 0
    """How many pages are answered with 410 before they are served."""
    outcome: Outcome = Outcome.LANDED
    """How each write ends."""

    def put(self, resource: Resource, body: dict[str, Any]) -> None:
        """Store an object, keeping the status it had."""
        key = f"{resource.plural}/{body['metadata']['name']}"
        before = self.objects.get(key, {})
        self.objects[key] = ({"status": before["status"]} if "status" in before else {}) | body

    def drop(self, resource: Resource, name: str) -> None:
        """Delete an object."""
        del self.objects[f"{resource.plural}/{name}"]

    def conditions(self, resource: Resource, name: str) -> dict[str, tuple[str, str]]:
        """Status and reason of each condition of an object."""
        status = self.objects[f"{resource.plural}/{name}"].get("status", {})
        return {c["type"]: (c["status"], c["reason"]) for c in status.get("conditions", ())}

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, **_: Any
    ) -> Response:
        """Serve one page of a list."""
        assert method == "GET"
        await asyncio.sleep(0)
        if self.is_down:
            raise ApiError("cannot reach the API server")
        start = int((params or {}).get("continue", "0"))
        if start and self.expire_pages:
            self.expire_pages -= 1
            return Response(410, b'{"message": "expired"}')
        plural = path.rsplit("/", 1)[-1]
        items = [o for key, o in self.objects.items() if key.startswith(f"{plural}/")]
        end = start + self.page_size
        token = str(end) if end < len(items) else ""
        page = {"metadata": {"continue": token, "resourceVersion": "1"}, "items": items[start:end]}
        return Response(200, msgspec.json.encode(page))

    def stream(self, path: str, **_: Any) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Nobody here watches."""
        raise AssertionError(path)

    async def apply_status(
        self,
        resource: Resource,
        name: str,
        field_manager: str,
        status: Mapping[str, Any],
        *,
        uid: str = "",
        priority: int = 0,
    ) -> WriteResult:
        """Store the status."""
        await asyncio.sleep(0)
        self.writes.append((f"{resource.plural}/{name}", field_manager))
        if self.outcome is Outcome.LANDED:
            stored = self.objects[f"{resource.plural}/{name}"]
            assert stored["metadata"]["uid"] == uid
            stored["status"] = dict(status)
        return WriteResult(self.outcome, 200, "", "as told")


@dataclass
class Replicas:
    """The membership as one replica sees it."""

    me: str = "me"
    live: list[Member] = field(default_factory=lambda: [Member("me")])

    def owns(self, uid: str) -> bool:
        """Rendezvous over the live ones."""
        return owner(uid, [member.identity for member in self.live]) == self.me

    def members(self) -> Sequence[Member]:
        """All live ones."""
        return self.live


@dataclass
class Records:
    """Policy records in memory, the newest first."""

    kept: list[tuple[str, Any]] = field(default_factory=list)

    async def newest_first(self) -> list[tuple[str, Any]]:
        """All of them."""
        return list(self.kept)

    async def keep(self, name: str, data: Mapping[str, Any]) -> None:
        """Put one first, as JSON carries it."""
        plain = msgspec.json.decode(msgspec.json.encode(data))
        self.kept = [(name, plain), *(each for each in self.kept if each[0] != name)]
