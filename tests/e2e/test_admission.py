"""What a client may change of a request, and what an agent may write: the admission policies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess
from typing import Any

import pytest

Kubectl = Callable[..., CompletedProcess[str]]
Status = dict[str, Any]

OLD_REFUSAL = {"node": "n2", "reason": "NoRoom", "time": "2026-11-30T10:00:00Z"}
NEW_REFUSAL = {"node": "n1", "reason": "NoRoom", "time": "2026-11-30T11:00:00Z"}
RESERVATION = {
    "id": "0123456789abcdef0123456789abcdef",
    "replica": "replica-1",
    "nodeUID": "a-uid",
    "cpuMillis": 1000,
    "memoryBytes": 1 << 30,
}
FOR_AGENT = {**RESERVATION, "confirmation": "agent"}
PLACED = {
    "attempts": 1,
    "nodeName": "n1",
    "profile": "burst",
    "policyRevision": "r1",
    "score": "71.5",
    "refusals": [OLD_REFUSAL],
    "reservation": RESERVATION,
}


def placed(phase: str, **changes: object) -> Status:
    status = {**PLACED, "phase": phase, **changes}
    return {name: value for name, value in status.items() if value is not None}


def with_stamp(phase: str, *, resume: str = "", cpu_millis: int = 400, **changes: Any) -> Status:
    """Return a placed status whose reservation says what it keeps while it is paused."""
    stamp = {"cpuMillis": cpu_millis, "memoryBytes": 1 << 29}
    reservation = {**RESERVATION, "paused": stamp, **({"resume": resume} if resume else {})}
    return placed(phase, **{"reservation": reservation, "sandboxID": "s", **changes})


def to_resume(phase: str, **changes: Any) -> Status:
    return with_stamp(phase, resume="sbr-a.b", **changes)


RESUMED = placed("Running", reservation={**RESERVATION, "resume": "sbr-a.b"}, sandboxID="s")
REFUSED_TWICE = [OLD_REFUSAL, NEW_REFUSAL]


def given_back(**changes: object) -> Status:
    return placed(
        "Pending", **{"nodeName": None, "reservation": None, "profile": None, "score": None,
                      "policyRevision": None, "refusals": [OLD_REFUSAL, NEW_REFUSAL], **changes}
    )  # fmt: skip


class Request:
    """One stored request, whose status is written by whom the test says."""

    def __init__(self, kubectl: Kubectl, namespace: str) -> None:
        self.kubectl = kubectl
        self.namespace = namespace
        body = {
            "apiVersion": "cubesched.io/v1alpha1",
            "kind": "SandboxRequest",
            "metadata": {"name": "r", "namespace": namespace},
            "spec": {"resources": {"cpu": 1, "memory": "1Gi"}, "templateID": "t1"},
        }
        kubectl("create", "-f", "-", input=json.dumps(body))

    def write(self, status: Status, *who: str) -> CompletedProcess[str]:
        body = json.loads(
            self.kubectl("get", "sbr", "r", "-n", self.namespace, "-o", "json").stdout
        )
        text = json.dumps({**body, "status": status})
        return self.kubectl(
            "replace", "--subresource=status", "-f", "-", *who, input=text, check=False
        )

    def patch(self, *args: str) -> CompletedProcess[str]:
        return self.kubectl("patch", "sbr", "r", "-n", self.namespace, *args, check=False)


@pytest.fixture
def request_(kubectl: Kubectl, fresh_namespace: str) -> Request:
    return Request(kubectl, fresh_namespace)


def agent_of(node: str) -> tuple[str, str]:
    return (f"--as=cubesched:node:{node}", "--as-group=cubesched:nodes")


OPERATOR = ("--as=cubesched:operator:a", "--as-group=cubesched:operators")


@pytest.mark.parametrize(
    "patch", ['{"spec": {"priority": 7}}', '{"metadata": {"labels": {"a": "b"}}}']
)
def test_a_client_may_change_priority_and_metadata(request_: Request, patch: str) -> None:
    assert request_.patch("--type=merge", "-p", patch).returncode == 0


@pytest.mark.parametrize(
    ("patch", "fields"),
    [
        ('{"spec": {"templateID": "t2"}}', "spec.templateID"),
        ('{"spec": {"templateID": null}}', "spec.templateID"),
        ('{"spec": {"nodeSelector": {"a": "b"}}}', "spec.nodeSelector"),
        ('{"spec": {"resources": {"cpu": 2}, "priority": 7}}', "spec.resources"),
    ],
)
def test_nothing_else_of_spec_can_change(request_: Request, patch: str, fields: str) -> None:
    answer = request_.patch("--type=merge", "-p", patch)

    assert answer.returncode == 1
    assert f"{fields} cannot change: spec is immutable, except priority" in answer.stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (placed("Bound"), placed("Bound", conditions=[])),
        (placed("Bound"), placed("Starting")),
        (placed("Reserved", reservation=FOR_AGENT), placed("Starting", reservation=FOR_AGENT)),
        (placed("Reserved", reservation=FOR_AGENT), given_back()),
        (placed("Starting"), placed("Running", sandboxID="s", endpoint="10.0.0.1:80")),
        (placed("Starting"), placed("Failed", finishedTime="2026-11-30T12:00:00Z")),
        (placed("Running"), placed("Running", endpoint="10.0.0.1:80")),
        (placed("Running"), placed("Succeeded", finishedTime="2026-11-30T12:00:00Z")),
        (placed("Running"), placed("Failed", finishedTime="2026-11-30T12:00:00Z")),
        (placed("Evicting"), placed("Succeeded", finishedTime="2026-11-30T12:00:00Z")),
        (placed("Evicting"), placed("Failed", finishedTime="2026-11-30T12:00:00Z")),
        (placed("Evicting", sandboxID="s"), given_back(refusals=[OLD_REFUSAL])),
        (placed("Evicting", refusals=None), given_back(refusals=None)),
        (placed("Running", sandboxID="s"), with_stamp("Paused")),
        (placed("Running", sandboxID="s"), with_stamp("Paused", cpu_millis=1000)),
        (RESUMED, to_resume("Paused")),
        (with_stamp("Paused"), with_stamp("Failed", finishedTime="2026-11-30T12:00:00Z")),
        (with_stamp("Paused"), with_stamp("Succeeded", finishedTime="2026-11-30T12:00:00Z")),
        (to_resume("Bound"), to_resume("Starting")),
        (to_resume("Starting"), RESUMED),
        (to_resume("Starting"), to_resume("Failed", finishedTime="2026-11-30T12:00:00Z")),
        (to_resume("Starting"), to_resume("Succeeded", finishedTime="2026-11-30T12:00:00Z")),
        (to_resume("Bound"), to_resume("Paused", refusals=REFUSED_TWICE)),
        (to_resume("Starting"), to_resume("Paused", refusals=REFUSED_TWICE)),
        (placed("Bound"), given_back()),
        (placed("Starting", sandboxID="s"), given_back()),
        (placed("Bound", refusals=None), given_back(refusals=[NEW_REFUSAL])),
        (
            placed("Bound", refusals=[OLD_REFUSAL | {"reason": f"r{n}"} for n in range(8)]),
            given_back(
                refusals=[
                    *(OLD_REFUSAL | {"reason": f"r{n}"} for n in range(1, 8)),
                    NEW_REFUSAL,
                ]
            ),
        ),
    ],
)
def test_an_agent_may_move_its_own_request_on(
    request_: Request, before: Status, after: Status
) -> None:
    assert request_.write(before, *OPERATOR).returncode == 0

    answer = request_.write(after, *agent_of("n1"))

    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (placed("Bound"), placed("Running"), "from Bound to Running"),
        (placed("Bound"), placed("Succeeded"), "from Bound to Succeeded"),
        (placed("Reserved"), placed("Bound"), "from Reserved to Bound"),
        (placed("Reserved"), placed("Starting"), "not asked to confirm"),
        (placed("Reserved"), given_back(), "not asked to confirm"),
        (
            placed("Reserved", reservation={**RESERVATION, "confirmation": "none"}),
            placed("Starting", reservation={**RESERVATION, "confirmation": "none"}),
            "not asked to confirm",
        ),
        (
            placed("Reserved"),
            placed("Starting", reservation=FOR_AGENT),
            "not asked to confirm",
        ),
        (
            placed("Reserved", reservation=FOR_AGENT),
            placed("Bound", reservation=FOR_AGENT),
            "from Reserved to Bound",
        ),
        (
            placed("Reserved", reservation=FOR_AGENT),
            placed("Running", reservation=FOR_AGENT),
            "from Reserved to Running",
        ),
        (
            placed("Reserved", reservation=FOR_AGENT),
            placed("Starting", reservation={**FOR_AGENT, "cpuMillis": 1}),
            "may not write status.reservation",
        ),
        (placed("Running"), given_back(), "from Running to Pending"),
        (placed("Running"), placed("Evicting"), "from Running to Evicting"),
        (placed("Evicting"), placed("Running"), "from Evicting to Running"),
        (placed("Evicting"), given_back(), "keeps its refusals"),
        (placed("Evicting"), given_back(refusals=None), "keeps its refusals"),
        (placed("Running"), placed("Bound"), "from Running to Bound"),
        (placed("Running"), placed("Paused"), "what it keeps"),
        (placed("Running"), with_stamp("Paused", cpu_millis=1001), "at most what was admitted"),
        (
            placed("Running"),
            with_stamp(
                "Paused",
                reservation={
                    **RESERVATION,
                    "cpuMillis": 1,
                    "paused": {"cpuMillis": 1, "memoryBytes": 1},
                },
            ),
            "nothing of status.reservation but its stamp",
        ),
        (placed("Running"), to_resume("Paused"), "nothing of status.reservation but its stamp"),
        (with_stamp("Paused"), with_stamp("Running"), "from Paused to Running"),
        (with_stamp("Paused"), with_stamp("Paused", cpu_millis=1), "not write status.reservation"),
        (with_stamp("Paused"), given_back(), "from Paused to Pending"),
        (with_stamp("Paused"), with_stamp("Bound"), "from Paused to Bound"),
        (to_resume("Bound"), to_resume("Running"), "from Bound to Running"),
        (to_resume("Starting"), to_resume("Running"), "has no status.reservation.paused"),
        (
            to_resume("Starting"),
            placed("Running", reservation=RESERVATION, sandboxID="s"),
            "nothing of status.reservation but its stamp",
        ),
        (to_resume("Bound"), to_resume("Paused"), "gains one entry in refusals"),
        (to_resume("Bound"), given_back(), "goes to Paused if it was to be resumed"),
        (to_resume("Starting"), given_back(), "goes to Paused if it was to be resumed"),
        (placed("Bound"), placed("Paused", refusals=REFUSED_TWICE), "else to Pending"),
        (placed("Starting"), placed("Succeeded"), "never run cannot have succeeded"),
        (placed("Succeeded"), placed("Running"), "from Succeeded to Running"),
        (placed("Bound"), placed("Starting", nodeName="n2"), "may not write status.nodeName"),
        (placed("Bound"), placed("Starting", profile="x"), "may not write status.profile"),
        (placed("Bound"), placed("Starting", profile=None), "may not write status.profile"),
        (placed("Bound"), placed("Starting", attempts=0), "may not write status.attempts"),
        (placed("Bound"), placed("Starting", refusals=[]), "may not write status.refusals"),
        (
            placed("Bound"),
            placed("Starting", reservation={**RESERVATION, "cpuMillis": 1}),
            "may not write status.reservation",
        ),
        (placed("Bound"), given_back(refusals=[OLD_REFUSAL]), "gains one entry in refusals"),
        (placed("Bound"), given_back(refusals=[NEW_REFUSAL]), "gains one entry in refusals"),
        (
            placed("Bound"),
            given_back(refusals=[OLD_REFUSAL, NEW_REFUSAL | {"node": "n3"}]),
            "gains one entry in refusals",
        ),
    ],
)
def test_an_agent_may_do_nothing_else_to_it(
    request_: Request, before: Status, after: Status, what: str
) -> None:
    assert request_.write(before, *OPERATOR).returncode == 0

    answer = request_.write(after, *agent_of("n1"))

    assert answer.returncode == 1
    assert what in answer.stderr


@pytest.mark.parametrize("node", ["n2", ""])
def test_an_agent_may_not_touch_a_request_of_another_node(request_: Request, node: str) -> None:
    request_.write(placed("Bound"), *OPERATOR)

    answer = request_.write(placed("Starting"), *agent_of(node))

    assert answer.returncode == 1
    assert "ValidatingAdmissionPolicy 'cubesched-agents'" in answer.stderr


def test_an_agent_may_not_take_a_pending_request(request_: Request) -> None:
    answer = request_.write(placed("Starting"), *agent_of("n1"))

    assert answer.returncode == 1
    assert "only requests that are on its node" in answer.stderr


@pytest.mark.parametrize("who", [OPERATOR, agent_of("n1")])
def test_the_status_of_a_request_can_be_updated_but_not_patched(
    kubectl: Kubectl, who: tuple[str, str]
) -> None:
    answers = [
        kubectl("auth", "can-i", verb, "sandboxrequests", "--subresource=status", *who, check=False)
        for verb in ("update", "patch")
    ]

    assert [answer.stdout.strip() for answer in answers] == ["yes", "no"]


@pytest.mark.parametrize("node", ["own", "another"])
def test_an_agent_writes_only_the_node_of_its_name(kubectl: Kubectl, node: str) -> None:
    body = json.dumps(
        {
            "apiVersion": "cubesched.io/v1alpha1",
            "kind": "SandboxNode",
            "metadata": {"name": "own"},
            "spec": {"capacity": {"cpu": 4, "memory": "8Gi"}},
        }
    )
    who = agent_of(node)
    cordon = '{"spec": {"unschedulable": true}}'

    answers = [kubectl("create", "-f", "-", *who, input=body, check=False)]
    if node == "another":
        kubectl("create", "-f", "-", input=body)
    answers += [kubectl("patch", "sbn", "own", "--type=merge", "-p", cordon, *who, check=False)]
    stored = kubectl("get", "sbn", "own", "-o", "json").stdout
    answers += [
        kubectl("replace", "--subresource=status", "-f", "-", *who, input=stored, check=False)
    ]
    kubectl("delete", "sbn", "own")

    if node == "own":
        assert [answer.stderr for answer in answers] == ["", "", ""]
    else:
        told = "the agent of another may not write SandboxNode own"
        assert [told in answer.stderr for answer in answers] == [True, True, True]


SINCE = {"message": "", "lastTransitionTime": "2026-11-30T10:00:00Z"}
READY = {"type": "Ready", "status": "True", "reason": "AgentReady", **SINCE}
STOPPED = {"type": "Ready", "status": "False", "reason": "AgentStopped", **SINCE}
QUARANTINED = {"type": "Quarantined", "status": "True", "reason": "RepeatedRefusals", **SINCE}
SHOWN: Status = {
    "conditions": [READY, QUARANTINED],
    "schedulable": "Quarantined",
    "metricsTime": "2026-11-30T10:00:00Z",
    "allocated": {
        "cpu": "2",
        "memory": "1Gi",
        "systemDisk": "0",
        "sandboxes": 1,
        "creating": 0,
    },
    "effectiveCapacity": {
        "cpu": "4",
        "memory": "8Gi",
        "sandboxes": 3000,
        "createConcurrency": 100,
        "pausedResourceReleaseRatio": 0.0,
    },
    "templates": ["t1"],
}


@pytest.fixture
def shown_node(kubectl: Kubectl) -> Iterator[Callable[[Status], str]]:
    """Yield what writes a node's status as its agent, over SHOWN, and returns what is said."""
    body = {
        "apiVersion": "cubesched.io/v1alpha1",
        "kind": "SandboxNode",
        "metadata": {"name": "shown"},
        "spec": {"capacity": {"cpu": 4, "memory": "8Gi"}},
    }
    kubectl("create", "-f", "-", input=json.dumps(body))

    def put(status: Status, *who: str) -> str:
        stored = json.loads(kubectl("get", "sbn", "shown", "-o", "json").stdout)
        text = json.dumps({**stored, "status": status})
        answer = kubectl(
            "replace", "--subresource=status", "-f", "-", *who, input=text, check=False
        )
        return answer.stderr

    assert put(SHOWN) == ""
    yield lambda status: put(status, *agent_of("shown"))
    kubectl("delete", "sbn", "shown")


