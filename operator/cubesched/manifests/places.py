"""From the path of a problem, such as `spec.scores[0].weight`, to its place in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from cubesched.manifests.nodes import Node, Place
from cubesched.policy.objects import printable

_INDEX: Final = re.compile(r"\[(\d{1,9})\]")
_END: Final = re.compile(r"(?=[.\[ ])|$")
"""Where a name may end; names may hold these as well."""
_WITHIN: Final = re.compile(r" (\d{1,9}):\d{1,9}")
"""Line and column within an expression."""


def place_of(root: Node, path: str) -> Place:
    """Return where the field stands; what is missing stands where it should be: its block."""
    node, place, rest = root, root.place, path
    while rest:
        step = next(_steps(node, rest), None)
        if step is None:
            break
        name, rest = step
        node, place = node.below[name], node.keys[name]
    within = _WITHIN.fullmatch(rest)
    if within and node.is_literal:
        return Place(node.place.line + int(within[1]), place.column)
    return place


def _steps(node: Node, rest: str) -> Iterator[tuple[str | int, str]]:
    """Yield (what is below, remaining path), the longest name first: names may hold dots."""
    if isinstance(node.value, list):
        found = _INDEX.match(rest)
        if found and int(found[1]) in node.below:
            yield int(found[1]), rest[found.end() :]
        return
    rest = rest.removeprefix(".")
    ends = [found.start() for found in _END.finditer(rest)]
    for end in reversed(ends):
        name = _named(node, rest[:end])
        if name is not None:
            yield name, rest[end:]


def _named(node: Node, shown: str) -> str | int | None:
    """Return the name that a path shows so: what cannot be printed is a question mark in it."""
    if shown in node.below or "?" not in shown:
        return shown if shown in node.below else None
    return next((name for name in node.below if printable(str(name)) == shown), None)
