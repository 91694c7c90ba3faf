"""What an agent asks: one node's list, one node's watch, or how far the server is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cubesched.relay.refusals import bad_request, expired

WATCH_SECONDS: Final = 1800
LONGEST_WATCH_SECONDS: Final = 3600

_KNOWN: Final = frozenset(
    {
        "allowWatchBookmarks",
        "continue",
        "fieldSelector",
        "limit",
        "pretty",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
        "watch",
    }
)
_NODE: Final = re.compile(r"status\.nodeName==?([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)")
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class ListAsked:
    """The requests that name one node."""

    node: str
    not_older_than: int | None
    """None: no older than the question."""


@dataclass(frozen=True, slots=True)
class WatchAsked:
    """What happens to the requests that name one node, after one version."""

    node: str
    version: int
    wants_bookmarks: bool
    seconds: int


@dataclass(frozen=True, slots=True)
class ProbeAsked:
    """The newest version there is: a list with `limit=1` that selects nothing."""


Asked = ListAsked | WatchAsked | ProbeAsked


def asked_of(query: Mapping[str, str]) -> Asked:
    """Read the query of a GET; raises Refusal for whatever would not be answered to the letter."""
    if unknown := sorted(set(query) - _KNOWN):
        raise bad_request(
            f"{unknown[0]}: the relay does not serve it; allowed are {', '.join(sorted(_KNOWN))}"
        )
    is_watch = query.get("watch", "") not in {"", "0", "false"}
    if "fieldSelector" not in query and query.get("limit") == "1" and not is_watch:
        return ProbeAsked()
    node = _node_of(query.get("fieldSelector", ""))
    return _watch_of(node, query) if is_watch else _list_of(node, query)


def _node_of(selector: str) -> str:
    found = _NODE.fullmatch(selector)
    if found is None:
        raise bad_request(
            f"fieldSelector: found {selector[:300]!r}; the relay serves status.nodeName=NODE only"
        )
    return found.group(1)


def _list_of(node: str, query: Mapping[str, str]) -> ListAsked:
    """Read a list; `limit` is a wish that one page of everything fulfils."""
    if query.get("continue"):
        raise expired("continue: the relay lists everything in one page, so this token is not ours")
    if query.get("resourceVersionMatch", "") not in {"", "NotOlderThan"}:
        raise bad_request("resourceVersionMatch: the relay serves NotOlderThan only")
    version = query.get("resourceVersion", "")
    return ListAsked(node, _number("resourceVersion", version) if version else None)


def _watch_of(node: str, query: Mapping[str, str]) -> WatchAsked:
    version = query.get("resourceVersion", "")
    if version in {"", "0"}:
        raise bad_request("resourceVersion: list first, then watch from the version of the list")
    seconds = query.get("timeoutSeconds", "")
    asked_seconds = _number("timeoutSeconds", seconds) if seconds else 0
    return WatchAsked(
        node,
        _number("resourceVersion", version),
        query.get("allowWatchBookmarks", "") not in {"", "0", "false"},
        min(asked_seconds, LONGEST_WATCH_SECONDS) or WATCH_SECONDS,
    )


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise bad_request(f"{name}: found {text[:40]!r}, must be a whole number")
    return int(text)
