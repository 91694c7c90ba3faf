"""A score that configuration leaves nothing to rate by."""

from __future__ import annotations

from dataclasses import dataclass

from cubesched.core.pipeline import NOT_APPLICABLE, NotApplicable
from cubesched.core.request import Request
from cubesched.core.snapshot import Ints, Snapshot


@dataclass(frozen=True, slots=True)
class SwitchedOff:
    """Stands in for a score that is disabled, or whose factors are none or all of weight 0."""

    name: str

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> NotApplicable:
        """Never apply."""
        return NOT_APPLICABLE
