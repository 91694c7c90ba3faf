"""Score `most_allocated`: 100 * (1 - (rc + rm) / 2), the fuller node first.

rc and rm are the shares of cpu and memory (quota x over-commit) that remain after placing.
No arguments. Source: Kubernetes' NodeResourcesFit, strategy MostAllocated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.plugins.args import ScoreArgs
from cubesched.plugins.builtin.ratios import cpu_left, memory_left


class MostAllocatedArgs(ScoreArgs):
    """`most_allocated` takes no arguments."""

    @override
    def build(self) -> MostAllocated:
        """Return the score."""
        return MostAllocated()


@dataclass(frozen=True, slots=True)
class MostAllocated:
    """Rates a node by how little remains on it."""

    name: str = "most_allocated"

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        """Return one score for each row; see the module."""
        left = cpu_left(fleet, request, rows)
        left += memory_left(fleet, request, rows)
        left *= 0.5
        return np.subtract(100.0, left, out=left)
