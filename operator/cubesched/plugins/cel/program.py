"""One expression, compiled: from its text to something that runs over a fleet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from cubesched.core.request import Request
from cubesched.core.snapshot import Ints, Snapshot
from cubesched.plugins.cel.celtypes import BOOL, DOUBLE, INT, Type
from cubesched.plugins.cel.checking import check
from cubesched.plugins.cel.parsing import TOO_DEEP, parse
from cubesched.plugins.cel.problems import refused
from cubesched.plugins.cel.typed import Typed
from cubesched.plugins.cel.values import Env, Error, Value

FILTER: Final = (BOOL,)
SCORE: Final = (DOUBLE, INT)
_REMEMBERED: Final = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A checked expression; the same object serves every Profile that has the same text."""

    text: str
    root: Typed
    errors: tuple[str, ...]
    """What each number of an error stands for."""

    def run(
        self, fleet: Snapshot, request: Request, rows: Ints | None = None
    ) -> tuple[Value, Error]:
        """Return the values of the rows (None: of all) and their errors, as `values` has them.

        Raises OutOfBudget.
        """
        # NaN and infinite doubles are results like others here.
        with np.errstate(all="ignore"):
            return self.root.run(Env(fleet, request, rows))


@lru_cache(_REMEMBERED)
def compile_expression(text: str, wanted: tuple[Type, ...]) -> Program:
    """Return the program of an expression of one of these types, or raise ExpressionInvalid."""
    try:
        root, errors = check(parse(text), wanted)
    except RecursionError:
        raise refused(1, 1, TOO_DEEP) from None
    return Program(text, root, errors)
