"""Cutting a stream of chunks into lines, whatever their length.

The reader of aiohttp refuses lines above 128 KiB; a stored object may be larger than that.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable


async def split_lines(read_chunk: Callable[[], Awaitable[bytes]]) -> AsyncGenerator[bytes, None]:
    """Yield each line without its break until `read_chunk` returns nothing.

    What follows the last break is dropped: a line that was cut off was never said.
    """
    parts: list[bytes] = []
    while chunk := await read_chunk():
        first, *rest = chunk.split(b"\n")
        parts.append(first)
        if not rest:
            continue
        *whole, tail = rest
        yield b"".join(parts)
        for line in whole:
            yield line
        parts = [tail]
