"""One plain list of a kind, whole: pages are joined, a stale page starts over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from cubesched.adapters.cluster.answers import error_of
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.cluster.wirelines import Page, decode_page
from cubesched.api import Resource
from cubesched.core.errors import ApiError, Gone

PAGE_SIZE: Final = 500
MAX_RESTARTS: Final = 3


@dataclass(frozen=True, slots=True)
class Listed:
    """All objects of a kind as the bytes that the server sent, at one revision."""

    version: int
    items: list[bytes]


async def list_objects(
    transport: Transport, resource: Resource, *, field_selector: str = ""
) -> list[dict[str, Any]]:
    """Return every object of the kind as plain JSON; raises ApiError when that is not possible."""
    try:
        listed = await list_raw(transport, resource, field_selector=field_selector)
        return [msgspec.json.decode(raw) for raw in listed.items]
    except RecursionError:
        raise ApiError(f"list of {resource.plural}: one is nested too deeply to be read") from None


async def list_raw(
    transport: Transport,
    resource: Resource,
    *,
    page_size: int = PAGE_SIZE,
    field_selector: str = "",
) -> Listed:
    """Return every object of the kind undecoded; raises ApiError when that is not possible."""
    asked = {"limit": str(page_size)}
    if field_selector:
        asked["fieldSelector"] = field_selector
    for _ in range(MAX_RESTARTS):
        try:
            return await _all_pages(transport, resource, asked)
        except Gone:
            continue
    raise ApiError(f"cannot list {resource.plural}: the list changed faster than it was read")


async def _all_pages(transport: Transport, resource: Resource, asked: Mapping[str, str]) -> Listed:
    page = await _page(transport, resource, asked)
    objects = page.items
    while page.next_token:
        page = await _page(transport, resource, {**asked, "continue": page.next_token})
        objects += page.items
    return Listed(page.version, objects)


async def _page(transport: Transport, resource: Resource, asked: Mapping[str, str]) -> Page:
    response = await transport.request("GET", resource.path(), params=asked)
    if response.status != 200:
        raise error_of(response, f"list of {resource.plural}")
    return decode_page(response.body)
