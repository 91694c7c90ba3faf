"""Asking an expression, and building fleets to ask it about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.builders import a_request

from cubesched.core.errors import PluginArgsInvalid
from cubesched.core.pipeline import Judged
from cubesched.core.request import Request
from cubesched.core.snapshot import Snapshot
from cubesched.plugins.cel.plugins import expr_filter, expr_score
from cubesched.plugins.cel.program import compile_expression


def verdicts(text: str, fleet: Snapshot, request: Request | None = None) -> list[Any]:
    """Return for each node True, False, or the error of a filter as text."""
    answer = expr_filter("f", text).keep(fleet, request or a_request())
    if answer is None:
        return [True] * len(fleet)
    if not isinstance(answer, Judged):
        return list(answer.tolist())
    failed, keep = answer.failed.tolist(), answer.keep.tolist()
    return [answer.error if failed[row] else keep[row] for row in range(len(fleet))]


def scores(text: str, fleet: Snapshot, request: Request | None = None) -> list[float]:
    """Return the score of each node; raises PluginError where the expression is an error."""
    rows = np.arange(len(fleet))
    answer = expr_score("s", text).score(fleet, request or a_request(), rows)
    assert isinstance(answer, np.ndarray)
    assert answer.dtype == np.float64
    return list(answer.tolist())


def problems(text: str, *, score: bool = False) -> list[str]:
    """Return what is wrong with an expression: `1:6 undefined field ...`."""
    with pytest.raises(PluginArgsInvalid) as caught:
        (expr_score if score else expr_filter)("f", text)
    return [f"{path.removeprefix('expr ')} {text}" for path, text in caught.value.problems]


def forget_programs() -> None:
    """Let the next compilation be a real one."""
    compile_expression.cache_clear()
