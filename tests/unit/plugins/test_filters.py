"""The built-in filters that a Profile can list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.builders import a_node, a_request, a_snapshot

from cubesched.core.answers import settled_mask
from cubesched.plugins.registry import build_filter

NODES = [
    a_node("a100", labels={"gpu": "a100", "zone": "a"}),
    a_node("empty", labels={"gpu": "", "zone": "b"}),
    a_node("false", labels={"gpu": "false", "zone": "a"}),
    a_node("none"),
    a_node("zero", labels={"gpu": "0"}),
]
ALL = [node.name for node in NODES]


def kept(name: str, args: dict[str, Any], **request_facts: Any) -> list[str]:
    fleet = a_snapshot(NODES)
    mask = settled_mask(
        build_filter(name, args), fleet, a_request(**request_facts), keeps_failed=False
    )
    return ALL if mask is None else [fleet.names[row] for row in np.flatnonzero(mask).tolist()]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ({"zone": "a"}, ["a100", "false"]),
        ({"zone": "a", "gpu": "a100"}, ["a100"]),
        ({"zone": "c"}, []),
        ({"rack": "1"}, []),
    ],
)
def test_node_labels_wants_every_label(labels: dict[str, str], names: list[str]) -> None:
    assert kept("node_labels", {"matchLabels": labels}) == names


def test_an_ordinary_request_stays_off_scarce_nodes() -> None:
    assert kept("scarce_resource", {}) == ["false", "none", "zero"]


def test_a_request_that_selects_the_scarce_label_may_use_them() -> None:
    assert kept("scarce_resource", {}, node_selector=(("gpu", "a100"),)) == ALL


def test_each_scarce_label_must_be_selected_by_name() -> None:
    args = {"labels": ["gpu", "zone"]}

    assert kept("scarce_resource", args) == ["none", "zero"]
    assert kept("scarce_resource", args, node_selector=(("zone", "a"),)) == [
        "false",
        "none",
        "zero",
    ]


def test_a_label_that_no_node_carries_costs_nothing() -> None:
    flt = build_filter("scarce_resource", {"labels": ["fpga"]})

    assert flt.keep(a_snapshot(NODES), a_request()) is None
