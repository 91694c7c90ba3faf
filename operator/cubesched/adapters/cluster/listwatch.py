"""List and watch of one kind: an exact prefix of the server's history, told to a sink in order.

What the sink holds after `complete` and the events since equals the server's state at one
version. A gap, a 410, pages of different versions, or a server whose history went backwards end
that prefix: the sink is reset and everything is listed again. No clock is read but the event
loop's, so a loop with a virtual one can drive it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, Protocol

from cubesched.adapters.cluster.answers import error_of
from cubesched.adapters.cluster.backoff import Backoff
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.cluster.wirelines import decode_event, decode_page
from cubesched.core.errors import ApiError, Gone

log = logging.getLogger(__name__)

EVENTS_PER_TURN: Final = 50
"""How many events or listed objects are handed on before other tasks get a turn."""
LASTED_SECONDS: Final = 10.0
"""A watch that was open for this long was a good one: the next failure starts afresh."""
WATCH_SECONDS: Final = (600, 900)
"""The server ends a watch after a random time in this range, so that clients spread out."""
REQUEST_SECONDS: Final = 30.0


class Sink(Protocol):
    """Whoever keeps the state; all calls are synchronous and in stream order."""

    def reset(self) -> None:
        """Forget the position: nothing held so far may be relied upon until `complete`."""
        ...

    def seen(self, raw: bytes) -> None:
        """Take one object of the list, readable or not."""
        ...

    def complete(self, version: int) -> None:
        """Drop what was not seen since `reset`: the state now is the server's at `version`."""
        ...

    def event(self, kind: str, raw: bytes, version: int) -> None:
        """Apply one ADDED, MODIFIED or DELETED; versions only rise."""
        ...

    def progress(self, version: int) -> None:
        """Note that nothing else happened up to `version`."""
        ...


