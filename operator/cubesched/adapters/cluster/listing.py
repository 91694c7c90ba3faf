"""One plain list of a kind, whole: pages are joined, a stale page starts over."""

from __future__ import annotations

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


async def list_objects(transport: Transport, resource: Resource) -> list[dict[str, Any]]:
    """Return every object of the kind as plain JSON; raises ApiError when that is not possible."""
    listed = await list_raw(transport, resource)
    return [msgspec.json.decode(raw) for raw in listed.items]


async def list_raw(
    transport: Transport, resource: Resource, *, page_size: int = PAGE_SIZE
) -> Listed:
    """Return every object of the kind undecoded; raises ApiError when that is not possible."""
    for _ in range(MAX_RESTARTS):
        try:
            return await _all_pages(transport, resource, page_size)
        except Gone:
            continue
    raise ApiError(f"cannot list {resource.plural}: the list changed faster than it was read")


async def _all_pages(transport: Transport, resource: Resource, page_size: int) -> Listed:
    page = await _page(transport, resource, page_size)
    objects = page.items
    while page.next_token:
        page = await _page(transport, resource, page_size, page.next_token)
        objects += page.items
    return Listed(page.version, objects)


async def _page(transport: Transport, resource: Resource, size: int, token: str = "") -> Page:
    params = {"limit": str(size)} | ({"continue": token} if token else {})
    response = await transport.request("GET", resource.path(), params=params)
    if response.status != 200:
        raise error_of(response, f"list of {resource.plural}")
    return decode_page(response.body)
