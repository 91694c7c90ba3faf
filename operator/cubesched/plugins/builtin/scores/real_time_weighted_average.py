"""Score `real_time_weighted_average`: the weighted mean of chosen factors, the emptier first.

Sum of f * w over sum of w; each factor f is 100 - 100 * used / limit, clamped to 0..100:

| factor | used / limit |
|---|---|
| mvm_num | sandboxes / the node's limit of sandboxes |
| local_create_num | creates in flight by the ledger / the node's create limit |
| realtime_create_num | creates in flight, the larger of ledger and report / create limit |
| quota_cpu_usage, quota_mem_usage | allocated / quota x over-commit |
| req_cpu, req_mem | allocated with this request / quota x over-commit |
| cpu_util (also cpu_usage) | cpu busy, percent |
| mem_usage | memory really used / memory of the machine |
| cpu_load | load / cpus |
| data_disk_usage, storage_disk_usage, sys_disk_usage | disk full, percent |

A value never reported counts as the worst, f = 0. NOT_APPLICABLE when all weights are 0.
Arguments: `factors`, a list of names (weight 1 each) or a map from name to weight; default
mvm_num, local_create_num, cpu_util, quota_mem_usage. Source: CubeMaster's score of that name; there
the req_ terms are ratios of 0..1 beside factors of 0..100, here they are factors like the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
from pydantic import AfterValidator
from typing_extensions import override

from cubesched.core.pipeline import NOT_APPLICABLE, NotApplicable
from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.plugins.args import Factors, ScoreArgs, only_known
from cubesched.plugins.builtin.ratios import cpu_left, creates_left, memory_left

FreePercent = Callable[[Snapshot, Request, Ints], Floats]
"""What one factor leaves on each row, in percent; unknown is 0."""

FACTORS: Final[dict[str, FreePercent]] = {
    "mvm_num": lambda fleet, _, rows: fleet.derived.sandboxes_free_percent.take(rows),
    "local_create_num": lambda fleet, _, rows: fleet.derived.creates_free_by_ledger_percent.take(
        rows
    ),
    "realtime_create_num": lambda fleet, _, rows: creates_left(fleet, fleet.creating, rows),
    "quota_cpu_usage": lambda fleet, _, rows: fleet.derived.cpu_free_percent.take(rows),
    "quota_mem_usage": lambda fleet, _, rows: fleet.derived.memory_free_percent.take(rows),
    "req_cpu": cpu_left,
    "req_mem": memory_left,
    "cpu_util": lambda fleet, _, rows: fleet.derived.cpu_idle_percent.take(rows),
    "mem_usage": lambda fleet, _, rows: fleet.derived.memory_really_free_percent.take(rows),
    "cpu_load": lambda fleet, _, rows: fleet.derived.load_free_percent.take(rows),
    "data_disk_usage": lambda fleet, _, rows: fleet.derived.data_disk_free_percent.take(rows),
    "storage_disk_usage": lambda fleet, _, rows: fleet.derived.storage_disk_free_percent.take(rows),
    "sys_disk_usage": lambda fleet, _, rows: fleet.derived.system_disk_free_percent.take(rows),
}
ALIASES: Final = {"cpu_usage": "cpu_util"}
DEFAULT_FACTORS: Final = ("mvm_num", "local_create_num", "cpu_util", "quota_mem_usage")


def _one_spelling(factors: dict[str, float]) -> dict[str, float]:
    for alias, name in ALIASES.items():
        if alias in factors and name in factors:
            raise ValueError(f'"{alias}" and "{name}" are the same factor')
    return {ALIASES.get(name, name): weight for name, weight in factors.items()}


class RealTimeWeightedAverageArgs(ScoreArgs):
    """Arguments of `real_time_weighted_average`."""

    factors: Annotated[Factors, only_known(FACTORS | ALIASES), AfterValidator(_one_spelling)] = (
        dict.fromkeys(DEFAULT_FACTORS, 1.0)
    )
    """What is averaged: a list of names, or a map from name to weight."""

    @override
    def build(self) -> RealTimeWeightedAverage:
        """Return the score; factors of weight 0 are left out."""
        largest = max(self.factors.values(), default=0.0)
        weights = {name: weight / largest for name, weight in self.factors.items() if weight > 0}
        return RealTimeWeightedAverage(
            tuple((FACTORS[name], weight) for name, weight in weights.items()),
            1.0 / sum(weights.values()) if weights else 0.0,
        )


@dataclass(frozen=True, slots=True)
class RealTimeWeightedAverage:
    """Rates a node by the mean of its factors; weights are relative to the largest."""

    factors: tuple[tuple[FreePercent, float], ...]
    scale: float
    """1 / the sum of all weights."""
    name: str = "real_time_weighted_average"

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats | NotApplicable:
        """Return one score for each row; see the module."""
        if not self.factors:
            return NOT_APPLICABLE
        (first, weight), *others = self.factors
        total = first(fleet, request, rows)
        highest = 100.0 * weight
        if weight != 1.0:
            total *= weight
        for free, weight in others:
            part = free(fleet, request, rows)
            if weight != 1.0:
                part *= weight
            total += part
            highest += 100.0 * weight
        total *= self.scale
        if highest * self.scale > 100.0:  # else no sum of less is rounded to more either
            np.minimum(total, 100.0, out=total)
        return total
