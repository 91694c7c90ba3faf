from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.fleet.objects import a_node_object, a_request_object

from cubesched.fleet.entries import Entry, read_entry
from cubesched.fleet.nodes import read_node
from cubesched.fleet.routes import packed_route, sandbox_of

NODE = read_node(a_node_object("n1", addresses=[("InternalIP", "10.0.3.7")]))


def an_entry(phase: str = "Running", **fields: Any) -> Entry:
    return read_entry(a_request_object("hello", phase=phase, node="n1", **fields))


def test_the_record_of_a_running_sandbox_says_where_it_is_reached_and_whose_it_is() -> None:
    entry = an_entry(endpoint="10.0.3.7:20001", created="2026-11-30T10:00:00Z", namespace="team-a")

    assert sandbox_of(entry) == "sbr-uid-hello.id-1"
    assert json.loads(packed_route(entry, NODE)) == {
        "state": "Running",
        "node": "n1",
        "address": "10.0.3.7",
        "endpoint": "10.0.3.7:20001",
        "namespace": "team-a",
        "name": "hello",
        "uid": "uid-hello",
        "createdAt": "2026-11-30T10:00:00Z",
    }


@pytest.mark.parametrize(
    ("phase", "resume"),
    [("Paused", ""), *((phase, "sbr-uid-hello.an-older-id") for phase in ("Reserved", "Bound"))],
)
def test_a_paused_sandbox_keeps_its_record_without_an_endpoint(phase: str, resume: str) -> None:
    held = {"resume": resume} if resume else {}
    entry = an_entry(phase, endpoint="10.0.3.7:20001", reservation=held)

    record = json.loads(packed_route(entry, NODE))
    assert sandbox_of(entry) == (resume or "sbr-uid-hello.id-1")
    assert (record["state"], record["endpoint"], record["address"]) == ("Paused", "", "10.0.3.7")


@pytest.mark.parametrize(
    "phase", ["Pending", "Reserved", "Bound", "Starting", "Evicting", "Succeeded", "Failed"]
)
def test_what_does_not_run_has_no_record(phase: str) -> None:
    assert sandbox_of(an_entry(phase)) == ""


def test_a_resumed_sandbox_is_filed_under_the_name_it_was_created_with() -> None:
    entry = an_entry(reservation={"id": "id-2", "resume": "sbr-uid-hello.id-1"})

    assert sandbox_of(entry) == "sbr-uid-hello.id-1"


def test_a_node_that_is_unknown_or_says_no_address_holds_nothing_up() -> None:
    assert json.loads(packed_route(an_entry(), None))["address"] == ""


def test_what_an_agent_writes_is_a_value_and_never_a_key() -> None:
    evil = 'x"\r\nDEL cubesched:routes:1\r\n{"'
    entry = an_entry(endpoint=evil, sandboxID="sbr-uid-of-another.id")

    assert sandbox_of(entry) == "sbr-uid-hello.id-1"
    assert json.loads(packed_route(entry, NODE))["endpoint"] == evil
