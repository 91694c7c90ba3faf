"""Every node beside every stage: who is out where and why, who fits and how it is rated.

What a decision counts, told row by row; for people who ask, never on the path of a decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cubesched.core.answers import ask_nearest, ask_reasons, settled_mask
from cubesched.core.blending import Rating, final_scores, rate
from cubesched.core.cycle import at_once, failure_policy, stages
from cubesched.core.derived import Derived
from cubesched.core.errors import PluginError
from cubesched.core.pipeline import Filter, FilterFailure, Miss, Pipeline
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Floats, Ints, Snapshot

FITS = -1


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One guard, constraint or filter, and its verdict on every node."""

    kind: str
    plugin: Filter
    mask: Bools
    """Which nodes it keeps; all where it failed."""
    failure: str = ""
    """Why it could not answer."""


@dataclass(frozen=True, slots=True, eq=False)
class Inspection:
    """All verdicts on one version of the fleet."""

    fleet: Snapshot
    request: Request
    stages: tuple[Stage, ...]
    first: Ints
    """For each row the index of the first stage that keeps it out; FITS where none does."""
    rows: Ints
    """The rows that fit."""
    ratings: tuple[Rating, ...]
    scores: Floats
    """One score for each of `rows`."""
    failure: str = ""
    """Why the scores could not be told."""

    def ranked(self) -> Ints:
        """Return all rows: those that fit by score, then those that came furthest.

        Among those that the same stage kept out the nearest miss comes first, then by name.
        """
        best = self.rows[np.argsort(-self.scores, kind="stable")]
        parts = [best]
        for index in reversed(range(len(self.stages))):
            rows = np.flatnonzero(self.first == index)
            miss = self._nearest(index, rows) if rows.size else None
            if miss is not None:
                parts.append(np.array([miss.row]))
                rows = rows[rows != miss.row]
            parts.append(rows)
        return np.concatenate(parts)

    def _nearest(self, index: int, rows: Ints) -> Miss | None:
        return ask_nearest(self.stages[index].plugin, self.fleet, self.request, rows)

    def why(self, index: int, row: int) -> str:
        """Say in a few words, with numbers where there are any, why a stage rejects a row."""
        plugin, rows = self.stages[index].plugin, np.array([row])
        miss = ask_nearest(plugin, self.fleet, self.request, rows)
        if miss is not None:
            return miss.text
        return ask_reasons(plugin, self.fleet, self.request, rows)[0][0]

    def position(self, row: int) -> int:
        """Return the place of a row that fits among `rows`."""
        return int(np.searchsorted(self.rows, row))


def inspect(fleet: Snapshot, request: Request, pipeline: Pipeline) -> Inspection:
    """Ask every stage about every node, and every score about those that fit.

    Plugins that are waited for are left out: they do not run where people ask.
    """
    pipeline = pipeline.local()
    verdicts = tuple(
        _verdict(
            kind,
            stage,
            fleet,
            request,
            keeps_failed=failure_policy(pipeline, kind) is FilterFailure.FAIL_OPEN,
        )
        for kind, stage in stages(pipeline)
    )
    first = np.full(len(fleet), FITS, dtype=np.int64)
    for index, verdict in enumerate(verdicts):
        first[(first == FITS) & ~verdict.mask] = index
    rows = np.flatnonzero(first == FITS)
    ratings, failure = _rated(fleet, request, pipeline, rows)
    scores = final_scores(fleet, rows, ratings, pipeline.adjustments)
    return Inspection(fleet, request, verdicts, first, rows, ratings, scores, failure)


def _verdict(
    kind: str, stage: Filter, fleet: Snapshot, request: Request, *, keeps_failed: bool
) -> Stage:
    everyone = np.ones(len(fleet), dtype=np.bool_)
    try:
        mask = settled_mask(stage, fleet, request, keeps_failed=keeps_failed)
    except PluginError as error:
        return Stage(kind, stage, everyone, error.message)
    return Stage(kind, stage, everyone if mask is None else mask)


def _rated(
    fleet: Snapshot, request: Request, pipeline: Pipeline, rows: Ints
) -> tuple[tuple[Rating, ...], str]:
    if not rows.size:
        return (), ""
    try:
        return tuple(at_once(rate(fleet, request, pipeline, rows))), ""
    except PluginError as error:
        return (), str(error)


def only(fleet: Snapshot, row: int) -> Snapshot:
    """Return a fleet of one of the nodes."""
    one, rows, name = copy(fleet), slice(row, row + 1), fleet.names[row]
    for field in fields(fleet):
        value = getattr(fleet, field.name)
        if isinstance(value, np.ndarray):
            setattr(one, field.name, value[rows])
    one.names, one.row_of = [name], {name: 0}
    one.labels, one.templates = _cut(fleet.labels, rows), _cut(fleet.templates, rows)
    one.template_creating = _cut(fleet.template_creating, rows)
    columns = {field.name: getattr(fleet.derived, field.name)[rows] for field in fields(Derived)}
    one.derived = Derived(**columns)
    return one


def _cut(columns: Mapping[str, Any], rows: slice) -> dict[str, Any]:
    return {key: column[rows] for key, column in columns.items()}


@dataclass(frozen=True, slots=True)
class Count:
    """How many nodes one stage was the first to reject, and why."""

    stage: Stage
    rejected: int
    texts: Sequence[tuple[str, int]]
    nearest: Miss | None


def counted(inspection: Inspection) -> list[Count]:
    """Return the stages that rejected any node, in their order."""
    result = []
    fleet, request = inspection.fleet, inspection.request
    for index, stage in enumerate(inspection.stages):
        rows = np.flatnonzero(inspection.first == index)
        if rows.size:
            texts = ask_reasons(stage.plugin, fleet, request, rows)
            miss = ask_nearest(stage.plugin, fleet, request, rows)
            result.append(Count(stage, int(rows.size), texts, miss))
    return result
