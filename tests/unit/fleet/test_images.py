"""Images by node: equal to a recount, a column only where one is asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.fleet.objects import GIB, a_node_object

from cubesched.fleet import images as module
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.images import Images

NAMES = ("a", "b", "c")


def a_fleet(*nodes: bytes) -> Fleet:
    fleet = Fleet(monotonic=lambda: 0.0, wall=lambda: 0.0)
    fleet.reset()
    for node in nodes:
        fleet.seen(node)
    fleet.complete(1)
    return fleet


def holding(name: str = "n1", *, uid: str = "", **images: int) -> bytes:
    return a_node_object(name, uid=uid, images=images)


def columns(fleet: Fleet) -> dict[str, list[int]]:
    return {image: column.tolist() for image, column in fleet.snapshot.images.items()}


def test_a_column_holds_what_each_node_reports() -> None:
    fleet = a_fleet(holding("n1", a=5 * GIB, b=7), holding("n2", a=6), holding("n3"))

    assert columns(fleet) == {"a": [5 * GIB, 6, 0], "b": [7, 0, 0]}
    assert fleet.snapshot.images.get("c") is None


def test_a_change_of_one_node_is_seen_in_columns_made_before_and_after() -> None:
    fleet = a_fleet(holding("n1", a=1, b=2), holding("n2", a=3))
    made = fleet.snapshot.images["a"]

    fleet.event("MODIFIED", holding("n1", a=9, c=4), 2)

    assert fleet.snapshot.images["a"] is made
    assert columns(fleet) == {"a": [9, 3], "c": [4, 0]}

    fleet.event("MODIFIED", holding("n1"), 3)
    fleet.event("MODIFIED", holding("n2"), 4)
    assert columns(fleet) == {}


def test_columns_follow_nodes_that_come_go_and_are_made_anew() -> None:
    fleet = a_fleet(holding("n2", a=2), holding("n4", a=4))
    assert columns(fleet) == {"a": [2, 4]}

    fleet.event("ADDED", holding("n3", a=3), 2)
    assert columns(fleet) == {"a": [2, 3, 4]}

    fleet.event("DELETED", holding("n2", a=2), 3)
    assert columns(fleet) == {"a": [3, 4]}

    fleet.event("MODIFIED", holding("n3", uid="another"), 4)
    assert columns(fleet) == {"a": [0, 4]}

    fleet.event("DELETED", holding("n4"), 5)
    assert columns(fleet) == {}


def test_nodes_that_hold_the_same_image_share_what_is_kept_of_it() -> None:
    fleet = a_fleet(holding("n1", a=5 * GIB), holding("n2", a=5 * GIB))

    [one], [other] = (fleet.records[name].images for name in ("n1", "n2"))
    assert one is other


def test_only_so_many_columns_are_kept_and_the_latest_asked_for_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_COLUMNS", 2)
    images = Images({"n1": 0})
    images.put("n1", (("a", 1), ("b", 2), ("c", 3)))

    kept, dropped = images["a"], images["b"]
    assert images["a"] is kept
    assert images["c"].tolist() == [3]

    assert images["a"] is kept
    assert images["b"] is not dropped
    assert images["b"].tolist() == [2]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["n1", "n2", "n3"]),
            st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3)),
            st.sampled_from([*NAMES, ""]),
        ),
        max_size=12,
    )
)
def test_columns_equal_a_recount_whatever_is_put_and_asked_when(
    steps: list[tuple[str, dict[str, int], str]],
) -> None:
    row_of = {"n1": 0, "n2": 1, "n3": 2}
    images, held = Images(row_of), dict[str, dict[str, int]]()
    for node, holds, asked in steps:
        images.put(node, tuple(sorted(holds.items())))
        held[node] = holds
        images.get(asked)

    for image in NAMES:
        expected = [held.get(node, {}).get(image, 0) for node in row_of]
        found = images.get(image)
        np.testing.assert_array_equal([0, 0, 0] if found is None else found, expected)
        assert (image in images) == any(expected)
