"""Splitting pages and watch lines: only the envelope is decoded, objects stay the bytes they are.

An object that cannot be read is the sink's business. An envelope that cannot be read is a gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from cubesched.adapters.cluster.answers import status_of
from cubesched.core.errors import ApiError, Gone

KINDS: Final = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})


class _ListMeta(msgspec.Struct, rename="camel", gc=False, frozen=True):
    resource_version: str
    next_token: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct, gc=False, frozen=True):
    metadata: _ListMeta
    items: list[msgspec.Raw]


class _Line(msgspec.Struct, gc=False, frozen=True):
    type: str
    object: msgspec.Raw


class _Versioned(msgspec.Struct, rename="camel", gc=False, frozen=True):
    resource_version: str


class _Object(msgspec.Struct, gc=False, frozen=True):
    metadata: _Versioned


_LIST: Final = msgspec.json.Decoder(_List)
_LINE: Final = msgspec.json.Decoder(_Line)
_OBJECT: Final = msgspec.json.Decoder(_Object)


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list."""

    version: int
    next_token: str
    items: list[bytes]


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch."""

    kind: str
    raw: bytes
    version: int


def decode_page(body: bytes) -> Page:
    """Split a list into its objects; raises ApiError when the page itself cannot be read."""
    try:
        page = _LIST.decode(body)
        version = int(page.metadata.resource_version)
    except (msgspec.MsgspecError, ValueError) as error:
        raise ApiError(f"a page of the list cannot be read: {error}") from error
    return Page(version, page.metadata.next_token, [bytes(item) for item in page.items])


def decode_event(line: bytes) -> Event:
    """Split one line; raises Gone for a 410 or a gap, ApiError for any other ERROR."""
    try:
        event = _LINE.decode(line)
        if event.type == "ERROR":
            raise _error_line(bytes(event.object))
        version = int(_OBJECT.decode(event.object).metadata.resource_version)
    except (msgspec.MsgspecError, ValueError) as error:
        # What it said is lost and it may be what the state depends on: the prefix ends here.
        raise Gone(f"a line of the watch cannot be read: {error}") from error
    if event.type not in KINDS:
        raise Gone(f"a line of the watch is of the unknown type {event.type[:40]!r}")
    return Event(event.type, bytes(event.object), version)


def _error_line(raw: bytes) -> ApiError:
    status = status_of(raw)
    text = f"watch: {status.code} {status.reason} {status.message}"
    if status.code == 410:
        return Gone(text)
    return ApiError(text, status.code)
