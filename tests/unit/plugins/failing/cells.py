"""The table of failures: what goes wrong, in which kind of plugin, under which policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Final

from typing_extensions import override


class Fault(StrEnum):
    """The rows: what goes wrong. Of the four nodes n1 to n4 it is n2 where it is one node."""

    ON_A_NODE = "error on a node"
    ON_THE_CALL = "error on the call"
    TIMEOUT = "timeout"
    NAN = "NaN"
    NEGATIVE = "-1"
    ABOVE = "100.1"
    INF = "inf"
    EMPTY = "empty"
    MISSING = "missing node"
    DUPLICATE = "duplicate node"
    FOREIGN = "foreign node"
    WRONG_VERSION = "wrong version"
    NOT_APPLICABLE = "not applicable"


NUMBERS: Final[Mapping[Fault, float]] = {
    Fault.NAN: float("nan"),
    Fault.NEGATIVE: -1.0,
    Fault.ABOVE: 100.1,
    Fault.INF: float("inf"),
}
SHAPES: Final = (Fault.EMPTY, Fault.MISSING, Fault.DUPLICATE, Fault.FOREIGN, Fault.WRONG_VERSION)
KINDS: Final = ("builtin", "python", "expr", "grpc")
POLICIES: Final[Mapping[str, tuple[str, str]]] = {
    "filter": ("fail-closed", "fail-open"),
    "score": ("default-score", "fail-closed"),
}


@dataclass(frozen=True)
class Cell:
    """One failure of one kind of plugin under one policy."""

    fault: Fault
    kind: str
    where: str
    """filter or score."""
    policy: str

    @override
    def __str__(self) -> str:
        return f"{self.kind} {self.where}, {self.policy}: {self.fault}"


COLUMNS: Final = tuple(
    (kind, where, policy) for kind in KINDS for where in POLICIES for policy in POLICIES[where]
)

IMPOSSIBLE: Final[Mapping[tuple[str, Fault], str]] = {
    ("builtin", Fault.TIMEOUT): "it runs on the event loop itself, where nothing could end it; the"
    " benchmarks bound its time",
    ("expr", Fault.NOT_APPLICABLE): "the language has no word for it",
    **{
        ("expr", fault): "it is evaluated row by row on the version that is decided on, so it has"
        " one value a node"
        for fault in SHAPES
    },
}
"""What cannot happen to a kind of plugin, under any policy, and why."""

REFUSED: Final = frozenset({("expr", "filter", fault) for fault in NUMBERS})
"""What is refused when the policy compiles, so that no decision ever meets it."""


def cells() -> Iterator[Cell]:
    """Yield every cell that can happen."""
    for fault, (kind, where, policy) in product(Fault, COLUMNS):
        if (kind, fault) not in IMPOSSIBLE:
            yield Cell(fault, kind, where, policy)


def left_out() -> Iterator[tuple[str, Fault]]:
    """Yield the kind and the fault of every cell that cannot happen."""
    for kind, fault in IMPOSSIBLE:
        yield from ((kind, fault) for column in COLUMNS if column[0] == kind)


def summary(run: int) -> str:
    """Say how many cells were run, and which are not there."""
    table, missing = f"{len(Fault)} rows x {len(COLUMNS)} columns", list(left_out())
    lines = [f"failure policies: {run} cells run = {table} - {len(missing)} that cannot happen:"]
    for (kind, fault), why in IMPOSSIBLE.items():
        lines.append(f"  {missing.count((kind, fault))} of {kind}, {fault}: {why}")
    return "\n".join(lines)
