from __future__ import annotations

import json

import pytest
from tests.unit.relay.truth import stored

from cubesched.core.errors import Gone
from cubesched.relay.objects import at_version, bookmark_line, event_line, list_body, read_placed


def test_what_routes_a_request_is_read_and_its_bytes_are_kept() -> None:
    raw = stored("a", "n1")
    placed = read_placed(raw)

    assert (placed.uid, placed.key, placed.node) == ("uid-a", ("default", "a"), "n1")
    assert placed.raw is raw


@pytest.mark.parametrize(
    "status", [b"", b',"status":null', b',"status":{}', b',"status":{"nodeName":7}', b',"status":1']
)
def test_a_request_names_no_node_unless_the_name_is_a_text(status: bytes) -> None:
    raw = b'{"metadata":{"uid":"u","namespace":"s","name":"x"}%b}' % status

    assert read_placed(raw).node == ""


def test_a_request_without_a_uid_is_known_by_its_name() -> None:
    raw = b'{"metadata":{"namespace":"s","name":"x"},"status":{"nodeName":"n1"}}'

    assert (read_placed(raw).uid, read_placed(raw).node) == ("s/x", "n1")


@pytest.mark.parametrize("raw", [b"[]", b"{}", b'{"metadata":{}}', b'{"metadata":3}', b"{"])
def test_what_cannot_be_told_apart_ends_the_prefix(raw: bytes) -> None:
    with pytest.raises(Gone, match="cannot be read"):
        read_placed(raw)


def test_only_the_version_changes_whatever_else_looks_like_one() -> None:
    meta = b'"metadata":{"annotations":{"resourceVersion":"5"},"resourceVersion":"%d"}'
    rest = b',"spec":{"n":1.50,"t":"\\u00e4"}}'

    assert at_version(b"{" + meta % 5 + rest, 17) == b"{" + meta % 17 + rest


def test_lines_and_lists_are_what_the_api_server_sends() -> None:
    raw = b'{"a":1}'

    assert event_line("ADDED", raw) == b'{"type":"ADDED","object":{"a":1}}\n'
    bookmark = json.loads(bookmark_line(9))
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["kind"] == "SandboxRequest"
    assert bookmark["object"]["metadata"] == {"resourceVersion": "9"}
    assert json.loads(list_body(9, [raw, raw])) == {
        "apiVersion": "cubesched.io/v1alpha1",
        "kind": "SandboxRequestList",
        "metadata": {"resourceVersion": "9"},
        "items": [{"a": 1}, {"a": 1}],
    }
    assert json.loads(list_body(9, []))["items"] == []
