"""What is wrong with an expression, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One error; lines and columns count from 1, columns in characters."""

    line: int
    column: int
    message: str

    @property
    def place(self) -> str:
        """`1:6`."""
        return f"{self.line}:{self.column}"


class ExpressionInvalid(Exception):
    """An expression is refused; carries every problem found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{one.place}: {one.message}" for one in problems))
        self.problems = tuple(problems)


def refused(line: int, column: int, message: str) -> ExpressionInvalid:
    """Return the error for one problem."""
    return ExpressionInvalid((Problem(line, column, message),))
