"""Built-in plugins as they would be if they were wrong: the core's own protocol, and no checks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.unit.plugins.failing.cells import NUMBERS, Fault

from cubesched.core.pipeline import NOT_APPLICABLE, Filter, Judged, Miss, Score
from cubesched.core.request import Request
from cubesched.core.snapshot import Ints, Snapshot


@dataclass(frozen=True)
class Wrong:
    """A filter and a score that answer what they are told to, given the number of rows."""

    answer: Callable[[int], Any]
    name: str = "wrong"

    def keep(self, fleet: Snapshot, request: Request) -> Any:
        return self.answer(len(fleet))

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Any:
        return self.answer(rows.size)

    def reasons(self, fleet: Snapshot, request: Request, rows: Ints) -> Sequence[tuple[str, int]]:
        return [("wrong", int(rows.size))]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        return None


def _broken(_: int) -> Any:
    raise ZeroDivisionError("division by zero")


def _judged(size: int) -> Judged:
    rows = np.arange(size)
    return Judged(rows < 3, rows == 1, "no such key: zone")


def masks(size: int) -> Any:
    """Return what a sound filter answers: all but n4."""
    return np.arange(size) < 3


def scores(size: int) -> Any:
    """Return what a sound score answers."""
    return 10.0 * np.arange(size)


def with_number(number: float) -> Callable[[int], Any]:
    """Return scores of which the second is this number."""
    return lambda size: np.where(np.arange(size) == 1, number, 50.0)


def of_shape(sound: Callable[[int], Any]) -> Mapping[Fault, Callable[[int], Any]]:
    """Return answers about other nodes than those that were asked about.

    A column names no nodes: one too many is a node twice, or a strange one.
    """
    return {
        Fault.EMPTY: lambda _: sound(0),
        Fault.MISSING: lambda size: sound(size - 1),
        Fault.DUPLICATE: lambda size: sound(size + 1),
        Fault.FOREIGN: lambda size: sound(2 * size),
        Fault.WRONG_VERSION: lambda _: sound(7),
    }


_BOTH: Mapping[Fault, Callable[[int], Any]] = {
    Fault.ON_THE_CALL: _broken,
    Fault.NOT_APPLICABLE: lambda _: NOT_APPLICABLE,
    **{fault: with_number(number) for fault, number in NUMBERS.items()},
}
ANSWERS: Mapping[str, Mapping[Fault, Callable[[int], Any]]] = {
    "filter": {**_BOTH, **of_shape(masks), Fault.ON_A_NODE: _judged},
    # A score has no word for a failure on one node: it fails as a whole.
    "score": {**_BOTH, **of_shape(scores), Fault.ON_A_NODE: _broken},
}


@asynccontextmanager
async def plugin(where: str, fault: Fault) -> AsyncIterator[Filter | Score]:
    """Give the plugin that fails so."""
    yield Wrong(ANSWERS[where][fault])
