from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.agent.worlds import NODE, placed

from cubesched.agent.requests import OwnRequests, order_of, rewritten, sandbox_of
from cubesched.fleet.entries import Entry, read_entry
from cubesched.fleet.sandboxes import sandbox_name, uid_in


def stored(uid: str, version: int, status: dict[str, Any] | None = None) -> bytes:
    metadata = {"uid": uid, "name": uid, "namespace": "ns", "resourceVersion": str(version)}
    spec = {"resources": {"cpu": "1", "memory": "1Gi"}, "templateID": "t"}
    return msgspec.json.encode(
        {"metadata": metadata, "spec": spec, "status": status or placed("Bound")}
    )


def entry(uid: str, version: int, status: dict[str, Any] | None = None) -> Entry:
    return read_entry(stored(uid, version, status))


class Own:
    """The table under test, and what it told."""

    def __init__(self) -> None:
        self.changed: list[str] = []
        self.lists = 0
        self.table = OwnRequests(NODE, changed=self.changed.append, listed=self._listed)

    def _listed(self) -> None:
        self.lists += 1

    def take_list(self, version: int, *objects: bytes) -> None:
        self.table.reset()
        for raw in objects:
            self.table.seen(raw)
        self.table.complete(version)

    def uids(self) -> set[str]:
        return {known.uid for known in self.table}


def test_a_list_replaces_what_was_known() -> None:
    own = Own()

    own.take_list(10, stored("a", 5), stored("b", 6))
    own.take_list(20, stored("b", 6), stored("c", 15))

    assert own.uids() == {"b", "c"}
    assert own.table.applied_version == 20
    assert own.lists == 2
    assert own.changed == ["a", "b", "a", "c"]


def test_events_move_requests_in_and_out_and_the_position_on() -> None:
    own = Own()
    own.take_list(10)

    own.table.event("ADDED", stored("a", 11), 11)
    own.table.event("MODIFIED", stored("a", 12, placed("Starting")), 12)
    assert (known := own.table.get("a")) is not None
    assert known.phase == "Starting"
    own.table.event("DELETED", stored("a", 13, placed("Starting")), 13)

    assert not own.uids()
    assert own.table.applied_version == 13


def test_a_bookmark_moves_the_position_and_never_back() -> None:
    own = Own()
    own.take_list(10)

    own.table.progress(50)
    own.table.progress(40)

    assert own.table.applied_version == 50


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_a_request_that_counts_nowhere_is_not_held(phase: str) -> None:
    own = Own()
    own.take_list(10, stored("a", 5))

    own.table.event("MODIFIED", stored("a", 11, {"phase": phase}), 11)

    assert not own.uids()


def test_a_request_on_another_node_is_not_held() -> None:
    own = Own()

    own.take_list(10, stored("a", 5, placed("Bound", node="other")))

    assert not own.uids()
    assert not own.changed


def test_an_acknowledged_write_is_not_taken_back_by_an_older_event_or_list() -> None:
    own = Own()
    own.take_list(10, stored("a", 5))

    assert own.table.acknowledge(entry("a", 12, placed("Starting")))
    own.table.event("MODIFIED", stored("a", 11), 11)
    own.take_list(11, stored("a", 11))

    assert (known := own.table.get("a")) is not None
    assert known.phase == "Starting"


def test_what_left_by_an_own_write_does_not_come_back_with_an_older_list() -> None:
    own = Own()
    own.take_list(10, stored("a", 9, placed("Starting")))

    assert not own.table.acknowledge(entry("a", 12, {"phase": "Pending"}))
    own.take_list(11, stored("a", 9, placed("Starting")))
    assert not own.uids()

    own.table.event("MODIFIED", stored("a", 12, {"phase": "Pending"}), 12)
    own.table.event("MODIFIED", stored("a", 13), 13)
    assert own.uids() == {"a"}


def test_the_reply_to_a_write_on_a_request_that_left_is_dropped() -> None:
    own = Own()
    own.take_list(10, stored("a", 5))
    own.table.event("DELETED", stored("a", 12), 12)

    assert not own.table.acknowledge(entry("a", 11, placed("Starting")))
    assert not own.uids()


def test_a_restored_server_starts_over_with_lower_versions() -> None:
    own = Own()
    own.take_list(100, stored("a", 90), stored("b", 95, placed("Running")))

    own.take_list(50, stored("a", 40, placed("Reserved")))

    assert own.table.applied_version == 50
    assert (known := own.table.get("a")) is not None
    assert (known.phase, known.version) == ("Reserved", 40)
    assert own.uids() == {"a"}


