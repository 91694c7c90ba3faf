"""Score `balanced_allocation`: 100 * (1 - |rc - rm|), evenly used nodes first.

rc and rm are the shares of cpu and memory (quota x over-commit) that remain after placing.
No arguments. Source: Kubernetes' NodeResourcesBalancedAllocation, as a plain difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.plugins.args import ScoreArgs
from cubesched.plugins.builtin.ratios import cpu_left, memory_left


class BalancedAllocationArgs(ScoreArgs):
    """`balanced_allocation` takes no arguments."""

    @override
    def build(self) -> BalancedAllocation:
        """Return the score."""
        return BalancedAllocation()


@dataclass(frozen=True, slots=True)
class BalancedAllocation:
    """Rates a node by how evenly cpu and memory would be used."""

    name: str = "balanced_allocation"

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        """Return one score for each row; see the module."""
        gap = cpu_left(fleet, request, rows)
        gap -= memory_left(fleet, request, rows)
        np.abs(gap, out=gap)
        return np.subtract(100.0, gap, out=gap)
