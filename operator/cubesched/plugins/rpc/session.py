"""One connection to a plugin server, from its handshake until it is lost. Calls share it."""

from __future__ import annotations

import asyncio
from typing import Final

import grpc
import grpc.aio

from cubesched.plugins.rpc import plugin_pb2 as pb
from cubesched.plugins.rpc.encoding import Encoded
from cubesched.plugins.rpc.offer import HandshakeFailed, Offer, offer_of
from cubesched.plugins.rpc.sockets import Socket
from cubesched.plugins.rpc.wire import ENCODING, LIMITS, PROTOCOL_VERSION, method

HANDSHAKE_SECONDS: Final = 1.0
PARTING_SECONDS: Final = 15.0
"""How long calls under way may go on when their server takes no more."""
MOST_CHARACTERS: Final = 200
_OPTIONS: Final = (
    *LIMITS,
    # Each connection is its own, so that none waits for another one's retries.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    # An unused connection is kept: one that is dropped looks lost, and greets anew when it returns.
    ("grpc.client_idle_timeout_ms", (1 << 31) - 1),
)


class CallFailed(Exception):
    """A call ended without an answer; `str()` says why."""


class TooLate(CallFailed):
    """No answer came in time."""


class MessageTooLarge(Exception):
    """The server refused a message for its size, which says nothing of its health."""


class Session:
    """Calls of one connection; it may be used as long as whoever holds it likes."""

    def __init__(self, channel: grpc.aio.Channel, offer: Offer) -> None:
        self.offer = offer
        self._channel = channel
        self._methods = {kind: channel.unary_unary(method(kind)) for kind in ("Filter", "Score")}
        self._held: Encoded | None = None
        """What the server has answered a call about."""

    @classmethod
    async def open(cls, socket: Socket, client: str) -> Session:
        """Connect and shake hands; raises HandshakeFailed."""
        channel = grpc.aio.insecure_channel(socket.target, options=_OPTIONS)
        try:
            return cls(channel, await _shake_hands(channel, client))
        except BaseException:
            await channel.close()
            raise

    async def until_lost(self) -> None:
        """Return when the connection is gone."""
        await self._channel.wait_for_state_change(grpc.ChannelConnectivity.READY)

    async def close(self, grace_seconds: float | None = None) -> None:
        """Let calls under way go on for a while, then end them."""
        await self._channel.close(grace_seconds)

    def too_large(self, head: bytes, encoded: Encoded) -> str:
        """Say by how much a whole message is larger than the server takes; empty when it is not.

        Judged as if nothing could be left out: the server may forget what it was sent at any time.
        """
        size = len(head) + len(encoded.facts.field) + len(encoded.state)
        most = self.offer.max_message_bytes
        if size <= most:
            return ""
        return f"the snapshot is {_mebibytes(size)}, more than the {_mebibytes(most)} it takes"

    async def call(self, name: str, head: bytes, encoded: Encoded, *, seconds: float) -> bytes:
        """Return the answer to `head` on this version of the fleet.

        Raises CallFailed, TooLate or MessageTooLarge.
        """
        until = asyncio.get_running_loop().time() + seconds
        held = self._held if self.offer.keeps_snapshots else None
        message = _spliced(head, encoded, held)
        try:
            answer = await self._call(name, message, seconds)
        except _NoLongerHeld:
            left = until - asyncio.get_running_loop().time()
            answer = await self._call(name, _spliced(head, encoded, None), max(0.0, left))
        self._held = encoded
        return answer

    async def _call(self, name: str, message: bytes, seconds: float) -> bytes:
        try:
            answer: bytes = await self._methods[name](message, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            raise _failure(error) from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise CallFailed("the connection was closed") from None
        return answer


class _NoLongerHeld(CallFailed):
    """The server wants to be sent the snapshot."""


def _spliced(head: bytes, encoded: Encoded, held: Encoded | None) -> bytes:
    """Put a message together of pieces, without those that the server has."""
    if held is encoded:
        return head
    if held is not None and held.facts is encoded.facts:
        return head + encoded.state
    return b"".join((head, encoded.facts.field, encoded.state))


async def _shake_hands(channel: grpc.aio.Channel, client: str) -> Offer:
    handshake = channel.unary_unary(method("Handshake"))
    request = pb.HandshakeRequest(
        protocol_version=PROTOCOL_VERSION, client=client, encodings=[ENCODING]
    )
    try:
        answer = await handshake(request.SerializeToString(), timeout=HANDSHAKE_SECONDS)
    except grpc.aio.AioRpcError as error:
        raise HandshakeFailed(_why_no_hands(error)) from error
    return offer_of(answer)


def _why_no_hands(error: grpc.aio.AioRpcError) -> str:
    code = error.code()
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return "a gRPC server answers, but not one of scheduler plugins"
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"no handshake within {HANDSHAKE_SECONDS:g} s"
    return _words(error)


def _failure(error: grpc.aio.AioRpcError) -> Exception:
    code, details = error.code(), error.details() or ""
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return TooLate()
    if code is grpc.StatusCode.FAILED_PRECONDITION:
        return _NoLongerHeld(_words(error))
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in details:
        return MessageTooLarge(_words(error))
    return CallFailed(_words(error))


def _words(error: grpc.aio.AioRpcError) -> str:
    line = " ".join((error.details() or "").split())
    whole = f"{error.code().name}: {line}" if line else str(error.code().name)
    return whole if len(whole) <= MOST_CHARACTERS else f"{whole[: MOST_CHARACTERS - 3]}..."


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
