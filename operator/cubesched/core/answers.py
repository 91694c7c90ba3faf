"""A plugin's answer, checked: whatever a plugin raises or returns wrongly becomes a PluginError.

The only broad excepts of the core stand here, since plugins may be anybody's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cubesched.core.errors import PluginContractBreach, PluginError
from cubesched.core.pipeline import (
    Filter,
    Judged,
    Miss,
    NotApplicable,
    Score,
    WaitingFilter,
    WaitingScore,
)
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Floats, Ints, Snapshot

_BOOL, _DOUBLE = np.dtype(np.bool_), np.dtype(np.float64)


def ask_mask(stage: Filter, fleet: Snapshot, request: Request) -> Bools | Judged | None:
    """Return one bool a node, or None when every node stays."""
    try:
        answer = stage.keep(fleet, request)
    except PluginError:
        raise
    except Exception as error:
        raise _failure(stage.name, error) from error
    # The same as below for what nearly all answers are; on the path of every decision.
    if answer is None or (
        type(answer) is np.ndarray and answer.dtype is _BOOL and answer.shape == fleet.safety.shape
    ):
        return answer
    _check_mask(stage.name, answer, len(fleet))
    return answer


async def await_mask(
    stage: WaitingFilter, fleet: Snapshot, request: Request, rows: Ints
) -> Bools | Judged:
    """Return one bool for each of `rows`."""
    try:
        answer = await stage.keep(fleet, request, rows)
    except PluginError:
        raise
    except Exception as error:
        raise _failure(stage.name, error) from error
    _check_mask(stage.name, answer, rows.size)
    return answer


def settled_mask(
    stage: Filter, fleet: Snapshot, request: Request, *, keeps_failed: bool
) -> Bools | None:
    """Return one bool a node as `ask_mask` does; `keeps_failed`: also nodes it failed on stay."""
    answer = ask_mask(stage, fleet, request)
    if not isinstance(answer, Judged):
        return answer
    return answer.keep | answer.failed if keeps_failed else answer.keep & ~answer.failed


def ask_scores(
    plugin: Score, fleet: Snapshot, request: Request, rows: Ints
) -> Floats | NotApplicable:
    """Return one score in 0..100 for each of `rows` (at least one), or NOT_APPLICABLE.

    The caller keeps numpy from warning of divisions by zero.
    """
    try:
        scores = plugin.score(fleet, request, rows)
    except PluginError:
        raise
    except Exception as error:
        raise _failure(plugin.name, error) from error
    return _checked_scores(plugin.name, scores, rows.size)


async def await_scores(
    plugin: WaitingScore, fleet: Snapshot, request: Request, rows: Ints
) -> Floats | NotApplicable:
    """Return one score in 0..100 for each of `rows` (at least one), or NOT_APPLICABLE."""
    try:
        scores = await plugin.score(fleet, request, rows)
    except PluginError:
        raise
    except Exception as error:
        raise _failure(plugin.name, error) from error
    return _checked_scores(plugin.name, scores, rows.size)


def _checked_scores(
    plugin: str, scores: Floats | NotApplicable, size: int
) -> Floats | NotApplicable:
    if isinstance(scores, NotApplicable):
        return scores
    if not _is_column(scores, _DOUBLE, size):
        raise PluginContractBreach(plugin, f"the answer is not {size} doubles")
    # In one pass: as bits, all that is negative or NaN is larger than what is within 0-100.
    if not 0.0 < scores[scores.view(np.uint64).argmax()] <= 100.0:
        _check_range(plugin, scores)
    return scores


def ask_reasons(
    stage: Filter, fleet: Snapshot, request: Request, rows: Ints
) -> Sequence[tuple[str, int]]:
    """Return (text, number) pairs that add up to len(rows), whatever the plugin does."""
    try:
        pairs = list(stage.reasons(fleet, request, rows))
        if sum(number for _, number in pairs) == rows.size:
            return pairs
    except Exception:  # noqa: S110 - the text is a courtesy; the count is still right
        pass
    return [(f"rejected by {stage.name}", int(rows.size))]


def ask_nearest(stage: Filter, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
    """Return the nearest miss, None where the plugin cannot tell."""
    try:
        return stage.nearest(fleet, request, rows)
    except Exception:  # the nearest miss is a courtesy; its absence is not an error
        return None


def _check_range(plugin: str, scores: Floats) -> None:
    # Asked as "is it inside", never as "is it outside": a NaN is neither below 0 nor above 100.
    # argmin and argmax find a NaN first.
    low, high = scores[scores.argmin()], scores[scores.argmax()]
    if not (low >= 0.0 and high <= 100.0):
        bad = low if not low >= 0.0 else high
        raise PluginContractBreach(plugin, f"score {bad:g} is not within 0-100")


def _check_mask(plugin: str, answer: Bools | Judged, size: int) -> None:
    masks = (answer.keep, answer.failed) if isinstance(answer, Judged) else (answer,)
    if not all(_is_column(mask, _BOOL, size) for mask in masks):
        raise PluginContractBreach(plugin, f"the mask is not {size} bools")


def _failure(plugin: str, error: Exception) -> PluginError:
    return PluginError(plugin, f"{type(error).__name__}: {error}")


def _is_column(value: object, dtype: np.dtype[Any], size: int) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == dtype and value.shape == (size,)
