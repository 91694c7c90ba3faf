"""What a plugin server said of itself in the handshake, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from google.protobuf.message import DecodeError

from cubesched.plugins.rpc import plugin_pb2 as pb
from cubesched.plugins.rpc.wire import (
    GRPC_DEFAULT_MAX_BYTES,
    MAX_MESSAGE_BYTES,
    PROTOCOL_VERSION,
)

Kind = Literal["filter", "score"]
MOST_NAME_CHARACTERS: Final = 63
_CAPABILITIES: Final = {"filter": pb.CAPABILITY_FILTER, "score": pb.CAPABILITY_SCORE}


class HandshakeFailed(Exception):
    """Nobody to work with answered; `str()` says why."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Who answers, and what it can do."""

    name: str
    capabilities: frozenset[int]
    filters: frozenset[str]
    """Empty: one filter, which answers to every name."""
    scores: frozenset[str]
    max_message_bytes: int

    def missing(self, kind: Kind, name: str) -> str:
        """Say what it lacks to be the plugin that a Profile lists; empty when it is."""
        if _CAPABILITIES[kind] not in self.capabilities:
            return f"{self.name} has no {kind}"
        offered = self.filters if kind == "filter" else self.scores
        if offered and name not in offered:
            return f"{self.name} has no {kind} {name!r}; it has {', '.join(sorted(offered))}"
        return ""

    @property
    def keeps_snapshots(self) -> bool:
        """Whether what it was sent lately may be left out."""
        return pb.CAPABILITY_SNAPSHOT_REFERENCES in self.capabilities


def offer_of(message: bytes) -> Offer:
    """Return what a handshake's reply offers; raises HandshakeFailed when it is of no use."""
    try:
        reply = pb.HandshakeReply.FromString(message)
    except DecodeError as error:
        raise HandshakeFailed("its handshake is no message of the protocol") from error
    if reply.protocol_version != PROTOCOL_VERSION:
        found = reply.protocol_version
        raise HandshakeFailed(f"it speaks protocol version {found}, not {PROTOCOL_VERSION}")
    if not (0 < len(reply.name) <= MOST_NAME_CHARACTERS and reply.name.isprintable()):
        raise HandshakeFailed(f"its name is not 1 to {MOST_NAME_CHARACTERS} printable characters")
    return Offer(
        reply.name,
        frozenset(reply.capabilities),
        frozenset(reply.filters),
        frozenset(reply.scores),
        min(reply.max_message_bytes or GRPC_DEFAULT_MAX_BYTES, MAX_MESSAGE_BYTES),
    )
