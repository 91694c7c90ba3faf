"""Score `create_concurrency_score`: fewer creates in flight first.

100 - 100 * (creating + local) / limit, clamped to 0..100. `creating` is the number that the guard
`realtime_create_num` compares; `local` is what the ledger counts of it, added when
`include_local_create` is set, so that creates a node has not reported yet weigh more. Both are
cluster-wide, never multiplied by replicas.
Arguments: `include_local_create` (default true). Source: CubeMaster's score of that name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.plugins.args import ScoreArgs
from cubesched.plugins.builtin.ratios import used_share


class CreateConcurrencyScoreArgs(ScoreArgs):
    """Arguments of `create_concurrency_score`."""

    include_local_create: bool = True
    """Add the creates that the ledger counts."""

    @override
    def build(self) -> CreateConcurrencyScore:
        """Return the score."""
        return CreateConcurrencyScore(self.include_local_create)


@dataclass(frozen=True, slots=True)
class CreateConcurrencyScore:
    """Rates a node by its free create slots."""

    include_local_create: bool
    name: str = "create_concurrency_score"

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        """Return one score for each row; see the module."""
        creating = fleet.creating.take(rows)
        if self.include_local_create:
            creating += fleet.creating_ledger.take(rows)
        share = used_share(creating, fleet.create_limit.take(rows))
        share *= 100.0
        return np.subtract(100.0, share, out=share)
