"""Score `real_time_weighted_average`: the weighted mean of chosen factors, the emptier first.

Sum of f * w over sum of w; each factor f is 100 - 100 * used / limit, clamped to 0..100:

| factor | used / limit |
|---|---|
| mvm_num | sandboxes, the larger of ledger and report / the node's limit of sandboxes |
| local_create_num | creates in flight by the ledger / the node's create limit |
| realtime_create_num | creates in flight, the larger of ledger and report / create limit |
| quota_cpu_usage, quota_mem_usage | allocated / quota x over-commit |
| req_cpu, req_mem | allocated with this request / quota x over-commit |
| cpu_util (also cpu_usage) | cpu busy, percent |
| mem_usage | memory really used / memory of the machine |
| cpu_load | load / cpus |
| data_disk_usage, storage_disk_usage, sys_disk_usage | disk full, percent |

A value that only a report can tell and none tells counts as the worst, f = 0, and so does what a
limit of 0 leaves; the ledger's own counts are always known. Create counts are cluster-wide, never
multiplied by replicas. NOT_APPLICABLE when no factor has a weight above 0.
Arguments: `factors`, a list of names (weight 1 each) or a map from name to weight. Without it the
factors and weights of the SchedulerConfig's `score` hold, and where that says nothing mvm_num,
local_create_num, cpu_util and quota_mem_usage, weight 1 each.
Source: CubeMaster's score of that name; there the req_ terms are ratios of 0..1 beside factors of
0..100, here they are factors like the others.
"""

from __future__ import annotations

from typing import ClassVar, Final

from typing_extensions import override

from cubesched.core.pipeline import Score
from cubesched.plugins.args import FactorArgs
from cubesched.plugins.builtin.factors import (
    ALIASES,
    DEFAULT_FACTORS,
    FACTORS,
    AveragedFactors,
    weighted_average,
)

NAME: Final = "real_time_weighted_average"


class RealTimeWeightedAverageArgs(FactorArgs):
    """Arguments of `real_time_weighted_average`."""

    known: ClassVar = (*FACTORS, *ALIASES)
    factors: AveragedFactors = dict.fromkeys(DEFAULT_FACTORS, 1.0)
    """What is averaged: a list of names, or a map from name to weight."""

    @override
    def build(self) -> Score:
        """Return the score."""
        return weighted_average(NAME, self.factors)
