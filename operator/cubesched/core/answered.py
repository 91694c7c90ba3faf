"""What a filter that was waited for has answered, as a filter that can be asked again.

It knows the nodes by name, so it holds for the fleet as it has become meanwhile; of nodes that it
was not asked about it says so.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from cubesched.core.pipeline import Judged, Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Snapshot


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer for one request."""

    name: str
    kept: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    """Nodes it could not judge, and that were lost by it."""
    error: str = ""
    skipped: bool = False
    """It failed as a whole, and the policy keeps every node."""

    def keep(self, fleet: Snapshot, request: Request) -> Bools | None:  # noqa: ARG002
        """Keep the nodes that it kept."""
        if self.skipped:
            return None
        mask = np.zeros(len(fleet), np.bool_)
        mask[[fleet.row_of[name] for name in self.kept if name in fleet.row_of]] = True
        return mask

    def reasons(
        self,
        fleet: Snapshot,
        request: Request,  # noqa: ARG002
        rows: Ints,
    ) -> Sequence[tuple[str, int]]:
        """Tell apart what it excludes, what it failed on, and what it was never asked about."""
        names = [fleet.names[row] for row in rows.tolist()]
        excluded = sum(name in self.excluded for name in names)
        failed = sum(name in self.failed for name in names)
        told = (
            (f"excluded by {self.name}", excluded),
            (f"error in {self.name}: {self.error}", failed),
            (f"not asked about by {self.name} yet", len(names) - excluded - failed),
        )
        return [(text, number) for text, number in told if number]

    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:  # noqa: ARG002
        """Return None: it does not tell how much is missing."""
        return None


def answered(
    name: str, fleet: Snapshot, asked: Collection[int] | Ints, left: Ints, judged: Judged
) -> Answered:
    """Return the answer about the rows `asked`, of which `left` stay."""
    kept = _names(fleet, left)
    rows = np.asarray(asked)
    failed = _names(fleet, rows[judged.failed[rows]]) - kept
    return Answered(
        name=name,
        kept=kept,
        excluded=_names(fleet, rows) - kept - failed,
        failed=failed,
        error=judged.error,
    )


def _names(fleet: Snapshot, rows: Ints) -> frozenset[str]:
    return frozenset(fleet.names[row] for row in rows.tolist())
