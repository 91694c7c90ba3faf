"""The filter and the score that an expression makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cubesched.core.errors import PluginArgsInvalid, PluginError
from cubesched.core.pipeline import Judged, Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Floats, Ints, Snapshot
from cubesched.plugins.cel.celtypes import Type
from cubesched.plugins.cel.nearness import nearest
from cubesched.plugins.cel.problems import ExpressionInvalid
from cubesched.plugins.cel.program import FILTER, SCORE, Program, compile_expression
from cubesched.plugins.cel.values import Error, OutOfBudget, Value

OVER_BUDGET: Final = "too much new text in one decision; it goes on from there next time"


def expr_filter(name: str, text: str) -> ExprFilter:
    """Return the filter of an expression, or raise PluginArgsInvalid with every problem."""
    return ExprFilter(name, _compiled(text, FILTER))


def expr_score(name: str, text: str) -> ExprScore:
    """Return the score of an expression, or raise PluginArgsInvalid with every problem."""
    return ExprScore(name, _compiled(text, SCORE))


def _compiled(text: str, wanted: tuple[Type, ...]) -> Program:
    try:
        return compile_expression(text, wanted)
    except ExpressionInvalid as error:
        problems = tuple((f"expr {one.place}", one.message) for one in error.problems)
        raise PluginArgsInvalid(problems) from None


def _run(
    name: str, program: Program, fleet: Snapshot, request: Request, rows: Ints | None
) -> tuple[Value, Error]:
    try:
        return program.run(fleet, request, rows)
    except OutOfBudget:
        raise PluginError(name, OVER_BUDGET) from None


@dataclass(frozen=True, slots=True)
class ExprFilter:
    """Keeps the nodes for which the expression is true; an error is the failure policy's."""

    name: str
    program: Program

    def keep(self, fleet: Snapshot, request: Request) -> Bools | Judged | None:
        """Return which nodes stay, and where the expression is an error."""
        value, error = _run(self.name, self.program, fleet, request, None)
        if type(error) is int and not error:
            if value is True:
                return None
            return _bools(value, len(fleet))
        failed = np.not_equal(error, 0) if type(error) is np.ndarray else np.ones(len(fleet), bool)
        if not failed.any():
            return _bools(value, len(fleet))
        first = error if type(error) is int else int(error[failed.argmax()])  # type: ignore[index]
        return Judged(_bools(value, len(fleet)) & ~failed, failed, self.program.errors[first])

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        """Count the nodes that the expression excludes, and those where it is an error."""
        _, error = _run(self.name, self.program, fleet, request, rows)
        numbers = np.bincount(np.broadcast_to(np.asarray(error, np.uint8), rows.shape))
        texts = self.program.errors
        return [
            (f"error in {self.name}: {texts[code]}" if code else f"excluded by {self.name}", number)
            for code, number in enumerate(numbers.tolist())
            if number
        ]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Return the node closest to the bound, where the expression is one comparison."""
        return nearest(self.program.root, fleet, request, rows)


@dataclass(frozen=True, slots=True)
class ExprScore:
    """Rates nodes by an expression."""

    name: str
    program: Program

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        """Return the expression's value for each row; raises PluginError when any is an error."""
        asked = None if rows.size == len(fleet) else rows
        value, error = _run(self.name, self.program, fleet, request, asked)
        if type(error) is np.ndarray:
            error = int(error.max(initial=0))
        if error:
            raise PluginError(self.name, self.program.errors[error])
        return _doubles(value, rows.size)


def _bools(value: Any, size: int) -> Bools:
    return value if type(value) is np.ndarray else np.full(size, value, np.bool_)


def _doubles(value: Any, size: int) -> Floats:
    if type(value) is not np.ndarray:
        return np.full(size, float(value))
    return value if value.dtype == np.float64 else value.astype(np.float64)
