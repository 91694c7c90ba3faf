"""No older than the question: how far our stream must have come before an answer is exact.

An API server answers a list with a state no older than the request. So do we: a node's agent that
starts removes what no listed request names, and must not be shown a time before its own claims.
"""

from __future__ import annotations

import asyncio
from typing import Final

from cubesched.adapters.cluster.answers import error_of
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.cluster.wirelines import decode_page
from cubesched.core.errors import ApiError
from cubesched.relay.fanout import Fanout
from cubesched.relay.refusals import not_there_yet, unavailable

PATIENCE_SECONDS: Final = 10.0
"""How long an answer waits for the stream, which has a bookmark at least every 3 s."""
PROBE_SECONDS: Final = 5.0


class Freshness:
    """Asks the API server for its newest version, and waits until the stream has reached it."""

    def __init__(self, transport: Transport, resource_path: str, fanout: Fanout) -> None:
        self._transport = transport
        self._path = resource_path
        self._fanout = fanout
        self._one_at_a_time = asyncio.Lock()
        self._next: asyncio.Task[int] | None = None

    async def newest(self) -> int:
        """Return the server's newest version at some moment after the call; raises Refusal.

        However many ask, at most one probe is under way and one is next in line.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._probe_in_turn())
            self._next.add_done_callback(_retrieve)
        try:
            return await asyncio.shield(self._next)
        except ApiError as error:
            raise unavailable(f"the relay has no answer from the API server: {error}") from error

    async def reach(self, version: int) -> None:
        """Wait for the stream to apply `version`; raises Refusal when it does not in time."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._fanout.reached(version)
        except TimeoutError:
            raise not_there_yet(version, self._fanout.applied) from None

    async def _probe_in_turn(self) -> int:
        async with self._one_at_a_time:
            self._next = None  # who asks from here on needs a later probe
            return await self._probe()

    async def _probe(self) -> int:
        response = await self._transport.request(
            "GET", self._path, params={"limit": "1"}, timeout_seconds=PROBE_SECONDS
        )
        if response.status != 200:
            raise error_of(response, "newest version")
        return decode_page(response.body).version


def _retrieve(task: asyncio.Task[int]) -> None:
    """Look at the outcome: when every asker has gone, nobody else does."""
    if not task.cancelled():
        task.exception()
