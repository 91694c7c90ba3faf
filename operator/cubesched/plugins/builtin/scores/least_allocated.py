"""Score `least_allocated`: 100 * (rc + rm) / 2, the emptier node first.

rc and rm are the shares of cpu and memory (quota x over-commit) that remain after placing.
No arguments. Source: Kubernetes' NodeResourcesFit, strategy LeastAllocated.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.plugins.args import ScoreArgs
from cubesched.plugins.builtin.ratios import cpu_left, memory_left


class LeastAllocatedArgs(ScoreArgs):
    """`least_allocated` takes no arguments."""

    @override
    def build(self) -> LeastAllocated:
        """Return the score."""
        return LeastAllocated()


@dataclass(frozen=True, slots=True)
class LeastAllocated:
    """Rates a node by what remains on it."""

    name: str = "least_allocated"

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        """Return one score for each row; see the module."""
        left = cpu_left(fleet, request, rows)
        left += memory_left(fleet, request, rows)
        left *= 0.5
        return left
