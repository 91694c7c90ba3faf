"""Score `create_concurrency_score`: fewer creates in flight first.

100 - 100 * (reported + local) / limit, clamped to 0..100. `reported` is how many creates in flight
the node itself reports; `local` is how many the ledger counts there (Reserved, Bound, Starting, and
this replica's assumptions), added when `include_local_create` is set: a create that is in both
weighs twice, one that the node has not met yet once. Both are cluster-wide, never multiplied by
replicas.
A node that does not report its creates gets 0: taken for none, its silence would draw every burst
there. Where no agent reports them, rate by `local_create_num` instead.
Arguments: `include_local_create` (default true). Source: CubeMaster's score of that name.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.plugins.args import ScoreArgs


class CreateConcurrencyScoreArgs(ScoreArgs):
    """Arguments of `create_concurrency_score`."""

    include_local_create: bool = True
    """Add the creates that the ledger counts to those that the node reports."""

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
        derived = fleet.derived
        if self.include_local_create:
            return derived.creates_free_by_both_percent.take(rows)
        return derived.creates_free_by_report_percent.take(rows)
