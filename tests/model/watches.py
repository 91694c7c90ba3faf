"""Watches: each client sees the one order of changes, with its own lag and its own chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING

import orjson
from tests.model.resources import Refusal, Selector, Target, selector
from tests.model.store import Change, Object, at_revision, event_line

from cubesched.core.errors import ApiError

if TYPE_CHECKING:
    from tests.model.apiserver import ApiServer

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
MOMENT_SECONDS = 1e-6


class Watch:
    """One open watch, as its client reads it."""

    def __init__(self, server: ApiServer, target: Target, params: Mapping[str, str]) -> None:
        self._server = server
        self._target = target
        self._selector: Selector = selector(target.kind, params)
        self._bookmarks = params.get("allowWatchBookmarks") == "true"
        self._ends_at = server.now() + float(params.get("timeoutSeconds") or 1_800)
        self._bookmark_at = server.now() + server.bookmark_seconds
        self._incarnation = server.incarnation
        self._changed = asyncio.Event()
        self._first_lines: list[bytes] = []
        self._position = self._start(params)
        self._is_expired = False
        if self._position < server.cache_floor:
            self._is_expired = True
        server.watches.append(self)

    def _start(self, params: Mapping[str, str]) -> int:
        wanted = params.get("resourceVersion", "")
        if params.get("sendInitialEvents") == "true":
            self._check_initial_events(params)
        elif wanted not in {"", "0"}:
            return int(wanted)
        now = self._server.store.revision
        state = sorted(self._server.store.objects.items())
        self._first_lines = [
            event_line("ADDED", obj)
            for key, obj in state
            if self._target.holds(key) and self._selector.matches(obj)
        ]
        if params.get("sendInitialEvents") == "true" and self._bookmarks:
            self._first_lines.append(self._bookmark(now, {INITIAL_EVENTS_END: "true"}))
        return now

    def _check_initial_events(self, params: Mapping[str, str]) -> None:
        if not self._server.serves_initial_events:
            raise Refusal(
                422,
                "Invalid",
                "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless "
                "the WatchList feature gate is enabled",
            )
        if params.get("resourceVersionMatch") != "NotOlderThan":
            raise Refusal(
                422, "Invalid", "resourceVersionMatch: Forbidden: must be NotOlderThan here"
            )

    @property
    def is_expired(self) -> bool:
        """Tell whether the position it was opened at is no longer served."""
        return self._is_expired

    def wake(self) -> None:
        """Something changed: a commit, a restart, an end."""
        self._changed.set()

    def end(self) -> None:
        """End the stream cleanly at the next chance, as a changed CRD does."""
        self._ends_at = self._server.now()
        self.wake()

    def close(self) -> None:
        """Forget the client."""
        if self in self._server.watches:
            self._server.watches.remove(self)

    async def lines(self, *, idle_seconds: float) -> AsyncGenerator[bytes, None]:
        """Yield the lines as they arrive; raise ApiError on a lost connection or silence."""
        server = self._server
        if self._is_expired:
            server.fired["watch_410_line"] += 1
            yield event_line("ERROR", _expired(server.cache_floor).status)
            return
        for line in self._first_lines:
            yield line
        heard_at = server.now()
        while True:
            self._check_connection()
            if self._has_backlog():
                await asyncio.sleep(server.faults.lag(server.rng))
                self._check_connection()
                for line in self._take(server.faults.chunk_size):
                    server.fired["watch_line"] += 1
                    heard_at = server.now()
                    yield line
                if await self._breaks_after_chunk(idle_seconds):
                    return
            elif server.now() >= self._ends_at:
                server.fired["watch_ended"] += 1
                return
            elif self._bookmarks and server.now() >= self._bookmark_at:
                self._bookmark_at = server.now() + server.bookmark_seconds
                heard_at = server.now()
                server.fired["watch_bookmark"] += 1
                yield self._bookmark(self._bookmark_revision(), {})
            elif server.now() >= heard_at + idle_seconds:
                raise ApiError(f"nothing arrived for {idle_seconds:g} s")
            else:
                await self._pause(heard_at + idle_seconds)

    def _check_connection(self) -> None:
        if self._incarnation != self._server.incarnation:
            self._server.fired["watch_reset_by_restart"] += 1
            raise ApiError("connection reset by peer")

    def _has_backlog(self) -> bool:
        return self._server.store.revision > self._position

    def _take(self, size: int) -> list[bytes]:
        """Return the lines of the next `size` changes; others' changes cost no line."""
        chunk = self._server.store.since(self._position)[: self._server.rng.randint(1, size)]
        if chunk:
            self._position = chunk[-1].revision
        lines = [self._line(change) for change in chunk if self._target.holds(change.key)]
        return [line for line in lines if line is not None]

    def _line(self, change: Change) -> bytes | None:
        """Return what this client sees: entering a selection is ADDED, leaving it DELETED."""
        if not self._selector.terms:
            return change.line
        had = change.previous is not None and self._selector.matches(change.previous)
        has = change.kind != "DELETED" and self._selector.matches(change.object)
        if has:
            return event_line("MODIFIED" if had else "ADDED", change.object)
        if had and change.previous is not None:
            return event_line("DELETED", at_revision(change.previous, change.revision))
        return None

    async def _breaks_after_chunk(self, idle_seconds: float) -> bool:
        """Draw whether the connection breaks here: reset, ended, or silent for ever."""
        server, faults = self._server, self._server.faults
        drawn = server.rng.random()
        if drawn < faults.watch_drop:
            server.fired["watch_reset"] += 1
            raise ApiError("connection reset by peer")
        if drawn < faults.watch_drop + faults.watch_close:
            server.fired["watch_closed"] += 1
            return True
        if drawn < faults.watch_drop + faults.watch_close + faults.watch_stall:
            server.fired["watch_stalled"] += 1
            await asyncio.sleep(idle_seconds)
            raise ApiError(f"nothing arrived for {idle_seconds:g} s")
        return False

    async def _pause(self, idle_at: float) -> None:
        until = min(idle_at, self._ends_at)
        if self._bookmarks:
            until = min(until, self._bookmark_at)
        self._changed.clear()
        timer = asyncio.get_running_loop().call_later(
            max(MOMENT_SECONDS, until - self._server.now()), self._changed.set
        )
        try:
            await self._changed.wait()
        finally:
            timer.cancel()

    def _bookmark_revision(self) -> int:
        """A position in the future stays: nothing is known of what lies before it."""
        return max(self._position, self._server.store.revision)

    def _bookmark(self, revision: int, annotations: Mapping[str, str]) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = dict(annotations)
        obj: Object = {
            "kind": self._target.kind.kind,
            "apiVersion": self._target.kind.group_version,
            "metadata": metadata,
        }
        return orjson.dumps({"type": "BOOKMARK", "object": obj})


def _expired(floor: int) -> Refusal:
    return Refusal(410, "Expired", f"too old resource version: the oldest is {floor}")
