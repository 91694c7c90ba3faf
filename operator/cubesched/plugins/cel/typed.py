"""An expression with its type, its cost and the closure that computes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from cubesched.plugins.cel.celtypes import Type
from cubesched.plugins.cel.facts import NodeFact
from cubesched.plugins.cel.limits import MAX_ERRORS
from cubesched.plugins.cel.values import Run


class _Nothing:
    """No literal; a class of its own since any value can be one."""


NOTHING: Final = _Nothing()


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """A checked part of an expression."""

    type: Type
    run: Run
    line: int
    column: int
    per_node: bool = False
    """Its value can differ from node to node."""
    can_fail: bool = False
    cost_us: float = 0.0
    """Nominal, on 5,000 nodes, with all that it is made of."""
    literal: object = NOTHING
    """Its value where that is the same at all times."""
    items: tuple[Typed, ...] = ()
    """The elements of a list."""
    choice: tuple[Typed, Typed, Typed] | None = None
    """Condition and branches, where it is a `?:` of strings or lists."""
    fact: NodeFact | None = None
    """The field of `node` that it is."""
    compares: tuple[str, Typed, Typed] | None = None
    """Operator and sides, where it is a comparison."""

    @property
    def is_literal(self) -> bool:
        """Tell whether its value is known before anything runs."""
        return self.literal is not NOTHING


class TooManyErrors(Exception):
    """An expression can fail in more ways than it has numbers for."""


@dataclass(slots=True)
class Errors:
    """The ways in which one expression can fail, by number; 0 is none."""

    texts: list[str] = field(default_factory=lambda: [""])

    def number(self, text: str) -> int:
        """Return the number of an error."""
        if text not in self.texts:
            if len(self.texts) > MAX_ERRORS:
                raise TooManyErrors
            self.texts.append(text)
        return self.texts.index(text)
