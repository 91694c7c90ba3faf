"""Deletions: of one object in one version, and what each answer means."""

from __future__ import annotations

import json
from collections import deque

import pytest
from tests.model.virtualtime import run_virtual
from tests.unit.adapters.scripted import ScriptedTransport, a_refusal

from cubesched.adapters.cluster.deletes import Deleter
from cubesched.adapters.cluster.transport import Response
from cubesched.api import REQUESTS
from cubesched.core.errors import OutcomeUnknown
from cubesched.core.writing import Outcome, WriteResult

DELETED = Response(200, b'{"kind":"Status","status":"Success"}')


def delete(*answers: Response | Exception) -> tuple[WriteResult, ScriptedTransport]:
    transport = ScriptedTransport(deque(answers))

    async def main() -> WriteResult:
        return await Deleter(transport, REQUESTS).delete(
            namespace="team", name="r", uid="u-1", resource_version="11"
        )

    return run_virtual(main), transport


def test_a_deletion_is_of_one_object_in_one_version() -> None:
    result, transport = delete(DELETED)

    (call,) = transport.calls
    assert (call.method, call.path) == (
        "DELETE",
        "/apis/cubesched.io/v1alpha1/namespaces/team/sandboxrequests/r",
    )
    assert json.loads(call.body or b"")["preconditions"] == {
        "uid": "u-1",
        "resourceVersion": "11",
    }
    assert result.outcome is Outcome.LANDED


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (a_refusal(409, "the UID in the precondition does not match"), Outcome.REFUSED),
        (a_refusal(404, "not found"), Outcome.MISSING),
        (a_refusal(403, "forbidden"), Outcome.REJECTED),
        (a_refusal(500, "etcd"), Outcome.UNKNOWN),
        (OutcomeUnknown("reset"), Outcome.UNKNOWN),
    ],
)
def test_every_other_answer_says_what_became_of_it(
    answer: Response | Exception, outcome: Outcome
) -> None:
    assert delete(answer)[0].outcome is outcome


def test_a_server_that_is_busy_is_asked_again() -> None:
    result, transport = delete(a_refusal(429, headers={"retry-after": "1"}), DELETED)

    assert (result.outcome, len(transport.calls)) == (Outcome.LANDED, 2)
