"""The answers, whatever carries them: each exact at a version, or a refusal that says why not."""

from __future__ import annotations

from cubesched.relay.asking import ListAsked, WatchAsked
from cubesched.relay.fanout import Fanout
from cubesched.relay.freshness import Freshness
from cubesched.relay.objects import list_body
from cubesched.relay.refusals import expired, unavailable
from cubesched.relay.watches import Watch


class Service:
    """Answers lists, watches and probes from one fan-out."""

    def __init__(self, fanout: Fanout, freshness: Freshness) -> None:
        self._fanout = fanout
        self._freshness = freshness

    async def list(self, asked: ListAsked) -> bytes:
        """Return one node's list, no older than the question or than the version it names."""
        version = asked.not_older_than
        if version is None:
            version = await self._freshness.newest()
            if self._fanout.applied is not None and version < self._fanout.applied:
                raise unavailable("the API server's history went backwards; the relay lists anew")
        await self._freshness.reach(version)
        return self._fanout.list_of(asked.node)

    async def watch(self, asked: WatchAsked) -> Watch:
        """Open one node's watch; the caller closes it.

        A version ahead of our stream is waited for, and refused when the server has not reached
        it either: then the agent knows a history that was restored away.
        """
        applied = self._fanout.applied
        if applied is None or asked.version > applied:
            newest = await self._freshness.newest()
            if newest < asked.version:
                raise expired(f"the API server is at {newest}, behind {asked.version}: restored?")
            await self._freshness.reach(asked.version)
        return self._fanout.open(asked.node, asked.version, wants_bookmarks=asked.wants_bookmarks)

    async def probe(self) -> bytes:
        """Return the server's newest version, as an empty list at it."""
        return list_body(await self._freshness.newest(), ())
