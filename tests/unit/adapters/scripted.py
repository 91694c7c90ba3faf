"""A transport that answers what the test wrote down, in that order, and notes what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from cubesched.adapters.cluster.transport import Response


def an_object(name: str, version: int, **fields: Any) -> dict[str, Any]:
    """Return one object as JSON data."""
    return {"metadata": {"name": name, "resourceVersion": str(version)}, **fields}


def a_page(version: int, *objects: Any, token: str = "") -> Response:
    """Return one page of a list."""
    metadata = {"resourceVersion": str(version)}
    if token:
        metadata["continue"] = token
    return Response(200, json.dumps({"metadata": metadata, "items": list(objects)}).encode())


def a_refusal(
    code: int, message: str = "no", *, headers: Mapping[str, str] | None = None, **fields: Any
) -> Response:
    """Return a Status that says no."""
    body = {"kind": "Status", "code": code, "message": message, **fields}
    return Response(code, json.dumps(body).encode(), headers or {})


def a_line(kind: str, obj: Any) -> bytes:
    """Return one line of a watch."""
    return json.dumps({"type": kind, "object": obj}).encode()


def a_bookmark(version: int) -> bytes:
    """Return a bookmark."""
    return a_line("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


@dataclass(frozen=True, slots=True)
class Watch:
    """What one watch says: lines, pauses in seconds, an error, or its end."""

    says: Sequence[bytes | float | Exception]
    stays_open: bool = True
    """After the last of `says`: silent for ever, or ended by the server."""


@dataclass(slots=True)
class Call:
    """One thing the transport was asked to do."""

    method: str
    path: str
    params: Mapping[str, str]
    body: bytes | None
    at: float
    content_type: str = ""


@dataclass
class ScriptedTransport:
    """Answers in order; restore checks (`limit=1`) are answered with `newest`."""

    answers: deque[Response | Exception] = field(default_factory=deque)
    watches: deque[Watch | Exception] = field(default_factory=deque)
    newest: int = 1_000_000
    calls: list[Call] = field(default_factory=list)
    open_watches: int = 0

    def lists(self) -> list[Call]:
        """Return the calls that fetched pages."""
        return [call for call in self.calls if call.params.get("limit", "1") != "1"]

    def opened(self) -> list[Call]:
        """Return the calls that opened watches."""
        return [call for call in self.calls if call.method == "WATCH"]

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_seconds: float = 15.0,
    ) -> Response:
        """Give the next answer."""
        now = asyncio.get_running_loop().time()
        self.calls.append(Call(method, path, dict(params or {}), body, now, content_type))
        if (params or {}).get("limit") == "1":
            return a_page(self.newest)
        if not self.answers:
            await asyncio.get_running_loop().create_future()
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        params: Mapping[str, str],
        idle_seconds: float,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open the next watch."""
        now = asyncio.get_running_loop().time()
        self.calls.append(Call("WATCH", path, dict(params), None, now))
        if not self.watches:
            await asyncio.get_running_loop().create_future()
        watch = self.watches.popleft()
        if isinstance(watch, Exception):
            raise watch
        self.open_watches += 1
        try:
            yield self._say(watch)
        finally:
            self.open_watches -= 1

    async def _say(self, watch: Watch) -> AsyncIterator[bytes]:
        for word in watch.says:
            if isinstance(word, Exception):
                raise word
            if isinstance(word, bytes):
                yield word
            else:
                await asyncio.sleep(word)
        if watch.stays_open:
            await asyncio.get_running_loop().create_future()
