"""Conditional writes: what goes over the wire, and what each answer means."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any

import pytest
from tests.model.virtualtime import run_virtual
from tests.unit.adapters.scripted import ScriptedTransport, a_refusal

from cubesched.adapters.cluster.transport import Response
from cubesched.adapters.cluster.writes import StatusApplier, StatusWriter, get_raw
from cubesched.api import NODES, REQUESTS
from cubesched.core.errors import ApiError, OutcomeUnknown
from cubesched.core.writing import Outcome, WriteResult

STORED = Response(200, b'{"metadata":{"name":"r","resourceVersion":"12"},"spec":{"x":1}}')


def put(*answers: Response | Exception) -> tuple[WriteResult, ScriptedTransport]:
    """Write one status against these answers."""
    transport = ScriptedTransport(deque(answers))
    writer = StatusWriter(transport, REQUESTS)

    async def main() -> WriteResult:
        return await writer.put_status(
            namespace="team",
            name="r",
            uid="u-1",
            resource_version="11",
            status={"phase": "Reserved"},
        )

    return run_virtual(main), transport


def test_a_write_carries_only_identity_version_and_the_whole_status() -> None:
    result, transport = put(STORED)

    (call,) = transport.calls
    assert call.method == "PUT"
    assert call.path == "/apis/cubesched.io/v1alpha1/namespaces/team/sandboxrequests/r/status"
    assert call.params == {"fieldManager": "cubesched"}
    assert call.content_type == "application/json"
    assert json.loads(call.body or b"") == {
        "apiVersion": "cubesched.io/v1alpha1",
        "kind": "SandboxRequest",
        "metadata": {"name": "r", "namespace": "team", "uid": "u-1", "resourceVersion": "11"},
        "status": {"phase": "Reserved"},
    }
    assert result == WriteResult(Outcome.LANDED, 200, "12", "")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (a_refusal(409, "the object has been modified"), Outcome.REFUSED),
        (a_refusal(404, "not found"), Outcome.MISSING),
        (a_refusal(422, "invalid"), Outcome.REJECTED),
        (a_refusal(403, "forbidden"), Outcome.REJECTED),
        (a_refusal(500, "etcdserver: request timed out"), Outcome.UNKNOWN),
        (a_refusal(504, "timeout"), Outcome.UNKNOWN),
        (OutcomeUnknown("no answer"), Outcome.UNKNOWN),
        (ApiError("connection refused"), Outcome.REJECTED),
    ],
)
def test_each_answer_has_one_meaning(answer: Response | Exception, outcome: Outcome) -> None:
    result, _ = put(answer)

    assert result.outcome is outcome
    assert result.message


def test_what_was_never_sent_has_no_status() -> None:
    result, _ = put(ApiError("connection refused"))

    assert result.status == 0


def test_a_busy_server_is_left_alone_and_then_written_to_again() -> None:
    busy = a_refusal(429, headers={"retry-after": "20"})

    result, transport = put(busy, busy, STORED)

    assert result.outcome is Outcome.LANDED
    assert [call.at for call in transport.calls] == pytest.approx([0, 20, 40])


def test_a_refusal_that_is_no_status_object_is_shown_on_one_short_line() -> None:
    result, _ = put(Response(502, b"<html>\nBad\x00 Gateway\n" + b"x" * 10_000))

    assert result.outcome is Outcome.UNKNOWN
    assert "\n" not in result.message
    assert len(result.message) <= 1024


def test_conditions_of_nodes_are_applied_by_their_own_manager() -> None:
    transport = ScriptedTransport(deque([STORED]))
    status: dict[str, Any] = {"conditions": [{"type": "Accepted", "status": "True"}]}

    result = run_virtual(
        lambda: StatusApplier(transport).apply_status(
            NODES, "n1", "cubesched-operator", status, uid="u-9"
        )
    )

    (call,) = transport.calls
    assert (call.method, call.content_type) == ("PATCH", "application/apply-patch+yaml")
    assert call.path == "/apis/cubesched.io/v1alpha1/sandboxnodes/n1/status"
    assert call.params == {"fieldManager": "cubesched-operator", "force": "true"}
    assert json.loads(call.body or b"")["metadata"] == {"name": "n1", "uid": "u-9"}
    assert result.outcome is Outcome.LANDED


def test_reading_one_object_gives_its_bytes_or_nothing() -> None:
    transport = ScriptedTransport(deque([STORED, a_refusal(404), a_refusal(403, "forbidden")]))

    assert run_virtual(lambda: get_raw(transport, NODES, "n1")) == STORED.body
    assert run_virtual(lambda: get_raw(transport, NODES, "n1")) is None
    with pytest.raises(ApiError, match="403 forbidden"):
        run_virtual(lambda: get_raw(transport, NODES, "n1"))


def test_writes_wait_for_a_place_by_priority() -> None:
    order: list[str] = []

    async def main() -> None:
        transport = ScriptedTransport()
        writer = StatusWriter(transport, REQUESTS)
        tasks = [
            asyncio.create_task(_noted(writer, name, priority, order))
            for name, priority in [(f"first{n}", 1) for n in range(8)]
            + [("explain", 2), ("reserve", 1), ("confirm", 0)]
        ]
        await asyncio.sleep(0.01)
        assert len(transport.calls) == 8
        assert writer.gate.waiting == 3
        for task in tasks[:8]:
            task.cancel()
            await asyncio.sleep(0.01)
        order.extend(call.path.split("/")[-2] for call in transport.calls[8:])

    run_virtual(main)

    assert order == ["confirm", "reserve", "explain"]


async def _noted(writer: StatusWriter, name: str, priority: int, order: list[str]) -> WriteResult:
    return await writer.put_status(
        namespace="team", name=name, uid="u", resource_version="1", status={}, priority=priority
    )
