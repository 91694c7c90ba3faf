"""One plain list of a kind with few objects, whole: pages are joined, a stale page starts over."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cubesched.adapters.cluster.answers import error_of
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.cluster.wirelines import Page, decode_page
from cubesched.api import Resource
from cubesched.core.errors import ApiError, Gone

PAGE_SIZE: Final = 500
MAX_RESTARTS: Final = 3


async def list_objects(transport: Transport, resource: Resource) -> list[dict[str, Any]]:
    """Return every object of the kind as plain JSON; raises ApiError when that is not possible."""
    for _ in range(MAX_RESTARTS):
        try:
            return [msgspec.json.decode(raw) for raw in await _all_pages(transport, resource)]
        except Gone:
            continue
    raise ApiError(f"cannot list {resource.plural}: the list changed faster than it was read")


async def _all_pages(transport: Transport, resource: Resource) -> list[bytes]:
    page = await _page(transport, resource)
    objects = page.items
    while page.next_token:
        page = await _page(transport, resource, page.next_token)
        objects += page.items
    return objects


async def _page(transport: Transport, resource: Resource, token: str = "") -> Page:
    params = {"limit": str(PAGE_SIZE)} | ({"continue": token} if token else {})
    response = await transport.request("GET", resource.path(), params=params)
    if response.status != 200:
        raise error_of(response, f"list of {resource.plural}")
    return decode_page(response.body)
