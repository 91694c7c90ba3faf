"""Waiting for the CRDs, and naming the rights that are missing."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import pytest
from tests.model.virtualtime import run_virtual
from tests.unit.adapters.scripted import ScriptedTransport, Watch, a_refusal

from cubesched.adapters.cluster.probing import Right, missing_rights, wait_for_api, wait_for_watches
from cubesched.adapters.cluster.transport import Response
from cubesched.api import NODES, REQUESTS
from cubesched.core.errors import ApiError, UsageError


def served(*plurals: str) -> Response:
    return Response(200, json.dumps({"resources": [{"name": name} for name in plurals]}).encode())


def wait(*answers: Any, timeout_seconds: float = 60) -> list[str]:
    told: list[str] = []
    transport = ScriptedTransport(deque(answers))
    run_virtual(
        lambda: wait_for_api(
            transport, [NODES, REQUESTS], timeout_seconds=timeout_seconds, on_wait=told.append
        )
    )
    return told


def test_a_ready_api_is_not_waited_for() -> None:
    assert wait(served("sandboxnodes", "sandboxnodes/status", "sandboxrequests")) == []


def test_what_is_missing_is_told_once_until_it_changes() -> None:
    told = wait(
        ApiError("cannot reach https://x"),
        a_refusal(404),
        a_refusal(404),
        served("sandboxnodes"),
        served("sandboxnodes", "sandboxrequests"),
    )

    assert [line.split(" of ")[0] for line in told] == [
        "cannot reach https://x",
        "the API does not serve sandboxnodes, sandboxrequests",
        "the API does not serve sandboxrequests",
    ]


def test_after_the_deadline_the_missing_kinds_and_the_remedy_are_named() -> None:
    with pytest.raises(UsageError, match=r"sandboxrequests .*kubectl apply -f crds/"):
        wait(*[served("sandboxnodes")] * 10, timeout_seconds=3)


def test_missing_rights_are_named_as_one_would_write_them_in_a_role() -> None:
    def verdict(allowed: bool) -> Response:
        return Response(201, json.dumps({"status": {"allowed": allowed}}).encode())

    transport = ScriptedTransport(deque([verdict(True), verdict(False), verdict(False)]))
    rules = [
        Right("list", "sandboxnodes", group="cubesched.io"),
        Right("update", "sandboxrequests", group="cubesched.io", subresource="status"),
        Right("create", "leases", group="coordination.k8s.io", namespace="cubesched-system"),
    ]

    missing = run_virtual(lambda: missing_rights(transport, rules))

    assert missing == [
        "update sandboxrequests/status in group cubesched.io",
        "create leases in group coordination.k8s.io in namespace cubesched-system",
    ]


def test_a_cold_server_is_asked_again_until_it_gives_out_watches() -> None:
    told: list[str] = []
    cold = ApiError("storage is (re)initializing", 429)
    transport = ScriptedTransport(watches=deque([cold, Watch(()), Watch(())]))

    run_virtual(lambda: wait_for_watches(transport, [NODES, REQUESTS], on_wait=told.append))

    assert told == ["no watch of sandboxnodes yet: storage is (re)initializing"]
