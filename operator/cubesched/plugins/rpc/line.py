"""One plugin of a server as an entry of a Profile asks it: with a deadline and a breaker."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from cubesched.core.errors import PluginError, SnapshotTooLarge
from cubesched.core.pipeline import Circuit
from cubesched.core.request import Request
from cubesched.plugins.breaker import Breaker
from cubesched.plugins.python.host import Limits
from cubesched.plugins.rpc import columns
from cubesched.plugins.rpc import plugin_pb2 as pb
from cubesched.plugins.rpc.answers import Asked
from cubesched.plugins.rpc.encoding import Encoded
from cubesched.plugins.rpc.offer import Kind
from cubesched.plugins.rpc.session import CallFailed, MessageTooLarge, Session, TooLate

if TYPE_CHECKING:
    from cubesched.plugins.rpc.host import RpcHost

T = TypeVar("T")
_METHODS: Final = {"filter": "Filter", "score": "Score"}


class Line:
    """Calls run side by side; each is judged by its own answer."""

    def __init__(
        self, host: RpcHost, kind: Kind, name: str, limits: Limits, clock: Callable[[], float]
    ) -> None:
        self.host, self.kind, self.name = host, kind, name
        self._limits, self._clock = limits, clock
        self._forgave_at = -math.inf
        self.breaker = self._closed_breaker()

    def begin_anew(self) -> None:
        """Forget what failed: another server, or the same after a restart, answers now.

        Not more than once a cooldown: one that dies of every call and returns is no better than
        one that fails.
        """
        now = self._clock()
        if self.breaker.is_open and now - self._forgave_at >= self._limits.cooldown_seconds:
            self._forgave_at, self.breaker = now, self._closed_breaker()

    @property
    def circuit(self) -> Circuit:
        """The state of its breaker."""
        if self.breaker.is_trying:
            return Circuit.TRYING
        return Circuit.OPEN if self.breaker.is_open else Circuit.CLOSED

    async def ask(self, asked: Asked, request: Request, judge: Callable[[bytes], T]) -> T:
        """Return the answer as `judge` takes it; raises PluginError.

        The deadline is for the server: waiting for a connection, or for the fleet to be encoded, is
        not its time.
        """
        session = await self.host.session(self.name, self._limits.timeout_seconds)
        if missing := session.offer.missing(self.kind, self.name):
            raise PluginError(self.name, missing)
        encoded = await self.host.encoder.ready(asked.fleet)
        head = self._head(asked, request)
        if too_large := session.too_large(head, encoded):
            raise SnapshotTooLarge(self.name, too_large)
        try:
            with self.breaker.guarding(self.name):
                return judge(await self._answer(session, head, encoded))
        except MessageTooLarge as error:
            raise SnapshotTooLarge(self.name, str(error)) from error

    async def _answer(self, session: Session, head: bytes, encoded: Encoded) -> bytes:
        seconds = self._limits.timeout_seconds
        try:
            return await session.call(_METHODS[self.kind], head, encoded, seconds=seconds)
        except TooLate as error:
            raise PluginError(self.name, f"no answer within {seconds * 1000:g} ms") from error
        except CallFailed as error:
            raise PluginError(self.name, str(error)) from error

    def _closed_breaker(self) -> Breaker:
        limits = self._limits
        return Breaker(limits.failures, limits.cooldown_seconds, clock=self._clock)

    def _head(self, asked: Asked, request: Request) -> bytes:
        """Return the question without the snapshot; both kinds write it in the same way."""
        question = pb.FilterRequest(
            plugin=self.name,
            request=pb.Request(
                instance_type=request.instance_type,
                template_id=request.template_id,
                cpu_millis=request.cpu_millis,
                memory_bytes=request.memory_bytes,
                system_disk_size=request.disk_bytes,
                priority=request.priority,
                labels=request.labels,
            ),
            rows=asked.rows.astype(columns.CODES).tobytes(),
            client=self.host.encoder.client,
            snapshot_version=asked.fleet.version,
        )
        return question.SerializeToString()
