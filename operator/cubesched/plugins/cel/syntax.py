"""An expression as it is written: a tree without types."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """Where a part of the expression begins; counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A bool, int, double or string, as a Python value of that type."""

    value: bool | int | float | str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """`node`, `request`, or the variable of a macro."""

    name: str


@dataclass(frozen=True, slots=True)
class Field(Node):
    """`operand.name`; line and column are those of the name."""

    operand: Node
    name: str


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`operand[key]`."""

    operand: Node
    key: Node


@dataclass(frozen=True, slots=True)
class Listing(Node):
    """`[a, b]`."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function, method (its target is the first argument) or operator."""

    name: str
    args: tuple[Node, ...]
    is_method: bool = False


@dataclass(frozen=True, slots=True)
class Unsupported(Node):
    """A construct of CEL that is refused; `what` names it."""

    what: str
