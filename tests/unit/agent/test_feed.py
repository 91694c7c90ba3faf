from __future__ import annotations

from tests.unit.agent.test_requests import stored
from tests.unit.agent.worlds import placed

from cubesched.agent.feed import SharedFeed
from cubesched.agent.requests import OwnRequests, Position


class Feed:
    """A shared feed for two nodes."""

    def __init__(self) -> None:
        position = Position()
        self.changed: list[tuple[str, str]] = []
        self.nodes = {
            name: OwnRequests(
                name,
                changed=lambda uid, name=name: self.changed.append((name, uid)),  # type: ignore[misc]
                listed=lambda: None,
                position=position,
            )
            for name in ("n1", "n2")
        }
        self.feed = SharedFeed(self.nodes, position)

    def held(self) -> dict[str, set[str]]:
        return {name: {entry.uid for entry in own} for name, own in self.nodes.items()}

    def take_list(self, version: int, *objects: bytes) -> None:
        self.feed.reset()
        for raw in objects:
            self.feed.seen(raw)
        self.feed.complete(version)


def test_a_list_is_handed_out_by_node() -> None:
    feed = Feed()

    feed.take_list(
        10,
        stored("a", 1, placed("Bound", node="n1")),
        stored("b", 2, placed("Bound", node="n2")),
        stored("c", 3, placed("Bound", node="elsewhere")),
        stored("d", 4, {"phase": "Pending"}),
    )

    assert feed.held() == {"n1": {"a"}, "n2": {"b"}}


def test_a_request_that_moves_leaves_one_node_and_joins_the_other() -> None:
    feed = Feed()
    feed.take_list(10, stored("a", 1, placed("Reserved", node="n1")))

    feed.feed.event("MODIFIED", stored("a", 11, placed("Reserved", node="n2")), 11)

    assert feed.held() == {"n1": set(), "n2": {"a"}}
    assert feed.changed[-2:] == [("n1", "a"), ("n2", "a")]


def test_a_deleted_request_leaves_its_node() -> None:
    feed = Feed()
    feed.take_list(10, stored("a", 1, placed("Running", node="n1")))

    feed.feed.event("DELETED", stored("a", 11, placed("Running", node="n1")), 11)

    assert feed.held() == {"n1": set(), "n2": set()}


def test_every_node_is_at_the_position_of_the_one_stream() -> None:
    feed = Feed()
    feed.take_list(10)

    feed.feed.event("ADDED", stored("a", 11, placed("Bound", node="n1")), 11)
    assert {own.applied_version for own in feed.nodes.values()} == {11}
    feed.feed.progress(15)

    assert {own.applied_version for own in feed.nodes.values()} == {15}


def test_a_restored_server_starts_over_on_every_node() -> None:
    feed = Feed()
    feed.take_list(
        100,
        stored("a", 90, placed("Running", node="n1")),
        stored("b", 91, placed("Running", node="n2")),
    )

    feed.take_list(50, stored("b", 40, placed("Reserved", node="n2")))

    assert feed.held() == {"n1": set(), "n2": {"b"}}
    assert feed.nodes["n2"].get("b") is not None
    assert {own.applied_version for own in feed.nodes.values()} == {50}


def test_a_list_under_way_or_an_object_that_may_be_anywhere_ends_exactness_for_all() -> None:
    feed = Feed()
    position = feed.nodes["n2"].position
    anywhere = {"phase": "Bound", "nodeName": 7}
    assert not position.is_listed

    feed.take_list(10, stored("a", 1, placed("Bound", node="n1")), stored("b", 2, anywhere))
    assert position.is_listed
    assert position.blind == {"b"}

    feed.feed.event("MODIFIED", stored("b", 11, placed("Bound", node="n1")), 11)
    assert position.blind == set()

    feed.feed.event("ADDED", stored("c", 12, anywhere), 12)
    feed.feed.event("DELETED", stored("c", 13, anywhere), 13)
    assert position.blind == set()

    feed.feed.reset()
    assert not position.is_listed
