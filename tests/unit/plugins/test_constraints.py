"""Each constraint: what it keeps, and that it costs nothing when a request does not use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.unit.builders import NodeFacts, a_node, a_request, a_snapshot

from cubesched.core.answers import ask_reasons, settled_mask
from cubesched.core.request import Toleration
from cubesched.core.snapshot import Taint
from cubesched.plugins import registry

CONSTRAINTS = {constraint.name: constraint for constraint in registry.CONSTRAINTS}
NO_SCHEDULE = Taint("dedicated", "a", "NoSchedule")
NO_EXECUTE = Taint("dedicated", "a", "NoExecute")
PREFER_NOT = Taint("dedicated", "a", "PreferNoSchedule")


def kept(constraint: str, nodes: list[Any], **request_facts: Any) -> list[str] | None:
    fleet = a_snapshot(nodes)
    mask = settled_mask(
        CONSTRAINTS[constraint], fleet, a_request(**request_facts), keeps_failed=False
    )
    return None if mask is None else [fleet.names[row] for row in np.flatnonzero(mask).tolist()]


@pytest.mark.parametrize("constraint", list(CONSTRAINTS))
def test_an_unused_constraint_answers_none(constraint: str) -> None:
    assert kept(constraint, [a_node("a"), a_node("b")]) is None


def test_a_node_that_refused_is_out_and_a_gone_one_is_skipped() -> None:
    nodes = [a_node("a"), a_node("b")]

    assert kept("refused", nodes, refused_nodes=("a", "gone")) == ["b"]


@pytest.mark.parametrize(
    ("wanted", "names"), [("gpu", ["any", "gpu"]), ("cubebox", ["any"]), ("odd", ["any"])]
)
def test_a_node_that_names_a_type_accepts_only_that_one(wanted: str, names: list[str]) -> None:
    nodes = [a_node("any"), a_node("gpu", instance_type="gpu")]

    assert kept("instance_type", nodes, instance_type=wanted) == names


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ((("zone", "a"),), ["one", "two"]),
        ((("zone", "a"), ("disk", "ssd")), ["two"]),
        ((("zone", ""),), ["empty"]),
        ((("zone", "no such value"),), []),
        ((("no such key", "a"),), []),
    ],
)
def test_the_selector_wants_every_label(
    selector: tuple[tuple[str, str], ...], names: list[str]
) -> None:
    nodes = [
        a_node("bare"),
        a_node("empty", labels={"zone": ""}),
        a_node("one", labels={"zone": "a"}),
        a_node("two", labels={"zone": "a", "disk": "ssd"}),
    ]

    assert kept("node_selector", nodes, node_selector=selector) == names


@pytest.mark.parametrize(
    ("taints", "tolerations", "stays"),
    [
        ((NO_SCHEDULE,), (), False),
        ((NO_EXECUTE,), (), False),
        ((PREFER_NOT,), (), True),
        ((NO_SCHEDULE,), (Toleration(operator="Exists"),), True),
        ((NO_SCHEDULE,), (Toleration("dedicated", "Exists"),), True),
        ((NO_SCHEDULE,), (Toleration("other", "Exists"),), False),
        ((NO_SCHEDULE,), (Toleration("dedicated", "Equal", "a"),), True),
        ((NO_SCHEDULE,), (Toleration("dedicated", "Equal", "b"),), False),
        ((NO_SCHEDULE,), (Toleration("dedicated", "Exists", "", "NoExecute"),), False),
        ((NO_SCHEDULE, NO_EXECUTE), (Toleration("dedicated", "Equal", "a", "NoExecute"),), False),
        ((NO_SCHEDULE, NO_EXECUTE), (Toleration("dedicated", "Equal", "a"),), True),
    ],
)
def test_taints_repel_as_in_kubernetes(
    taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...], stays: bool
) -> None:
    nodes = [a_node("plain"), a_node("tainted", taints=taints)]

    names = kept("taints", nodes, tolerations=tolerations)

    assert (names is None or "tainted" in names) is stays
    assert names is None or "plain" in names


@pytest.mark.parametrize("distinct", [1, 8, 9, 40])
def test_many_distinct_taint_sets_are_told_apart(distinct: int) -> None:
    nodes = [a_node("plain")] + [
        a_node(f"tainted-{number:02}", taints=(Taint("t", str(number), "NoSchedule"),))
        for number in range(distinct)
    ]

    names = kept("taints", nodes, tolerations=(Toleration("t", "Equal", "0"),))

    assert names is None or names == ["plain", "tainted-00"]
    assert (names is None) is (distinct == 1)


@pytest.mark.parametrize("constraint", list(CONSTRAINTS))
def test_a_constraint_counts_all_rows_under_one_text(constraint: str) -> None:
    fleet = a_snapshot([a_node("a"), a_node("b")])

    (reason,) = ask_reasons(CONSTRAINTS[constraint], fleet, a_request(), np.arange(2))

    assert reason[0]
    assert reason[1] == 2
    assert CONSTRAINTS[constraint].nearest(fleet, a_request(), np.arange(2)) is None


def nearest(constraint: str, nodes: Sequence[NodeFacts], **asked: Any) -> tuple[str, str] | None:
    fleet = a_snapshot(nodes)
    rows = np.arange(len(fleet))
    miss = CONSTRAINTS[constraint].nearest(fleet, a_request(**asked), rows)
    return (fleet.names[miss.row], miss.text) if miss else None


def test_the_nearest_by_labels_lacks_the_fewest_and_says_which() -> None:
    nodes = [a_node("a"), a_node("b", labels={"zone": "y", "disk": "ssd"})]
    selector = (("disk", "ssd"), ("gpu", "1"), ("zone", "x"))

    assert nearest("node_selector", nodes, node_selector=selector) == (
        "b",
        "no label gpu, not gpu=1; label zone=y, not zone=x",
    )


def test_the_nearest_by_taints_has_the_fewest_that_are_not_tolerated() -> None:
    gpu, team = Taint("gpu", "", "NoSchedule"), Taint("team", "x", "NoExecute")
    nodes = [a_node("a", taints=(gpu, team)), a_node("b", taints=(team,))]

    assert nearest("taints", nodes) == ("b", "taint team=x:NoExecute")
    tolerant = Toleration("team", "Exists")
    assert nearest("taints", nodes[:1], tolerations=(tolerant,)) == ("a", "taint gpu:NoSchedule")


def test_a_node_of_another_type_says_which_it_takes() -> None:
    nodes = [a_node("a", instance_type="gpu")]

    assert nearest("instance_type", nodes) == ("a", "takes only gpu, not cubebox")
