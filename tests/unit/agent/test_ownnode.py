"""What the operator says of the agent's own node, and what an agent makes of silence."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from tests.unit.fleet.objects import as_json

from cubesched.agent.ownnode import NOTHING_SAID, OwnNode, SharedNodes


def a_node(name: str = "n1", *, uid: str = "u1", **effective: Any) -> bytes:
    status = {"conditions": [], **({"effectiveCapacity": effective} if effective else {})}
    return as_json({"metadata": {"name": name, "uid": uid}, "spec": {}, "status": status})


def listed(*objects: bytes) -> OwnNode:
    own = OwnNode("n1")
    own.reset()
    for raw in objects:
        own.seen(raw)
    own.complete(1)
    return own


def test_the_agent_knows_what_holds_on_its_node() -> None:
    own = listed(a_node(cpu="12", memory="32Gi", pausedResourceReleaseRatio=0.1))

    assert own.uid == "u1"
    assert own.effective.cpu == "12"
    assert own.paused_release_ratio == Fraction(1, 10)


@pytest.mark.parametrize(
    "said",
    [{}, {"cpu": "12"}, {"pausedResourceReleaseRatio": 2.0}, {"pausedResourceReleaseRatio": -1}],
    ids=str,
)
def test_nothing_is_released_while_no_usable_ratio_is_known(said: dict[str, Any]) -> None:
    assert listed(a_node(**said)).paused_release_ratio == 0


def test_a_field_that_cannot_be_read_is_taken_for_nothing_said() -> None:
    own = listed(a_node(cpu="12", pausedResourceReleaseRatio=0.5))

    own.event("MODIFIED", a_node(cpu="12", pausedResourceReleaseRatio="half"), 2)

    assert own.paused_release_ratio == 0
    assert own.uid == "u1"


def test_a_newer_word_is_taken_and_told_once() -> None:
    told: list[Fraction] = []
    own = listed(a_node(pausedResourceReleaseRatio=0.5))
    own.changed = lambda: told.append(own.paused_release_ratio)

    own.event("MODIFIED", a_node(pausedResourceReleaseRatio=0.75), 2)
    own.event("MODIFIED", a_node(pausedResourceReleaseRatio=0.75), 3)

    assert told == [Fraction(3, 4)]


@pytest.mark.parametrize("how", ["watched", "listed"])
def test_nothing_holds_any_more_when_the_node_is_deleted(how: str) -> None:
    own = listed(a_node(pausedResourceReleaseRatio=0.5))

    if how == "watched":
        own.event("DELETED", a_node(pausedResourceReleaseRatio=0.5), 2)
    else:
        own.reset()
        own.complete(2)

    assert (own.uid, own.effective) == ("", NOTHING_SAID)


def test_one_watch_serves_many_agents_each_with_its_own_node() -> None:
    nodes = {name: OwnNode(name) for name in ("n1", "n2", "n3")}
    shared = SharedNodes(nodes)
    shared.reset()
    shared.seen(a_node("n1", pausedResourceReleaseRatio=0.5))
    shared.seen(a_node("n2", pausedResourceReleaseRatio=0.25))
    shared.seen(as_json("not a node"))
    shared.complete(1)

    shared.event("MODIFIED", a_node("n2", pausedResourceReleaseRatio=0.75), 2)
    shared.event("DELETED", a_node("n1", pausedResourceReleaseRatio=0.5), 3)
    shared.event("ADDED", a_node("another"), 4)

    found = {name: str(node.paused_release_ratio) for name, node in nodes.items()}
    assert found == {"n1": "0", "n2": "3/4", "n3": "0"}


def test_a_list_drops_what_a_deleted_node_was_told() -> None:
    own = OwnNode("n1")
    shared = SharedNodes({"n1": own})
    shared.reset()
    shared.seen(a_node("n1", pausedResourceReleaseRatio=0.5))
    shared.complete(1)

    shared.reset()
    shared.complete(2)

    assert own.paused_release_ratio == 0
