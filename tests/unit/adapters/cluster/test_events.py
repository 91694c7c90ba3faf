"""Events are bounded in size, number and effect."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any

from tests.model.virtualtime import run_virtual
from tests.unit.adapters.scripted import ScriptedTransport, a_refusal

from cubesched.adapters.cluster.events import EventPoster
from cubesched.adapters.cluster.transport import Response
from cubesched.adapters.telemetry.meter import Meter
from cubesched.core.errors import ApiError

CREATED = Response(201, b"{}")


def post(poster: EventPoster, **changes: Any) -> None:
    fields: dict[str, Any] = {
        "kind": "SandboxRequest",
        "namespace": "team",
        "name": "r",
        "uid": "u-1",
        "reason": "Bound",
        "note": "bound to n1",
        "action": "Binding",
    }
    poster.post(**{**fields, **changes})


def run(count: int, *answers: Response | Exception, **changes: Any) -> tuple[list[Any], str]:
    """Post `count` events, give the poster a minute, return what was sent and the metrics."""
    transport = ScriptedTransport(deque(answers))
    meter = Meter()

    async def main() -> None:
        poster = EventPoster(transport, meter, instance="replica-1", wall=lambda: 1_700_000_000.0)
        task = asyncio.create_task(poster.run())
        for _ in range(count):
            post(poster, **changes)
        await asyncio.sleep(60)
        assert not task.done()
        task.cancel()

    run_virtual(main)
    sent = [json.loads(call.body or b"") for call in transport.calls]
    return sent, meter.exposition().decode()


def test_an_event_has_all_that_the_server_and_describe_ask_for() -> None:
    (sent,), _ = run(1, CREATED)

    assert sent["eventTime"] == "2023-11-14T22:13:20.000000Z"
    assert sent["regarding"] == {
        "apiVersion": "cubesched.io/v1alpha1",
        "kind": "SandboxRequest",
        "namespace": "team",
        "name": "r",
        "uid": "u-1",
    }
    assert sent["metadata"]["namespace"] == "team"
    assert sent["reportingController"] == "cubesched.io/scheduler"
    assert sent["reportingInstance"] == "replica-1"


def test_an_event_about_a_cluster_scoped_object_lives_in_default() -> None:
    (sent,), _ = run(1, CREATED, namespace="", kind="SandboxNode")

    assert sent["metadata"]["namespace"] == "default"
    assert "namespace" not in sent["regarding"]


def test_a_note_is_one_clean_line_of_at_most_a_kibibyte() -> None:
    (sent,), _ = run(1, CREATED, note="a\r\nbound request x\x1b[2J\x00\ud800\u202e" + "é" * 5_000)

    assert len(sent["note"].encode()) <= 1024
    assert sent["note"].startswith("a  bound request x?[2J???é")


def test_a_burst_beyond_the_rate_is_dropped_and_counted() -> None:
    sent, metrics = run(300, *[CREATED] * 300)

    assert len(sent) == 50
    assert "cubesched_events_suppressed_total 250.0" in metrics


def test_warnings_beyond_the_rate_are_sent_later() -> None:
    sent, metrics = run(300, *[CREATED] * 300, type_="Warning")

    assert len(sent) == 300
    assert "cubesched_events_suppressed_total 0.0" in metrics


def test_the_queue_is_bounded_while_the_server_hangs() -> None:
    _, metrics = run(700)

    assert "cubesched_events_suppressed_total 200.0" in metrics


def test_refused_and_lost_events_are_counted_and_the_next_is_sent() -> None:
    sent, metrics = run(3, a_refusal(403), ApiError("unreachable"), CREATED)

    assert len(sent) == 3
    assert "cubesched_events_suppressed_total 2.0" in metrics
