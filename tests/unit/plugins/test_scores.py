"""Every score stays within its bounds, whatever a node is like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.unit.builders import GIB, a_node, a_request, a_snapshot

from cubesched.core.answers import ask_scores
from cubesched.core.pipeline import NotApplicable
from cubesched.plugins.registry import SCORES, build_score


def score(
    name: str, args: Mapping[str, object], node: Mapping[str, Any], **request_facts: Any
) -> float | None:
    fleet = a_snapshot([a_node(**node)])
    plugin, request = build_score(name, args), a_request(**request_facts)
    with np.errstate(all="ignore"):
        answer = ask_scores(plugin, fleet, request, np.array([0]))
    return None if isinstance(answer, NotApplicable) else float(answer[0])


@pytest.mark.parametrize("name", list(SCORES))
def test_a_node_over_its_shrunk_quota_still_scores_within_bounds(name: str) -> None:
    node = {
        "cpu_limit_millis": 4000,
        "cpu_used_millis": 8000,
        "memory_limit_bytes": GIB,
        "memory_used_bytes": 3 * GIB,
        "sandboxes": 5000,
        "creating": 500,
        "creating_ledger": 500,
        "cpu_util_percent": 400.0,
        "templates": ("t",),
    }

    value = score(name, {}, node, template_id="t", cpu_millis=0, memory_bytes=0)

    assert value is not None
    assert 0.0 <= value <= 100.0


@pytest.mark.parametrize("name", list(SCORES))
def test_a_node_of_nothing_scores_within_bounds(name: str) -> None:
    node = {
        "cpu_limit_millis": 0,
        "memory_limit_bytes": 0,
        "sandbox_limit": 0,
        "create_limit": 0,
        "cpus": 0.0,
    }

    value = score(name, {}, node, template_id="t", cpu_millis=0, memory_bytes=0)

    assert value is not None
    assert 0.0 <= value <= 100.0
