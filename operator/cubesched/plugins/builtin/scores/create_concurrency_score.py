"""Score `create_concurrency_score`: fewer creates in flight first.

100 - 100 * (creating + local) / limit, clamped to 0..100. `creating` is the number that the guard
`realtime_create_num` compares; `local` is what the ledger counts of it, added when
`include_local_create` is set, so that creates a node has not reported yet weigh more. Both are
cluster-wide, never multiplied by replicas.
Arguments: `include_local_create` (default true). Source: CubeMaster's score of that name.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.plugins.args import ScoreArgs
from cubesched.plugins.builtin.ratios import creates_left


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
        if self.include_local_create:
            return fleet.derived.creates_free_by_both_percent.take(rows)
        return creates_left(fleet, fleet.creating, rows)
