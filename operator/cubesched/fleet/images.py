"""Which nodes hold which images: kept by name, and as a column only where a request asks for one.

A fleet holds thousands of images, requests name a few of them at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import numpy as np
from typing_extensions import override

from cubesched.core.snapshot import Ints

MOST_COLUMNS: Final = 128
"""Columns kept at a time; beyond, the one asked for least lately is made again when needed."""

Held = tuple[tuple[str, int], ...]
"""Names of images with their bytes, in order of name."""


class Images(Mapping[str, Ints]):
    """For each image some node holds: bytes of it on each node, 0 where it is not."""

    def __init__(self, row_of: Mapping[str, int]) -> None:
        """Start without any; `row_of` is the rows' own, and changes with them."""
        self._row_of = row_of
        self._bytes_by_node: dict[str, dict[str, int]] = {}
        self._on_node: dict[str, Held] = {}
        self._columns: dict[str, Ints] = {}

    @override
    def __getitem__(self, image: str) -> Ints:
        column = self._columns.pop(image, None)
        if column is None:
            column = self._made(self._bytes_by_node[image])
            if len(self._columns) >= MOST_COLUMNS:
                del self._columns[next(iter(self._columns))]
        self._columns[image] = column  # last, as the one asked for most lately
        return column

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._bytes_by_node)

    @override
    def __len__(self) -> int:
        return len(self._bytes_by_node)

    def put(self, node: str, held: Held) -> None:
        """Write what a node holds now, which may be nothing, into what is kept of each image."""
        before = self._on_node.get(node, ())
        if held == before:
            return
        now = dict(held)
        for image, _ in before:
            if image not in now:
                self._write(image, node, 0)
        for image, size_bytes in set(held).difference(before):
            self._write(image, node, size_bytes)
        self._on_node[node] = held
        if not held:
            del self._on_node[node]

    def remove(self, nodes: Collection[str]) -> None:
        """Forget what these nodes held; to be called while they still have their rows."""
        for node in nodes:
            self.put(node, ())

    def rows_changed(self) -> None:
        """Drop the columns: nodes have come or gone, so they do not fit any more."""
        self._columns.clear()

    def _write(self, image: str, node: str, size_bytes: int) -> None:
        by_node = self._bytes_by_node.setdefault(image, {})
        if size_bytes:
            by_node[node] = size_bytes
        else:
            by_node.pop(node, None)
        if not by_node:
            del self._bytes_by_node[image]
            self._columns.pop(image, None)
        elif image in self._columns:
            self._columns[image][self._row_of[node]] = size_bytes

    def _made(self, by_node: Mapping[str, int]) -> Ints:
        column = np.zeros(len(self._row_of), np.int64)
        rows = np.fromiter(map(self._row_of.__getitem__, by_node), np.int64, len(by_node))
        column[rows] = np.fromiter(by_node.values(), np.int64, len(by_node))
        return column
