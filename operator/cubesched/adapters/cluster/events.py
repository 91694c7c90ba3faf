"""Kubernetes Events: a few, on purpose, on transitions; never in the way of anything else.

Posting only puts the event in a bounded queue; one task sends them at a bounded rate. What the
rate or the queue leaves no room for is counted and dropped, and so is what the server refuses.
Beyond the rate, warnings wait their turn: why a request waits matters longer than that one was
bound.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from uuid import uuid4

import msgspec

from cubesched.adapters.cluster.answers import message_of
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.telemetry.escaping import printable
from cubesched.adapters.telemetry.meter import Meter
from cubesched.api import API_VERSION
from cubesched.api.timestamps import micro_time
from cubesched.core.errors import ApiError

log = logging.getLogger(__name__)

NOTE_BYTES: Final = 1024
CONTROLLER: Final = "cubesched.io/scheduler"
SUPPRESSED: Final = "cubesched_events_suppressed_total"


class _Queued(NamedTuple):
    """One event as it will be sent."""

    namespace: str
    body: bytes
    is_warning: bool


class EventPoster:
    """Posts events about our objects in the background, at most `per_second` after a burst."""

    def __init__(
        self,
        transport: Transport,
        meter: Meter,
        *,
        instance: str,
        per_second: float = 10.0,
        burst: int = 50,
        queue_size: int = 500,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Post as `instance`, the identity of this replica."""
        self._transport = transport
        self._meter = meter
        self._instance = instance[:128]
        self._per_second = per_second
        self._burst = burst
        self._queue: deque[_Queued] = deque()
        self._queue_size = queue_size
        self._wall = wall
        self._wake = asyncio.Event()

    def post(
        self,
        *,
        kind: str,
        namespace: str,
        name: str,
        uid: str,
        reason: str,
        note: str,
        action: str,
        type_: str = "Normal",
    ) -> None:
        """Queue one event about an object; never raises and never waits."""
        if len(self._queue) >= self._queue_size:
            self._meter.inc(SUPPRESSED)
            return
        # Events about cluster-scoped objects live in the namespace `default`.
        home = namespace or "default"
        regarding = {"apiVersion": API_VERSION, "kind": kind, "name": name, "uid": uid}
        if namespace:
            regarding["namespace"] = namespace
        event: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{name[:220]}.{uuid4().hex[:16]}", "namespace": home},
            "eventTime": micro_time(self._wall()),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
            "action": printable(action, max_bytes=128),
            "reason": printable(reason, max_bytes=128),
            "regarding": regarding,
            "note": printable(note, max_bytes=NOTE_BYTES),
            "type": type_,
        }
        self._queue.append(_Queued(home, msgspec.json.encode(event), type_ == "Warning"))
        self._wake.set()

    async def run(self) -> None:
        """Send what is queued, for ever."""
        loop = asyncio.get_running_loop()
        tokens, filled_at = float(self._burst), loop.time()
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                now = loop.time()
                tokens = min(self._burst, tokens + (now - filled_at) * self._per_second)
                filled_at = now
                if tokens < 1:
                    self._suppress_old_news()
                    await asyncio.sleep(1 / self._per_second)
                    continue
                tokens -= 1
                await self._send(self._queue.popleft())

    def _suppress_old_news(self) -> None:
        """Drop what is queued and no warning: it would only delay the next."""
        warnings = [event for event in self._queue if event.is_warning]
        self._meter.inc(SUPPRESSED, len(self._queue) - len(warnings))
        self._queue = deque(warnings)

    async def _send(self, event: _Queued) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{event.namespace}/events"
        try:
            response = await self._transport.request("POST", path, body=event.body)
        except ApiError as error:
            self._drop(str(error))
            return
        if response.status >= 300:
            self._drop(message_of(response))

    def _drop(self, why: str) -> None:
        self._meter.inc(SUPPRESSED)
        log.debug("event dropped: %s", why)
