"""One plain list of a kind with few objects, whole: pages are joined, a stale page starts over."""

from __future__ import annotations

from typing import Any

import msgspec

from cubesched.adapters.cluster.answers import message_of
from cubesched.adapters.cluster.transport import Transport
from cubesched.api import Resource
from cubesched.core.errors import ApiError, Gone

PAGE_SIZE = 500
MAX_RESTARTS = 3

Objects = list[dict[str, Any]]


async def list_objects(transport: Transport, resource: Resource) -> Objects:
    """Return every object of the kind as plain JSON; raises ApiError when that is not possible."""
    for _ in range(MAX_RESTARTS):
        try:
            return await _all_pages(transport, resource)
        except Gone:
            continue
    raise ApiError(f"cannot list {resource.plural}: the list changed faster than it was read")


async def _all_pages(transport: Transport, resource: Resource) -> Objects:
    objects: Objects = []
    token = ""
    while True:
        page = await _page(transport, resource, token)
        objects += [item for item in page.get("items") or () if isinstance(item, dict)]
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return objects


async def _page(transport: Transport, resource: Resource, token: str) -> dict[str, Any]:
    params = {"limit": str(PAGE_SIZE)} | ({"continue": token} if token else {})
    response = await transport.request("GET", resource.path(), params=params)
    if response.status == 410:
        raise Gone(f"page of {resource.plural} is no longer served")
    if response.status != 200:
        raise ApiError(f"list of {resource.plural}: {message_of(response)}", response.status)
    page = msgspec.json.decode(response.body)
    return page if isinstance(page, dict) else {}
