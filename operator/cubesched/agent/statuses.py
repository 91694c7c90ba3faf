"""What a node's agent writes into a request's status: pure, whole status in, whole status out.

Fields that are not the agent's stay as they were read, also those that a newer release added.
"""

from __future__ import annotations

from typing import Any, Final

from cubesched.api.conditions import stored_conditions, with_condition, without_condition
from cubesched.fleet.entries import Weight

Status = dict[str, Any]

MAX_REFUSALS: Final = 8
MAX_REFUSAL_CHARS: Final = 256
_OF_A_SANDBOX: Final = frozenset({"Ready", "ResumeBlocked"})
_OFF_THE_NODE: Final = (
    *("nodeName", "reservation", "sandboxID", "endpoint"),
    *("score", "explanation"),
)
"""What says where it was, and why there."""


def starting(status: Status, *, generation: int, now: str) -> Status:
    """Claim: the machine is about to create the sandbox."""
    return with_condition(
        {**status, "phase": "Starting"},
        "Ready",
        value="False",
        reason="Starting",
        message="the node creates the sandbox",
        generation=generation,
        now=now,
    )


def confirmed(status: Status, *, node: str, generation: int, now: str) -> Status:
    """Claim what nobody has confirmed yet: this write is its binding as well."""
    bound = with_condition(
        status,
        "Scheduled",
        value="True",
        reason="Bound",
        message=f"bound to {node}",
        generation=generation,
        now=now,
    )
    return starting(bound, generation=generation, now=now)


def running(status: Status, *, sandbox: str, endpoint: str, generation: int, now: str) -> Status:
    """Report that the sandbox runs and where it is reached."""
    placed = {**status, "sandboxID": sandbox, "endpoint": endpoint}
    return _running(placed, generation=generation, now=now)


def paused(status: Status, *, keeping: Weight, generation: int, now: str) -> Status:
    """Stamp what a paused sandbox still takes, now that the machine has let go of the rest."""
    keeps = {"cpuMillis": keeping.cpu_millis, "memoryBytes": keeping.memory_bytes}
    stamped = {**status, "reservation": {**status["reservation"], "paused": keeps}}
    return _paused(stamped, generation=generation, now=now)


def resumed(status: Status, *, generation: int, now: str) -> Status:
    """Report that a paused sandbox runs again; the stamp of its pause is over."""
    reservation = {k: v for k, v in status["reservation"].items() if k != "paused"}
    return _running({**status, "reservation": reservation}, generation=generation, now=now)


def _running(status: Status, *, generation: int, now: str) -> Status:
    return with_condition(
        {**status, "phase": "Running"},
        "Ready",
        value="True",
        reason="Running",
        message="the sandbox runs",
        generation=generation,
        now=now,
    )


def resume_refused(status: Status, *, node: str, reason: str, generation: int, now: str) -> Status:
    """Give back what was to be resumed: it is still paused, and still on the node."""
    blocked = with_condition(
        {**status, "refusals": _refusals(status, node=node, reason=reason, now=now)},
        "ResumeBlocked",
        value="True",
        reason="InsufficientCapacity",
        message=f"{node} refused: {reason}",
        generation=generation,
        now=now,
    )
    return _paused(blocked, generation=generation, now=now)


def _paused(status: Status, *, generation: int, now: str) -> Status:
    return with_condition(
        {**status, "phase": "Paused"},
        "Ready",
        value="False",
        reason="Paused",
        message="the sandbox is paused",
        generation=generation,
        now=now,
    )


def start_failed(status: Status, *, message: str, generation: int, now: str) -> Status:
    """Report that the sandbox could not be started; nothing of it is left."""
    return with_condition(
        {**_unblocked(status), "phase": "Failed", "finishedTime": now},
        "Ready",
        value="False",
        reason="StartFailed",
        message=message,
        generation=generation,
        now=now,
    )


def finished(status: Status, *, succeeded: bool, message: str, generation: int, now: str) -> Status:
    """Report that the sandbox has ended; the machine has let go of it."""
    return with_condition(
        {
            **_unblocked(status),
            "phase": "Succeeded" if succeeded else "Failed",
            "finishedTime": now,
        },
        "Ready",
        value="False",
        reason="Finished",
        message=message,
        generation=generation,
        now=now,
    )


def refused(status: Status, *, node: str, reason: str, generation: int, now: str) -> Status:
    """Give the request back, in one write: it names no node and holds no room any more."""
    refusals = _refusals(status, node=node, reason=reason, now=now)
    return with_condition(
        {**_off_the_node(status), "refusals": refusals},
        "Scheduled",
        value="False",
        reason="Refused",
        message=f"{node} refused: {reason}",
        generation=generation,
        now=now,
    )


def _unblocked(status: Status) -> Status:
    """Return a status that says nothing of a resume that was blocked."""
    conditions = without_condition(status.get("conditions"), "ResumeBlocked")
    return {**status, "conditions": conditions}


def _refusals(status: Status, *, node: str, reason: str, now: str) -> list[Any]:
    refusal = {"node": node, "reason": reason[:MAX_REFUSAL_CHARS], "time": now}
    return [*status.get("refusals", ()), refusal][-MAX_REFUSALS:]


def evicted(status: Status, *, generation: int, now: str) -> Status:  # noqa: ARG001 - as the others
    """Give back what was evicted, once it is stopped; why stands there as the operator left it."""
    return _off_the_node(status)


def _off_the_node(status: Status) -> Status:
    """Return a status that names no node and holds no room."""
    kept = {name: value for name, value in status.items() if name not in _OFF_THE_NODE}
    stored = stored_conditions(status.get("conditions"))
    conditions = [one for one in stored if one.get("type") not in _OF_A_SANDBOX]
    return {**kept, "phase": "Pending", "conditions": conditions}