@pytest.mark.parametrize(
    "changed",
    [
        {"conditions": [STOPPED, QUARANTINED]},
        {"conditions": [QUARANTINED, READY]},
        {"templates": [], "images": [{"name": "app:1", "sizeBytes": 5}]},
        {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
    ],
)
def test_an_agent_writes_its_part_of_its_nodes_status(
    shown_node: Callable[[Status], str], changed: Status
) -> None:
    assert shown_node({**SHOWN, **changed}) == ""


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"conditions": [READY]}, "no condition of its SandboxNode but Ready"),
        (
            {"conditions": [READY, {**QUARANTINED, "status": "False"}]},
            "no condition of its SandboxNode but Ready",
        ),
        ({"schedulable": "True"}, "may not write status.schedulable"),
        ({"allocated": {**SHOWN["allocated"], "cpu": "0"}}, "may not write status.allocated"),
        ({"effectiveCapacity": None}, "may not write status.effectiveCapacity"),
        (
            {"effectiveCapacity": {**SHOWN["effectiveCapacity"], "cpu": "64"}, "metricsTime": None},
            "may not write status.effectiveCapacity, status.metricsTime",
        ),
    ],
)
def test_an_agent_leaves_what_the_operator_says_of_its_node(
    shown_node: Callable[[Status], str], changed: Status, told: str
) -> None:
    status = {name: value for name, value in {**SHOWN, **changed}.items() if value is not None}

    assert told in shown_node(status)


@pytest.mark.parametrize("verb", ["create", "delete", "update"])
def test_an_agent_has_no_other_right_over_requests(kubectl: Kubectl, verb: str) -> None:
    answer = kubectl("auth", "can-i", verb, "sandboxrequests", *agent_of("n1"), check=False)

    assert answer.stdout.strip() == "no"
