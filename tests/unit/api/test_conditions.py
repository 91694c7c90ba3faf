from __future__ import annotations

from typing import Any

import pytest

from cubesched.api.conditions import (
    MAX_CONDITIONS,
    MAX_MESSAGE_CHARS,
    put_condition,
    stored_conditions,
    without_condition,
)

OLD = "2026-01-01T00:00:00Z"
NOW = "2026-02-02T00:00:00Z"
OTHER = {"type": "Other", "status": "True"}


def put(stored: object, value: str = "True", message: str = "fine") -> list[dict[str, Any]]:
    return put_condition(
        stored, "Ready", value=value, reason="Because", message=message, generation=3, now=NOW
    )


def ready(status: str) -> dict[str, Any]:
    return {"type": "Ready", "status": status, "lastTransitionTime": OLD}


def test_a_first_condition_comes_last_and_says_everything() -> None:
    assert put([OTHER]) == [
        OTHER,
        {
            "type": "Ready",
            "status": "True",
            "reason": "Because",
            "message": "fine",
            "observedGeneration": 3,
            "lastTransitionTime": NOW,
        },
    ]


@pytest.mark.parametrize(("before", "since"), [("True", OLD), ("False", NOW)])
def test_the_transition_time_moves_only_with_the_value(before: str, since: str) -> None:
    fresh, other = put([ready(before), OTHER])

    assert fresh["lastTransitionTime"] == since
    assert other is OTHER


def test_a_long_message_ends_in_an_ellipsis() -> None:
    (fresh,) = put([], message="x" * 5000)

    assert len(fresh["message"]) == MAX_MESSAGE_CHARS
    assert fresh["message"].endswith("x…")


@pytest.mark.parametrize("stored", [None, "x", {}, [None, "x"]])
def test_what_is_no_condition_is_not_read(stored: object) -> None:
    assert stored_conditions(stored) == []


@pytest.mark.parametrize("stored", [None, "garbage", [7, OTHER], [ready("True"), OTHER]])
def test_one_condition_is_left_out_and_what_is_none_is_dropped(stored: object) -> None:
    assert without_condition(stored, "Ready") in ([], [OTHER])


def test_a_list_that_others_have_filled_loses_their_first_and_never_ours() -> None:
    scheduled = {"type": "Scheduled", "status": "True"}
    foreign = [{"type": f"Foreign{letter}", "status": "True"} for letter in "ABCDEFG"]

    stored = put([scheduled, *foreign])

    assert len(stored) == MAX_CONDITIONS
    assert stored[:-1] == [scheduled, *foreign[1:]]
    assert stored[-1]["type"] == "Ready"


def test_a_type_that_is_stored_twice_is_kept_once() -> None:
    assert [c["type"] for c in put([OTHER] * MAX_CONDITIONS)] == ["Other", "Ready"]
