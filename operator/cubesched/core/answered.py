"""What a filter that was waited for has answered, as a filter that can be asked again.

It knows the nodes by name, so it holds for the fleet as it has become meanwhile; of nodes that it
was not asked about it says so. Every request that waits may hold one: a byte a node, and names
that they share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from cubesched.core.pipeline import Judged, Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Snapshot


class _Said(IntEnum):
    """What it said of one node."""

    NOTHING = 0
    """It was not asked about it."""
    KEPT = 1
    EXCLUDED = 2
    FAILED = 3
    """It could not judge the node, which was lost by that."""


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """The answer for one request."""

    name: str
    nodes: Sequence[str] = ()
    """All there were when it was asked."""
    said: NDArray[np.uint8] | None = None
    """For each of them a `_Said`; None: it was never asked."""
    error: str = ""
    skipped: bool = False
    """It failed as a whole, and the policy keeps every node."""

    def keep(self, fleet: Snapshot, request: Request) -> Bools | None:  # noqa: ARG002
        """Keep the nodes that it kept."""
        if self.skipped:
            return None
        mask = np.zeros(len(fleet), np.bool_)
        if self.said is not None:
            kept = (self.nodes[row] for row in np.flatnonzero(self.said == _Said.KEPT).tolist())
            mask[[fleet.row_of[name] for name in kept if name in fleet.row_of]] = True
        return mask

    def reasons(
        self,
        fleet: Snapshot,
        request: Request,  # noqa: ARG002
        rows: Ints,
    ) -> Sequence[tuple[str, int]]:
        """Tell apart what it excludes, what it failed on, and what it was never asked about."""
        said = {} if self.said is None else dict(zip(self.nodes, self.said.tolist(), strict=True))
        numbers = Counter(said.get(fleet.names[row]) for row in rows.tolist())
        excluded, failed = numbers[_Said.EXCLUDED], numbers[_Said.FAILED]
        told = (
            (f"excluded by {self.name}", excluded),
            (f"error in {self.name}: {self.error}", failed),
            (f"not asked about by {self.name} yet", rows.size - excluded - failed),
        )
        return [(text, number) for text, number in told if number]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:  # noqa: ARG002
        """Return None: it does not tell how much is missing."""
        return None


def answered(name: str, fleet: Snapshot, asked: Ints, left: Ints, judged: Judged) -> Answered:
    """Return the answer about the rows `asked` of a frozen fleet, of which `left` stay."""
    said = np.zeros(len(fleet), np.uint8)
    said[asked] = np.where(judged.failed[asked], _Said.FAILED, _Said.EXCLUDED)
    said[left] = _Said.KEPT
    return Answered(name, fleet.names, said, judged.error)
