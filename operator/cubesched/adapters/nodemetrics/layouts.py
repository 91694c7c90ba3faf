"""Which layouts a replica reads, by the name that its settings give; the first one wins."""

from __future__ import annotations

from typing import Final

from cubesched.adapters.nodemetrics.client import DEADLINE_SECONDS, BlockingClient
from cubesched.adapters.nodemetrics.hashes import HashReports
from cubesched.adapters.nodemetrics.packed import PackedReports
from cubesched.adapters.nodemetrics.reader import Source

_SOURCES: Final = {
    "cubesched": (PackedReports,),
    "cubemaster": (HashReports,),
    "both": (PackedReports, HashReports),
}


def open_sources(
    url: str, layout: str, *, deadline_seconds: float = DEADLINE_SECONDS
) -> tuple[Source, ...]:
    """Return what reads `layout`; UsageError when the URL is none. Nothing is connected yet."""
    client = BlockingClient(url, deadline_seconds=deadline_seconds)
    return tuple(source(client) for source in _SOURCES[layout])
