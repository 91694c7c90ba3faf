"""What both sides of the protocol agree on beside its messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

PROTOCOL_VERSION: Final = 1
ENCODING: Final = 1
"""Of columns: fixed width, little-endian."""
SERVICE: Final = "cubesched.schedulerplugin.v1.SchedulerPlugin"
FACTS_FIELD: Final = 6
STATE_FIELD: Final = 7
"""The numbers of `facts` and `state` in FilterRequest and in ScoreRequest."""

MAX_MESSAGE_BYTES: Final = 64 << 20
"""Of either side: 50,000 nodes with 40 labels take a quarter of it. A template takes a bit a node,
so that thousands of them fit as well."""
GRPC_DEFAULT_MAX_BYTES: Final = 4 << 20
"""What a server takes that does not say otherwise."""

LIMITS: Final[Sequence[tuple[str, int]]] = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
)
"""Options of a channel or server."""


def method(name: str) -> str:
    """Return the full name of one of the service's methods."""
    return f"/{SERVICE}/{name}"


def as_field(number: int, message: bytes) -> bytes:
    """Return a serialized message as the field of another one, ready to be put beside others."""
    return _varint(number << 3 | 2) + _varint(len(message)) + message


def _varint(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
