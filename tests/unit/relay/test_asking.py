from __future__ import annotations

import pytest

from cubesched.relay.asking import (
    LONGEST_WATCH_SECONDS,
    WATCH_SECONDS,
    ListAsked,
    ProbeAsked,
    WatchAsked,
    asked_of,
)
from cubesched.relay.refusals import Refusal

SELECTED = {"fieldSelector": "status.nodeName=node-1.example"}


def test_a_list_asks_for_one_node() -> None:
    assert asked_of(SELECTED) == ListAsked("node-1.example", None)
    assert asked_of({**SELECTED, "limit": "500"}) == ListAsked("node-1.example", None)
    assert asked_of({"fieldSelector": "status.nodeName==n"}) == ListAsked("n", None)


def test_a_list_may_name_the_oldest_version_it_takes() -> None:
    asked = {**SELECTED, "resourceVersion": "7", "resourceVersionMatch": "NotOlderThan"}

    assert asked_of(asked) == ListAsked("node-1.example", 7)
    assert asked_of({**SELECTED, "resourceVersion": "0"}) == ListAsked("node-1.example", 0)


def test_a_watch_asks_from_a_version_on() -> None:
    asked = {**SELECTED, "watch": "1", "resourceVersion": "7", "timeoutSeconds": "600"}

    assert asked_of(asked) == WatchAsked("node-1.example", 7, False, 600)
    assert asked_of({**asked, "allowWatchBookmarks": "true"}) == WatchAsked(
        "node-1.example", 7, True, 600
    )
    assert asked_of({**asked, "watch": "false"}) == ListAsked("node-1.example", 7)


@pytest.mark.parametrize(
    ("given", "served"), [("", WATCH_SECONDS), ("0", WATCH_SECONDS), ("99999", 3600), ("5", 5)]
)
def test_every_watch_has_an_end(given: str, served: int) -> None:
    asked = asked_of({**SELECTED, "watch": "true", "resourceVersion": "7", "timeoutSeconds": given})

    assert isinstance(asked, WatchAsked)
    assert asked.seconds == served <= LONGEST_WATCH_SECONDS


def test_the_probe_is_the_list_that_selects_nothing() -> None:
    assert asked_of({"limit": "1"}) == ProbeAsked()


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ({}, 400, "fieldSelector: found ''"),
        ({"limit": "1", "watch": "1"}, 400, "fieldSelector"),
        ({"limit": "2"}, 400, "fieldSelector"),
        ({"fieldSelector": "status.nodeName="}, 400, "status.nodeName=NODE only"),
        ({"fieldSelector": "status.nodeName!=n"}, 400, "fieldSelector"),
        ({"fieldSelector": "status.nodeName=a,status.nodeName=b"}, 400, "fieldSelector"),
        ({"fieldSelector": "metadata.name=a"}, 400, "fieldSelector"),
        ({**SELECTED, "labelSelector": "a=b"}, 400, "labelSelector: the relay does not serve it"),
        ({**SELECTED, "sendInitialEvents": "true"}, 400, "sendInitialEvents"),
        ({**SELECTED, "watch": "1"}, 400, "list first"),
        ({**SELECTED, "watch": "1", "resourceVersion": "0"}, 400, "list first"),
        ({**SELECTED, "watch": "1", "resourceVersion": "x"}, 400, "found 'x'"),
        ({**SELECTED, "resourceVersion": "-1"}, 400, "found '-1'"),
        ({**SELECTED, "resourceVersionMatch": "Exact"}, 400, "NotOlderThan only"),
        (
            {**SELECTED, "watch": "1", "resourceVersion": "7", "timeoutSeconds": "1h"},
            400,
            "timeoutSeconds: found '1h'",
        ),
        ({**SELECTED, "continue": "abc"}, 410, "token is not ours"),
    ],
)
def test_what_would_not_be_answered_to_the_letter_is_refused(
    query: dict[str, str], code: int, words: str
) -> None:
    with pytest.raises(Refusal) as refused:
        asked_of(query)

    assert refused.value.code == code
    assert words in str(refused.value)
