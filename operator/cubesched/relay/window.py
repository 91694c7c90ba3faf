"""The last events in memory, for agents whose watch broke and is opened again."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

LINE_OVERHEAD_BYTES: Final = 250
"""What Python needs beside the bytes of a line."""


class Told(NamedTuple):
    """One line that the watches of one node were told."""

    version: int
    node: str
    line: bytes


class Window:
    """Events of all nodes in stream order; the oldest go first when it is full."""

    def __init__(self, *, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lines: deque[Told] = deque()
        self.floor = 0
        """A watch from an earlier version would miss something."""
        self.size_bytes = 0

    def restart(self, version: int) -> None:
        """Forget all: what is known begins with a list at `version`."""
        self._lines.clear()
        self.size_bytes, self.floor = 0, version

    def add(self, told: Told) -> None:
        """Remember a line; versions never fall."""
        self._lines.append(told)
        self.size_bytes += len(told.line) + LINE_OVERHEAD_BYTES
        while self.size_bytes > self._most_bytes:
            oldest = self._lines.popleft()
            self.size_bytes -= len(oldest.line) + LINE_OVERHEAD_BYTES
            self.floor = oldest.version

    def since(self, version: int, *, node: str) -> list[bytes]:
        """Return what the node was told after `version`, which must not lie below the floor."""
        lines = []
        for told in reversed(self._lines):
            if told.version <= version:
                break
            if told.node == node:
                lines.append(told.line)
        return lines[::-1]
