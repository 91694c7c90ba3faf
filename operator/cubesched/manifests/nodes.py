"""What a YAML document is once it is read: values, and where each of them stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

MAX_DEPTH: Final = 100
MAX_DOCUMENT_CHARS: Final = 3 << 19
"""1.5 Mi, aliases followed: etcd stores no larger object."""


class Place(NamedTuple):
    """Where something stands in a file, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Node:
    """One value as JSON would hold it, and where it and everything below it stands."""

    value: Any
    place: Place
    chars: int = 1
    """About how much text it is, aliases followed."""
    height: int = 0
    """Levels below it."""
    below: Mapping[str | int, Node] = field(default_factory=dict)
    keys: Mapping[str | int, Place] = field(default_factory=dict)
    """Where the names of what is below stand; in a list, the entries themselves."""
    is_literal: bool = False
    """A block of lines kept as they are: `|`."""


class Flaw(NamedTuple):
    """Something that is wrong with the text itself."""

    place: Place
    message: str


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file, and what is wrong with its text though it can be read."""

    root: Node
    flaws: tuple[Flaw, ...] = ()


class Broken(Exception):
    """A document cannot be read any further."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.flaw = Flaw(place, message)
