"""Score `resource_fit_score`: pack nodes tightly and evenly.

100 * (1 - (rc + rm) / 2) - imbalance_penalty * 100 * |rc - rm|, clamped to 0..100; rc and rm are
the shares of cpu and memory (quota x over-commit) that remain after placing.
Arguments: `imbalance_penalty` (0-100, default 0.5). Source: CubeMaster's score of that name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
from pydantic import Field
from typing_extensions import override

from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.plugins.args import ScoreArgs
from cubesched.plugins.builtin.ratios import cpu_left, memory_left

HALF: Final = 0.5
"""The penalty under which only the larger of what remains of cpu and memory counts."""


class ResourceFitScoreArgs(ScoreArgs):
    """Arguments of `resource_fit_score`."""

    imbalance_penalty: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = HALF
    """How many points a node loses for each point of difference between cpu and memory left."""

    @override
    def build(self) -> ResourceFitScore:
        """Return the score."""
        return ResourceFitScore(self.imbalance_penalty)


@dataclass(frozen=True, slots=True)
class ResourceFitScore:
    """Rates a node by how full and how even it would be."""

    imbalance_penalty: float
    name: str = "resource_fit_score"

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        """Return one score for each row; see the module."""
        cpu = cpu_left(fleet, request, rows)
        memory = memory_left(fleet, request, rows)
        # (rc + rm) / 2 and the gap |rc - rm|, told by the larger and the smaller of the two.
        cost = np.maximum(cpu, memory)
        if self.imbalance_penalty == HALF:
            return np.subtract(100.0, cost, out=cost)
        smaller = np.minimum(cpu, memory, out=memory)
        smaller *= 0.5 - self.imbalance_penalty
        cost *= 0.5 + self.imbalance_penalty
        cost += smaller
        scores = np.subtract(100.0, cost, out=cost)
        return np.maximum(scores, 0.0, out=scores)
