from __future__ import annotations

from typing import Any

import pytest

from cubesched.agent import statuses

BOUND: dict[str, Any] = {
    "phase": "Bound",
    "nodeName": "n1",
    "reservation": {"id": "x"},
    "profile": "p",
    "attempts": 3,
    "score": "84.00",
    "explanation": "score 84.00",
    "newerField": {"kept": True},
    "conditions": [
        {
            "type": "Scheduled",
            "status": "True",
            "reason": "Bound",
            "message": "",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}
NOW = "2026-02-02T00:00:00Z"
OF_THE_PLACE = {"nodeName", "reservation", "sandboxID", "endpoint", "score", "explanation"}


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {
        c["type"]: (c["status"], c["reason"], c["lastTransitionTime"]) for c in status["conditions"]
    }


def test_a_claim_changes_phase_and_readiness_only() -> None:
    status = statuses.starting(BOUND, generation=1, now=NOW)

    assert {**status, "conditions": None} == {**BOUND, "phase": "Starting", "conditions": None}
    assert conditions(status)["Ready"] == ("False", "Starting", NOW)
    assert conditions(status)["Scheduled"] == conditions(BOUND)["Scheduled"]
    assert BOUND["phase"] == "Bound"


def test_the_transition_time_moves_only_with_the_value() -> None:
    starting = statuses.starting(BOUND, generation=1, now="2026-01-05T00:00:00Z")

    failed = statuses.start_failed(starting, message="m", generation=1, now=NOW)
    running = statuses.running(starting, sandbox="s", endpoint="e", generation=1, now=NOW)

    assert conditions(failed)["Ready"] == ("False", "StartFailed", "2026-01-05T00:00:00Z")
    assert conditions(running)["Ready"] == ("True", "Running", NOW)


def test_a_refused_request_names_no_node_any_more() -> None:
    running = statuses.running(BOUND, sandbox="s", endpoint="e", generation=1, now=NOW)

    status = statuses.refused(running, node="n1", reason="full", generation=2, now=NOW)

    assert not OF_THE_PLACE & set(status)
    assert status["phase"] == "Pending"
    assert status["refusals"] == [{"node": "n1", "reason": "full", "time": NOW}]
    assert status["newerField"] == {"kept": True}
    assert conditions(status) == {"Scheduled": ("False", "Refused", NOW)}


@pytest.mark.parametrize(("succeeded", "phase"), [(True, "Succeeded"), (False, "Failed")])
def test_a_finished_request_keeps_its_node_and_gains_a_time(succeeded: bool, phase: str) -> None:
    status = statuses.finished(BOUND, succeeded=succeeded, message="m", generation=1, now=NOW)

    assert (status["phase"], status["finishedTime"], status["nodeName"]) == (phase, NOW, "n1")


def test_long_words_are_cut_to_what_the_api_takes() -> None:
    refused = statuses.refused(BOUND, node="n1", reason="x" * 5000, generation=1, now=NOW)

    assert len(refused["refusals"][0]["reason"]) == 256
    assert len(refused["conditions"][0]["message"]) == 1024


def test_an_evicted_request_names_no_node_and_says_why_as_the_operator_left_it() -> None:
    running = statuses.running(BOUND, sandbox="s", endpoint="e", generation=1, now=NOW)
    blocked = {"type": "ResumeBlocked", "status": "True", "reason": "NodeNotReady", "message": ""}

    status = statuses.evicted(
        {**running, "conditions": [*running["conditions"], blocked]}, generation=2, now=NOW
    )

    assert not (OF_THE_PLACE | {"refusals"}) & set(status)
    assert status["phase"] == "Pending"
    assert status["newerField"] == {"kept": True}
    assert status["conditions"] == BOUND["conditions"]
