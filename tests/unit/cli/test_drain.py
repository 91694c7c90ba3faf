"""Draining as a person sees it: what is read of a node, and what is said of it."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import pytest
from tests.unit.adapters.scripted import ScriptedTransport, a_page, a_refusal

from cubesched.adapters.cluster.transport import Response
from cubesched.api.timestamps import timestamp
from cubesched.cli import main
from cubesched.cli.draining import Cluster, NothingToDrain, going
from cubesched.core.errors import ApiError

READY = {"type": "Ready", "status": "True", "reason": "AgentReady", "message": "the agent runs"}
DRAINED = {"type": "Drained", "status": "True", "reason": "Drained", "observedGeneration": 3}


def a_node(*conditions: dict[str, Any], drain: str = "All", **spec: Any) -> Response:
    stored = {
        "metadata": {"name": "n1", "uid": "u1", "generation": 3},
        "spec": {"drain": drain, **spec},
        "status": {"conditions": list(conditions)},
    }
    return Response(200, json.dumps(stored).encode())


def answering(*answers: Response) -> ScriptedTransport:
    return ScriptedTransport(deque(answers))


def a_request(name: str, phase: str) -> dict[str, Any]:
    changed = {"type": "Ready", "lastTransitionTime": timestamp(1_800_000_000)}
    return {
        "metadata": {"namespace": "default", "name": name},
        "status": {"phase": phase, "nodeName": "n1", "conditions": [changed]},
    }


async def test_a_drain_is_set_by_one_field() -> None:
    api = answering(a_node(READY))

    node = await Cluster(api, "n1").set_drain("All")

    assert (node.drain, node.is_cordoned, node.is_drained) == ("All", False, False)
    (asked,) = api.calls
    assert (asked.method, asked.path.rsplit("/", 1)[1]) == ("PATCH", "n1")
    assert json.loads(asked.body or b"") == {"spec": {"drain": "All"}}


@pytest.mark.parametrize("generation", [2, 3])
async def test_only_what_is_said_of_this_drain_counts(generation: int) -> None:
    api = answering(a_node(READY, {**DRAINED, "observedGeneration": generation}))

    node = await Cluster(api, "n1").node()

    assert node.is_drained is (generation == 3)


@pytest.mark.parametrize(
    ("conditions", "trouble"),
    [
        ([READY], ""),
        ([], "its agent does not act: it never reported Ready"),
        (
            [{**READY, "status": "False", "message": "the agent was stopped"}],
            "its agent does not act: the agent was stopped",
        ),
        (
            [READY, {"type": "MetricsComplete", "status": "False", "reason": "Stale",
                     "message": "No newer report for 300s."}],
            "its agent may be dead: No newer report for 300s.",
        ),
        ([READY, {"type": "MetricsComplete", "status": "False", "reason": "FieldsMissing"}], ""),
    ],
)  # fmt: skip
async def test_a_node_says_why_its_agent_may_not_do_its_part(
    conditions: list[dict[str, Any]], trouble: str
) -> None:
    node = await Cluster(answering(a_node(*conditions)), "n1").node()

    assert node.trouble == trouble


async def test_what_is_left_is_what_counts_and_what_goes_depends_on_the_drain() -> None:
    phases = ("Bound", "Starting", "Running", "Paused", "Evicting", "Succeeded", "Failed")
    api = answering(a_page(9, *(a_request(f"r{n}", phase) for n, phase in enumerate(phases))))

    left = await Cluster(api, "n1").left()

    assert [one.phase for one in left] == list(phases[:5])
    assert going(left, "All") == left
    assert [one.phase for one in going(left, "Unstarted")] == ["Bound"]
    assert api.calls[0].params["fieldSelector"] == "status.nodeName=n1"


async def test_a_node_that_is_not_there_is_no_fault() -> None:
    with pytest.raises(NothingToDrain, match="no SandboxNode 'n1'; `kubectl get sbn` shows"):
        await Cluster(answering(a_refusal(404)), "n1").node()
    with pytest.raises(NothingToDrain):
        await Cluster(answering(a_refusal(404)), "n1").set_drain("All")


async def test_a_refusal_says_what_was_not_possible() -> None:
    with pytest.raises(ApiError, match=r"cannot set spec.drain of SandboxNode n1: 403"):
        await Cluster(answering(a_refusal(403, "forbidden")), "n1").set_drain("All")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("drain",), "the following arguments are required: NODE"),
        (("drain", "n1", "--timeout", "soon"), "--timeout: 'soon' is not a duration"),
        (("drain", "n1", "--all", "--undo"), "not allowed with argument --all"),
    ],
)
def test_wrong_use_is_one_line(
    words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2

    assert complaint in capsys.readouterr().err
