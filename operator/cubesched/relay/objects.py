"""Objects as the bytes they arrived in: only what routes them is read, nothing is written anew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from cubesched.api import API_VERSION, REQUESTS
from cubesched.core.errors import Gone


class _Meta(msgspec.Struct, gc=False, frozen=True):
    uid: str
    name: str
    namespace: str = ""


class _Status(msgspec.Struct, rename="camel", gc=False, frozen=True):
    node_name: str = ""


class _Object(msgspec.Struct, gc=False, frozen=True):
    metadata: _Meta
    status: _Status | None = None


_OBJECT: Final = msgspec.json.Decoder(_Object)
_PARTS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Placed:
    """One stored request: who it is, the node that it names, and all of it."""

    uid: str
    key: tuple[str, str]
    """Namespace and name: the order of a list."""
    node: str
    """status.nodeName, which a finished request keeps; empty when it names none."""
    raw: bytes


def read_placed(raw: bytes) -> Placed:
    """Read one stored object; raises Gone when not even who it is can be told."""
    try:
        found = _OBJECT.decode(raw)
    except msgspec.MsgspecError as error:
        return _read_anyhow(raw, error)
    meta = found.metadata
    node = found.status.node_name if found.status is not None else ""
    return Placed(meta.uid, (meta.namespace, meta.name), node, raw)


def _read_anyhow(raw: bytes, error: msgspec.MsgspecError) -> Placed:
    """Read what an older or a newer schema stored: a node's name is a text, or is none."""
    try:
        found: Any = msgspec.json.decode(raw)
        meta = found["metadata"]
        namespace, name = str(meta.get("namespace", "")), str(meta["name"])
        uid = str(meta.get("uid") or f"{namespace}/{name}")
    except (msgspec.MsgspecError, LookupError, TypeError, AttributeError):
        raise Gone(f"a request cannot be read: {error}") from error
    status = found.get("status")
    node = status.get("nodeName") if isinstance(status, dict) else None
    return Placed(uid, (namespace, name), node if isinstance(node, str) else "", raw)


def at_version(raw: bytes, version: int) -> bytes:
    """Return the object with another resourceVersion, every other byte of a value as it was."""
    parts = _PARTS.decode(raw)
    meta = _PARTS.decode(parts["metadata"])
    meta["resourceVersion"] = msgspec.Raw(b'"%d"' % version)
    parts["metadata"] = msgspec.Raw(msgspec.json.encode(meta))
    return msgspec.json.encode(parts)


def event_line(kind: str, raw: bytes) -> bytes:
    """Return one line of a watch."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), raw)


def bookmark_line(version: int) -> bytes:
    """Return the line that says: nothing else up to `version`."""
    return event_line("BOOKMARK", _envelope(REQUESTS.kind, version))


def list_body(version: int, items: Iterable[bytes]) -> bytes:
    """Return a whole list, at one version."""
    head = _envelope(f"{REQUESTS.kind}List", version)[:-1]
    return b'%b,"items":[%b]}\n' % (head, b",".join(items))


def _envelope(kind: str, version: int) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": {"resourceVersion": str(version)},
        }
    )
