"""A plugin's answer, checked: whatever a plugin raises or returns wrongly becomes a PluginError.

The only broad excepts of the core stand here, since plugins may be anybody's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cubesched.core.errors import PluginContractBreach, PluginError
from cubesched.core.pipeline import Filter, Miss, NotApplicable, Score
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Floats, Ints, Snapshot

_BOOL, _DOUBLE = np.dtype(np.bool_), np.dtype(np.float64)


def ask_mask(stage: Filter, fleet: Snapshot, request: Request) -> Bools | None:
    """Return one bool a node, or None when every node stays."""
    try:
        mask = stage.keep(fleet, request)
    except PluginError:
        raise
    except Exception as error:
        raise _failure(stage.name, error) from error
    if mask is not None and not _is_column(mask, _BOOL, len(fleet)):
        raise PluginContractBreach(stage.name, f"the mask is not {len(fleet)} bools")
    return mask


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
    if isinstance(scores, NotApplicable):
        return scores
    if not _is_column(scores, _DOUBLE, rows.size):
        raise PluginContractBreach(plugin.name, f"the answer is not {rows.size} doubles")
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


def _check_range(plugin: Score, scores: Floats) -> None:
    # Asked as "is it inside", never as "is it outside": a NaN is neither below 0 nor above 100.
    # argmin and argmax find a NaN first.
    low, high = scores[scores.argmin()], scores[scores.argmax()]
    if not (low >= 0.0 and high <= 100.0):
        bad = low if not low >= 0.0 else high
        raise PluginContractBreach(plugin.name, f"score {bad:g} is not within 0-100")


def _failure(plugin: str, error: Exception) -> PluginError:
    return PluginError(plugin, f"{type(error).__name__}: {error}")


def _is_column(value: object, dtype: np.dtype[Any], size: int) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == dtype and value.shape == (size,)
