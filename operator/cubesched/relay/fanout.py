"""The one stream of all requests, told apart by node: who entered, who stayed, who left.

A list-watch sink without I/O. What it tells a node's watches is what the API server tells a watch
with `fieldSelector=status.nodeName=NODE`: entering is ADDED, staying MODIFIED, leaving DELETED with
the object as it was and the version at which it left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from cubesched.relay.objects import (
    Placed,
    at_version,
    bookmark_line,
    event_line,
    list_body,
    read_placed,
)
from cubesched.relay.refusals import Refusal, expired, not_there_yet
from cubesched.relay.watches import Watch
from cubesched.relay.window import Told, Window

MOST_WATCHES_PER_NODE: Final = 8


class Fanout:
    """Holds every request that names a node, and the watches of the nodes' agents.

    `count` hears the kind of each line handed to a watch, `lost` of each watch too slow to keep.
    """

    def __init__(
        self,
        window: Window,
        *,
        count: Callable[[str], None] = lambda _kind: None,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        self.window = window
        self.applied: int | None = None
        """The version that everything here is exact at; None while there is no such version."""
        self._count, self._lost = count, lost
        self._placed: dict[str, Placed] = {}
        self._on_node: dict[str, dict[str, Placed]] = {}
        self._listed: list[Placed] = []
        self._watches: dict[str, set[Watch]] = {}
        self._heard = 0
        self._moved = asyncio.Event()

    def __len__(self) -> int:
        """Return the number of requests that name a node."""
        return len(self._placed)

    @property
    def number_of_watches(self) -> int:
        """How many watches are open."""
        return sum(len(watches) for watches in self._watches.values())

    # The stream

    def reset(self) -> None:
        """End the prefix: what any watch was told leads nowhere from here."""
        self._listed = []
        self.applied = None
        self.end_all(expired("the relay lists everything anew"))

    def seen(self, raw: bytes) -> None:
        """Take one object of the list."""
        placed = read_placed(raw)
        if placed.node:
            self._listed.append(placed)

    def complete(self, version: int) -> None:
        """Begin a new prefix with what was listed."""
        self._placed, self._on_node = {}, {}
        for placed in self._listed:
            self._put(placed)
        self._listed = []
        self.window.restart(version)
        self._move(version)

    def event(self, kind: str, raw: bytes, version: int) -> None:
        """Apply one event: to the node it concerns, and to the one that it left."""
        now = read_placed(raw)
        before = self._placed.get(now.uid)
        node = "" if kind == "DELETED" else now.node
        if before is not None and before.node != node:
            self._drop(before)
            # Deleted, it comes with its last state; moved on, its last state here is ours to tell.
            last = raw if now.node == before.node else at_version(before.raw, version)
            self._tell("DELETED", before.node, last, version)
        if node:
            self._put(now)
            stays = before is not None and before.node == node
            self._tell("MODIFIED" if stays else "ADDED", node, raw, version)
        self._move(version)

    def progress(self, version: int) -> None:
        """Take a bookmark."""
        self._move(version)

    def _move(self, version: int) -> None:
        self.applied = version
        self._heard += 1
        self._moved.set()

    def _put(self, placed: Placed) -> None:
        self._placed[placed.uid] = placed
        self._on_node.setdefault(placed.node, {})[placed.uid] = placed

    def _drop(self, placed: Placed) -> None:
        del self._placed[placed.uid]
        on_node = self._on_node[placed.node]
        del on_node[placed.uid]
        if not on_node:
            del self._on_node[placed.node]

    def _tell(self, kind: str, node: str, raw: bytes, version: int) -> None:
        line = event_line(kind, raw)
        self.window.add(Told(version, node, line))
        for watch in tuple(self._watches.get(node, ())):
            self._hand(watch, kind, line)

    # What agents ask for

    def list_of(self, node: str) -> bytes:
        """Return the list of one node's requests at `applied`, which must not be None."""
        assert self.applied is not None
        placed = sorted(self._on_node.get(node, {}).values(), key=lambda one: one.key)
        return list_body(self.applied, (one.raw for one in placed))

    def open(self, node: str, version: int, *, wants_bookmarks: bool) -> Watch:
        """Open a watch of one node from `version` on; raises Refusal where that had a gap."""
        if self.applied is None or version > self.applied:
            raise not_there_yet(version, self.applied)
        if version < self.window.floor:
            raise expired(f"too old resource version: {version} ({self.window.floor})")
        watches = self._watches.setdefault(node, set())
        if len(watches) >= MOST_WATCHES_PER_NODE:
            message = f"{node} has {len(watches)} watches open, which is the most"
            raise Refusal(429, "TooManyRequests", message, retry_after_seconds=1)
        backlog = self.window.since(version, node=node)
        watch = Watch(node, wants_bookmarks=wants_bookmarks, backlog=backlog)
        watches.add(watch)
        return watch

    def close(self, watch: Watch) -> None:
        """Forget a watch; harmless when it is forgotten already."""
        watches = self._watches.get(watch.node, set())
        watches.discard(watch)
        if not watches:
            self._watches.pop(watch.node, None)

    def remind(self, watch: Watch) -> None:
        """Send a bookmark where something was heard of the API server since the last line.

        When nothing was, silence tells the agent the truth. A watch that was ended is told nothing
        more: it has missed what came since.
        """
        is_open = watch in self._watches.get(watch.node, ())
        has_news = self.applied is not None and watch.heard != self._heard
        if is_open and has_news and watch.wants_bookmarks:
            assert self.applied is not None
            watch.heard = self._heard
            self._hand(watch, "BOOKMARK", bookmark_line(self.applied))

    def finish(self, watch: Watch) -> None:
        """End a watch whose time is up, where the agent can go on."""
        self.remind(watch)
        watch.end()
        self.close(watch)

    def end_all(self, why: Refusal | None = None) -> None:
        """End every watch: cleanly, or with an ERROR that says why."""
        line = b"" if why is None else event_line("ERROR", why.body)
        for watch in tuple(self._every_watch()):
            if why is not None:
                self._count("ERROR")
            watch.end(line)
            self.close(watch)

    async def reached(self, version: int) -> None:
        """Wait until everything up to `version` is applied."""
        while self.applied is None or self.applied < version:
            self._moved.clear()
            await self._moved.wait()

    def _hand(self, watch: Watch, kind: str, line: bytes) -> None:
        self._count(kind)
        if not watch.tell(line):
            self._lost()
            self.close(watch)

    def _every_watch(self) -> Iterator[Watch]:
        for watches in self._watches.values():
            yield from watches