class ListWatch:
    """Follows one collection for ever; `run` returns only by cancellation or the sink's error."""

    def __init__(
        self,
        transport: Transport,
        resource_path: str,
        sink: Sink,
        *,
        rng: Callable[[], float],
        field_selector: str = "",
        page_size: int = 500,
        idle_seconds: float = 75.0,
        spread_seconds: float = 0.0,
        watch_seconds: tuple[int, int] = WATCH_SECONDS,
        on_restart: Callable[[str], None] | None = None,
        verify: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Follow `resource_path`.

        `rng` gives numbers in [0, 1). `verify` runs at every connect and raises Gone when the
        server's history went backwards in a way that versions alone do not show. `on_restart`
        hears why each broken watch or list broke. Many clients of one server set
        `spread_seconds`, so that they do not all list at once after it restarts. The server
        sends a bookmark 1 to 2 s before the end of a watch: short `watch_seconds` keep the
        position young where nothing else happens.
        """
        self._transport = transport
        self._path = resource_path
        self._sink = sink
        self._rng = rng
        self._selector = {"fieldSelector": field_selector} if field_selector else {}
        self._page_size = page_size
        self._idle_seconds = idle_seconds
        self._spread_seconds = spread_seconds
        self._watch_seconds = watch_seconds
        self._on_restart = on_restart or (lambda _reason: None)
        self._verify = verify
        self._backoff = Backoff(rng)
        self._position: int | None = None
        self._heard_at: float | None = None

    @property
    def position(self) -> int | None:
        """The version that the sink's state is exact at; None while there is no such version."""
        return self._position

    def age_seconds(self, now: float) -> float:
        """Return how long ago, on the event loop's clock, the server was last heard of."""
        return 0.0 if self._heard_at is None else max(0.0, now - self._heard_at)

    async def run(self) -> None:
        """Keep the sink exact for ever."""
        if self._heard_at is None:
            self._hear()
        while True:
            try:
                await self._list_unless_exact()
                await self._follow()
            except ApiError as error:
                await self._recover(error)

    async def _recover(self, error: ApiError) -> None:
        """Give up the position where it is lost, say why, and wait before the next try."""
        reason = f"{self._path}: {error}"
        if isinstance(error, Gone):
            self._lose_position()
        self._on_restart(reason)
        delay = max(self._backoff.next_seconds(), error.retry_after_seconds)
        log.warning("watch restarts in %.1f s: %s", delay, reason)
        await asyncio.sleep(delay)

    def _lose_position(self) -> None:
        """End the prefix now: until the next list is complete the sink must not rely on it."""
        self._position = None
        self._sink.reset()

    def _hear(self) -> None:
        self._heard_at = asyncio.get_running_loop().time()

    async def _list_unless_exact(self) -> None:
        """List all pages at one version, unless the sink is exact already."""
        if self._position is not None:
            return
        if self._spread_seconds:
            await asyncio.sleep(self._rng() * self._spread_seconds)
        self._sink.reset()
        version: int | None = None
        token = ""
        while True:
            page = decode_page(await self._get_page(token))
            if version not in {None, page.version}:
                raise Gone(f"a page is of version {page.version}, the first is of {version}")
            version = page.version
            await self._hand_on(page.items)
            token = page.next_token
            if not token:
                break
        self._sink.complete(version)
        self._position = version
        self._hear()

    async def _get_page(self, token: str) -> bytes:
        """Fetch one page; a 410 raises Gone, and the token it offers is never looked at.

        That token would continue at another version, and the gap would never be repaired.
        """
        params = {**self._selector, "limit": str(self._page_size)}
        if token:
            params["continue"] = token
        response = await self._transport.request(
            "GET", self._path, params=params, timeout_seconds=REQUEST_SECONDS
        )
        if response.status != 200:
            raise error_of(response, "list")
        self._hear()
        return response.body

    async def _hand_on(self, items: list[bytes]) -> None:
        for number, raw in enumerate(items, start=1):
            self._sink.seen(raw)
            if number % EVENTS_PER_TURN == 0:
                await asyncio.sleep(0)

    async def _follow(self) -> None:
        """Watch from the position until the server or the network ends it."""
        loop = asyncio.get_running_loop()
        opened_at = loop.time()
        try:
            async with self._transport.stream(
                self._path, params=self._watch_params(), idle_seconds=self._idle_seconds
            ) as lines:
                # A watch at a version of the future is silent for ever, so the check comes
                # after the opening and before the first line: nothing can slip in between.
                await self._check_history()
                self._hear()
                await self._deliver(lines)
        finally:
            if loop.time() - opened_at >= LASTED_SECONDS:
                self._backoff.reset()
        if loop.time() - opened_at < 1.0:
            raise ApiError("the server closed the watch at once")
        self._backoff.reset()

    def _watch_params(self) -> dict[str, str]:
        shortest, longest = self._watch_seconds
        return {
            **self._selector,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(self._position),
            "timeoutSeconds": str(shortest + int(self._rng() * (longest - shortest))),
        }

    async def _check_history(self) -> None:
        """Raise Gone when the server's newest version is older than our position (a restore)."""
        response = await self._transport.request("GET", self._path, params={"limit": "1"})
        if response.status != 200:
            raise error_of(response, "restore check")
        newest = decode_page(response.body).version
        if self._position is not None and newest < self._position:
            raise Gone(f"the server is at version {newest}, behind {self._position}: restored?")
        if self._verify is not None:
            await self._verify()

    async def _deliver(self, lines: AsyncIterator[bytes]) -> None:
        """Hand on every line in order, with a turn for others now and then."""
        number = 0
        async for line in lines:
            self._apply(line)
            number += 1
            if number % EVENTS_PER_TURN == 0:
                await asyncio.sleep(0)

    def _apply(self, line: bytes) -> None:
        """Apply one line synchronously; the position moves with it."""
        event = decode_event(line)
        position = self._position or 0
        if event.kind == "BOOKMARK":
            if event.version < position:
                raise Gone(f"a bookmark at {event.version} came after {position}")
            self._position = event.version
            self._sink.progress(event.version)
        else:
            if event.version <= position:
                raise Gone(f"an event at {event.version} came after {position}")
            self._position = event.version
            self._sink.event(event.kind, event.raw, event.version)
        self._hear()