def test_an_unreadable_state_of_a_known_request_is_kept_as_such() -> None:
    own = Own()
    own.take_list(10, stored("a", 5))

    own.table.event("MODIFIED", stored("a", 11, {"phase": 7, "nodeName": []}), 11)

    assert (known := own.table.get("a")) is not None
    assert known.unreadable


def test_a_sandbox_is_named_by_request_and_reservation() -> None:
    running = entry("a", 5, placed("Running"))

    name = sandbox_of(running)

    assert name == sandbox_name("a", running.reservation_id) == order_of(running).sandbox
    assert uid_in(name) == "a"
    assert not uid_in("docker.service")
    assert order_of(running).template_id == "t"
    assert order_of(running).weight == running.weight


@pytest.mark.parametrize("phase", ["Reserved", "Bound"])
def test_an_unclaimed_request_entitles_to_no_sandbox(phase: str) -> None:
    assert not sandbox_of(entry("a", 5, placed(phase)))


@pytest.mark.parametrize(
    "phase", ["Reserved", "Bound", "Starting", "Running", "Paused", "Evicting"]
)
def test_what_is_to_be_resumed_keeps_the_name_that_it_was_created_under(phase: str) -> None:
    status = placed(phase)
    resuming = {**status, "reservation": {**status["reservation"], "resume": "sbr-a.first"}}

    assert sandbox_of(entry("a", 5, resuming)) == "sbr-a.first"
    assert order_of(entry("a", 5, resuming)).sandbox == "sbr-a.first"


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_nothing_is_entitled_to_a_sandbox_off_the_node(phase: str) -> None:
    status = {**placed("Running"), "phase": phase}

    assert not sandbox_of(entry("a", 5, status))


def test_a_rewritten_entry_is_what_the_server_would_send() -> None:
    before = entry("a", 5)

    after = rewritten(before, placed("Starting"), version=6)

    assert after == entry("a", 6, placed("Starting"))


def test_only_a_complete_list_is_all_there_is() -> None:
    own = Own()
    own.table.reset()
    own.table.seen(stored("a", 1))
    assert not own.table.position.is_listed

    own.table.complete(5)
    assert own.table.position.is_listed

    own.table.reset()  # the stream has ended
    assert not own.table.position.is_listed


def test_an_object_that_may_be_on_the_node_is_known_until_it_can_be_read() -> None:
    own = Own()
    odd = stored("a", 5, {"phase": "Bound", "nodeName": 7})
    own.take_list(5, odd)
    assert own.table.position.blind == {"a"}

    own.table.event("MODIFIED", stored("a", 6), 6)
    assert own.table.position.blind == set()

    own.table.event("MODIFIED", odd, 7)
    own.table.event("DELETED", odd, 8)
    assert own.table.position.blind == set()


def streamed(own: Own) -> dict[str, tuple[int, str]]:
    return {known.uid: (known.version, known.phase) for known in own.table.streamed()}


def test_what_the_stream_has_shown_is_known_beside_own_writes_that_are_ahead_of_it() -> None:
    own = Own()
    own.take_list(10, stored("a", 5, placed("Starting")), stored("b", 6, placed("Running")))

    own.table.acknowledge(entry("a", 12, placed("Running")))
    own.table.acknowledge(entry("b", 13, {"phase": "Pending"}))
    assert own.uids() == {"a"}
    assert streamed(own) == {"a": (5, "Starting"), "b": (6, "Running")}

    own.table.acknowledge(entry("a", 14, placed("Succeeded")))
    own.table.event("MODIFIED", stored("a", 12, placed("Running")), 12)
    assert own.uids() == set()
    assert streamed(own) == {"a": (12, "Running"), "b": (6, "Running")}

    own.table.event("DELETED", stored("b", 13, placed("Running")), 13)
    own.table.event("MODIFIED", stored("a", 14, {**placed("Succeeded")}), 14)
    assert streamed(own) == {}


def test_a_reply_after_its_event_is_not_ahead_of_the_stream() -> None:
    own = Own()
    own.take_list(10, stored("a", 5, placed("Starting")))

    own.table.event("MODIFIED", stored("a", 12, placed("Running")), 12)
    own.table.acknowledge(entry("a", 12, placed("Running")))

    assert streamed(own) == {"a": (12, "Running")}


def test_a_list_shows_the_stream_anew_and_own_writes_stay_ahead_of_it() -> None:
    own = Own()
    own.take_list(10, stored("a", 5, placed("Starting")), stored("b", 6))
    own.table.acknowledge(entry("a", 30, placed("Running")))
    own.table.acknowledge(entry("b", 31, {"phase": "Pending"}))

    own.take_list(20, stored("a", 5, placed("Starting")), stored("c", 15))

    assert own.uids() == {"a", "c"}
    assert streamed(own) == {"a": (5, "Starting"), "c": (15, "Bound")}
