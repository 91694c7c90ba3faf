"""What an expression computes with: values beside errors, on many rows or for all at once.

A value is a bool, int, float or str where it is the same for every row, else an array, or a `Text`
(codes beside the texts they stand for). Its error is 0 where there is none, the number of one error
that holds for all rows, or a uint8 array of such numbers, 0 where a row has none. In the place of
an error stands any value of the right type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Codes, Ints, Snapshot
from cubesched.plugins.cel.limits import FRESH_NS, FRESH_ROWS
from cubesched.plugins.cel.texts import Texts

Value = Any
Error = int | NDArray[np.uint8]
Pair = tuple[Value, Error]

NO_ERROR: Final = 0


class OutOfBudget(Exception):
    """One decision would read more text than it may; what was read is remembered."""


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A column of texts."""

    codes: Codes
    texts: Texts


@dataclass(slots=True)
class Env:
    """What one evaluation sees."""

    fleet: Snapshot
    request: Request
    rows: Ints | None = None
    """The rows asked about; None for all."""
    fresh_ns: float = field(init=False)
    """What it may still spend on reading texts, in nominal nanoseconds."""

    def __post_init__(self) -> None:
        """Allow more on a larger fleet."""
        self.fresh_ns = FRESH_NS * max(1.0, len(self.fleet) / FRESH_ROWS)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.fleet) if self.rows is None else self.rows.size

    def check(self) -> None:
        """Raise OutOfBudget when more text was read than may be."""
        if self.fresh_ns < 0:
            raise OutOfBudget

    def charge(self, nanoseconds: float) -> None:
        """Count work on text."""
        self.fresh_ns -= nanoseconds

    def read(self, *texts: str) -> None:
        """Count a look at texts that are the same for all rows."""
        self.check()
        self.charge(sum(map(len, texts)))

    def of(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return the cells of the rows asked about."""
        return column if self.rows is None else column.take(self.rows)


Run = Callable[[Env], Pair]


def is_column(value: Value) -> bool:
    """Tell whether the value differs from row to row."""
    return type(value) is np.ndarray or type(value) is Text


def failing(mask: Bools, error: int) -> Error:
    """Return the error on the rows of the mask."""
    return mask.view(np.uint8) * np.uint8(error) if mask.any() else NO_ERROR


def either(first: Error, second: Error) -> Error:
    """Return the error of a strict operation: any of its arguments'."""
    if type(first) is int:
        return first or second
    if type(second) is int:
        return second or first
    return np.maximum(first, second)


def only_where(error: Error, mask: Bools) -> Error:
    """Return the error on the rows of the mask, none on others."""
    if type(error) is int:
        return failing(mask, error) if error else NO_ERROR
    kept = error * mask.view(np.uint8)
    return kept if kept.any() else NO_ERROR
