"""Statuses: only our fields change, and a transition leaves nothing of what it ended."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.fleet.objects import a_request_object

from cubesched.core.scheduler_settings import Confirmation
from cubesched.fleet.entries import Entry, Weight, read_entry
from cubesched.scheduling import statuses

WALL = 1_800_000_000.0
NOW = "2027-01-15T08:00:00Z"
READY = {"type": "Ready", "status": "False", "reason": "Starting"}


def an_entry(phase: str = "", node: str = "", **fields: Any) -> Entry:
    return read_entry(a_request_object(phase=phase, node=node, generation=3, **fields))


def reserved(
    entry: Entry, *, attempts: int = 4, confirmation: Confirmation = Confirmation.OPERATOR
) -> statuses.Status:
    return statuses.reserved(
        entry,
        node="n1",
        node_uid="uid-n1",
        reservation_id="id-2",
        replica="me",
        weight=Weight(1, 2, 3),
        profile="p",
        revision="rev",
        attempts=attempts,
        confirmation=confirmation,
        score=61.256,
        wall=WALL,
    )


def waiting(entry: Entry, **fields: Any) -> statuses.Status:
    defaults = {
        "reason": "Unschedulable",
        "message": "0/1 nodes",
        "explanation": "0/1 nodes\n  cpu: 1",
        "attempts": 2,
        "next_attempt": WALL + 60,
        "profile": "p",
        "revision": "rev",
        "wall": WALL,
    }
    return statuses.waiting(entry, **{**defaults, **fields})


def test_a_reservation_stamps_what_was_admitted() -> None:
    status = reserved(an_entry(explanation="why it waited", nextAttemptTime=NOW, other=1))

    assert status == {
        "phase": "Reserved",
        "nodeName": "n1",
        "profile": "p",
        "policyRevision": "rev",
        "attempts": 4,
        "other": 1,
        "reservation": {
            "id": "id-2",
            "replica": "me",
            "time": NOW,
            "nodeUID": "uid-n1",
            "cpuMillis": 1,
            "memoryBytes": 2,
            "diskBytes": 3,
        },
    }


def test_a_binding_replaces_the_reason_why_it_waited() -> None:
    pending = waiting(an_entry())
    entry = read_entry(a_request_object(**pending | {"node": "n1", "phase": "Reserved"}))

    status = statuses.bound(entry, line="score 50.00", score=50.0, wall=WALL + 5)

    assert (status["phase"], status["explanation"], status["score"]) == (
        "Bound",
        "score 50.00",
        "50.00",
    )
    assert status["conditions"] == [
        {
            "type": "Scheduled",
            "status": "True",
            "reason": "Bound",
            "message": "bound to n1",
            "observedGeneration": 1,
            "lastTransitionTime": "2027-01-15T08:00:05Z",
        }
    ]


def test_back_to_pending_nothing_of_the_placement_is_left() -> None:
    entry = an_entry(
        "Bound", "n1", sandboxID="s", endpoint="e", score="1.00", explanation="x", refusals=[]
    )

    status = statuses.pending(entry, reason="NodeLost", message="gone", wall=WALL)

    assert set(status) == {"phase", "conditions", "refusals"}
    assert status["phase"] == "Pending"


def test_a_failed_request_still_names_its_node() -> None:
    status = statuses.failed(
        an_entry("Running", "n1", nextAttemptTime=NOW),
        condition="Ready",
        reason="NodeLost",
        message="gone",
        wall=WALL,
    )

    assert (status["phase"], status["nodeName"], status["finishedTime"]) == ("Failed", "n1", NOW)
    assert "nextAttemptTime" not in status


def test_a_waiting_request_says_why_and_until_when() -> None:
    status = waiting(an_entry())

    assert (status["phase"], status["attempts"], status["nextAttemptTime"]) == (
        "Pending",
        2,
        "2027-01-15T08:01:00Z",
    )
    assert status["conditions"][0]["observedGeneration"] == 3


def test_what_no_longer_applies_is_taken_out_of_a_waiting_status() -> None:
    entry = an_entry(explanation="old", profile="old", policyRevision="old")

    status = waiting(entry, explanation="", profile="", revision="")

    assert not {"explanation", "profile", "policyRevision"} & status.keys()


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    old = {
        "type": "Scheduled",
        "status": "False",
        "reason": "NoNodes",
        "lastTransitionTime": "then",
    }
    status = waiting(an_entry(conditions=[old, READY]))

    assert [condition["type"] for condition in status["conditions"]] == ["Scheduled", "Ready"]
    assert status["conditions"][0]["lastTransitionTime"] == "then"
    assert status["conditions"][0]["reason"] == "Unschedulable"
    assert status["conditions"][1] == READY


def test_a_condition_gets_a_new_time_when_its_status_turns() -> None:
    old = {"type": "Scheduled", "status": "True", "reason": "Bound", "lastTransitionTime": "then"}
    status = waiting(an_entry(conditions=[old]))

    assert status["conditions"][0]["lastTransitionTime"] == NOW


@pytest.mark.parametrize("broken", [b"null", b"[]", b'"x"'])
def test_a_status_that_is_none_starts_empty(broken: bytes) -> None:
    entry = an_entry()
    object.__setattr__(entry, "status_raw", broken)

    assert statuses.copied(entry) == {}


def test_a_reservation_for_the_agent_says_so_and_carries_the_score() -> None:
    status = reserved(an_entry(), confirmation=Confirmation.AGENT)

    assert status["reservation"]["confirmation"] == "agent"
    assert status["score"] == "61.26"
    assert "explanation" not in status


def test_a_direct_binding_is_a_reservation_and_its_binding_in_one() -> None:
    entry = an_entry(conditions=[{"type": "Scheduled", "status": "False", "reason": "NoNodes"}])
    first = reserved(entry, confirmation=Confirmation.NONE)
    status = statuses.bound_directly(dict(first), line="a line", wall=WALL, generation=3)

    assert status["phase"] == "Bound"
    assert status["reservation"] == first["reservation"]
    assert status["reservation"]["confirmation"] == "none"
    assert (status["score"], status["explanation"]) == ("61.26", "a line")
    condition = status["conditions"][0]
    assert (condition["status"], condition["reason"]) == ("True", "Bound")
    assert condition["message"] == "bound to n1"


@pytest.mark.parametrize(("attempts", "stored"), [(1 << 31, (1 << 31) - 1), (-4, 0)])
def test_a_count_of_attempts_is_one_that_can_be_stored(attempts: int, stored: int) -> None:
    assert reserved(an_entry(), attempts=attempts)["attempts"] == stored
    assert waiting(an_entry(), attempts=attempts)["attempts"] == stored


PAUSED = {"resume": "sbr-uid-r1.id-0", "paused": {"cpuMillis": 500, "memoryBytes": 0}}


@pytest.mark.parametrize("phase", ["Reserved", "Bound"])
def test_a_new_sandbox_is_given_back_to_pending(phase: str) -> None:
    entry = an_entry(phase, "n1")

    status = statuses.given_back(entry, reason="NodeLost", message="gone", wall=WALL)

    assert status == statuses.pending(entry, reason="NodeLost", message="gone", wall=WALL)
    assert "nodeName" not in status


@pytest.mark.parametrize("phase", ["Reserved", "Bound"])
@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("Conflict", "InsufficientCapacity"),
        ("Refused", "InsufficientCapacity"),
        ("NodeLost", "NodeNotReady"),
        ("StartDeadline", "NodeNotReady"),
        ("Drained", "NodeNotReady"),
    ],
)
def test_one_to_be_resumed_is_given_back_to_paused_with_all_it_has(
    phase: str, reason: str, shown: str
) -> None:
    entry = an_entry(phase, "n1", reservation=PAUSED, sandboxID="s", conditions=[READY], other=1)

    status = statuses.given_back(entry, reason=reason, message="why", wall=WALL)

    blocked = status["conditions"].pop()
    assert status == {**statuses.copied(entry), "phase": "Paused"}
    assert (blocked["type"], blocked["status"]) == ("ResumeBlocked", "True")
    assert (blocked["reason"], blocked["message"]) == (shown, "why")


# What is said of a node that is silent


@pytest.mark.parametrize("phase", ["Starting", "Running", "Paused", "Evicting"])
def test_a_silent_node_changes_the_condition_ready_alone(phase: str) -> None:
    entry = an_entry(phase, "n1", conditions=[READY], sandboxID="s", other=1)

    status = statuses.node_silent(entry, message="n1 is silent", wall=WALL)

    (ready,) = status.pop("conditions")
    before = statuses.copied(entry)
    assert status == {key: value for key, value in before.items() if key != "conditions"}
    assert (ready["status"], ready["reason"], ready["message"]) == (
        "False",
        "NodeLost",
        "n1 is silent",
    )


@pytest.mark.parametrize(
    ("phase", "paused", "shown"),
    [
        ("Starting", False, ("False", "Starting")),
        ("Running", False, ("True", "Running")),
        ("Paused", True, ("False", "Paused")),
        ("Evicting", False, ("True", "Running")),
        ("Evicting", True, ("False", "Paused")),
    ],
)
def test_a_node_that_is_heard_again_leaves_ready_as_the_phase_says(
    phase: str, paused: bool, shown: tuple[str, str]
) -> None:
    stamp = {"paused": {"cpuMillis": 1, "memoryBytes": 1}} if paused else {}
    lost = {"type": "Ready", "status": "False", "reason": "NodeLost"}
    entry = an_entry(phase, "n1", reservation=stamp, conditions=[lost])

    (ready,) = statuses.node_heard(entry, wall=WALL)["conditions"]

    assert (ready["status"], ready["reason"]) == shown


def test_what_is_pending_again_says_nothing_of_a_sandbox() -> None:
    entry = an_entry("Bound", "n1", conditions=[READY])

    status = statuses.pending(entry, reason="NodeLost", message="gone", wall=WALL)

    assert [(c["type"], c["reason"]) for c in status["conditions"]] == [("Scheduled", "NodeLost")]
