"""Plugins read attributes, so a test hands them anything that has those: no cluster is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from rack_plugins import MemoryHeadroom, MemoryHeadroomArgs, RackPace, RackPaceArgs

from cubesched.plugins.python import Request


def a_request(**facts: Any) -> Request:
    """Return a request of one core and 1 GiB."""
    ordinary = {"instance_type": "cubebox", "template_id": "", "cpu_millis": 1000}
    more = {"memory_bytes": 1 << 30, "system_disk_size": 0, "priority": 0, "labels": {}}
    return Request(**{**ordinary, **more, **facts})


def test_a_rack_in_which_many_are_starting_is_left_alone() -> None:
    plugin = RackPace(RackPaceArgs(most=10))
    fleet: Any = SimpleNamespace(
        label_codes=lambda _key: np.array([1, 1, 2, 0]),  # two nodes in one rack, one in none
        creating=np.array([6, 4, 9, 50]),
    )

    assert plugin.keep(fleet, a_request()).tolist() == [False, False, True, True]


def test_a_node_is_rated_by_the_memory_that_would_be_free() -> None:
    plugin = MemoryHeadroom(MemoryHeadroomArgs(reserve_mb=8192))
    node: Any = SimpleNamespace(mem_usage_mb=55 * 1024, mem_total_mb=128 * 1024)

    assert plugin.score_node(node, a_request()) == 50.0
    assert not plugin.applies(a_request(priority=1000))


def test_an_argument_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValidationError):
        RackPaceArgs.model_validate({"mots": 3})
