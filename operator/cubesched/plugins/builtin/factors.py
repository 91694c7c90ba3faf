"""The factors of the weighted averages: what each leaves free on a node, in percent.

Source: CubeMaster's factors of these names; there the `req_` terms are ratios of 0..1 beside
factors of 0..100, here they are factors like the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
from pydantic import AfterValidator

from cubesched.core.pipeline import Score
from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.plugins.args import Factors, only_known
from cubesched.plugins.builtin.ratios import cpu_left, creates_left, memory_left
from cubesched.plugins.builtin.switched_off import SwitchedOff

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


def one_spelling(factor: str) -> str:
    """Return the name that stands for a factor and its aliases."""
    return ALIASES.get(factor, factor)


def _spelled_once(factors: dict[str, float]) -> dict[str, float]:
    for name in factors:
        if one_spelling(name) != name and one_spelling(name) in factors:
            raise ValueError(f'"{name}" and "{one_spelling(name)}" are the same factor')
    return {one_spelling(name): weight for name, weight in factors.items()}


AveragedFactors = Annotated[Factors, only_known(FACTORS | ALIASES), AfterValidator(_spelled_once)]
"""Factors of a weighted average with their weights, under one spelling each."""


def weighted_average(name: str, weights: Mapping[str, float]) -> Score:
    """Return the score of that name; factors of weight 0 are left out."""
    largest = max(weights.values(), default=0.0)
    if not largest:
        return SwitchedOff(name)
    shares = {factor: weight / largest for factor, weight in weights.items() if weight > 0}
    return WeightedAverage(
        name,
        tuple((FACTORS[factor], share) for factor, share in shares.items()),
        1.0 / sum(shares.values()),
    )


@dataclass(frozen=True, slots=True)
class WeightedAverage:
    """Rates a node by the mean of its factors; weights are relative to the largest."""

    name: str
    factors: tuple[tuple[FreePercent, float], ...]
    """At least one."""
    scale: float
    """1 / the sum of all weights."""

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        """Return one score for each row, sum of f * w over sum of w."""
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
