"""What a node's agent writes into a request's status: pure, whole status in, whole status out.

Fields that are not the agent's stay as they were read, also those that a newer release added.
"""

from __future__ import annotations

from typing import Any, Final

from cubesched.api.conditions import put_condition, stored_conditions

Status = dict[str, Any]

MAX_REFUSALS: Final = 8
MAX_REFUSAL_CHARS: Final = 256
_OFF_THE_NODE: Final = ("nodeName", "reservation", "sandboxID", "endpoint")


def with_condition(
    status: Status, kind: str, *, value: str, reason: str, message: str, generation: int, now: str
) -> Status:
    """Return `status` with one condition set; its transition time moves only with its value."""
    conditions = put_condition(
        status.get("conditions"),
        kind,
        value=value,
        reason=reason,
        message=message,
        generation=generation,
        now=now,
    )
    return {**status, "conditions": conditions}


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


def running(status: Status, *, sandbox: str, endpoint: str, generation: int, now: str) -> Status:
    """Report that the sandbox runs and where it is reached."""
    return with_condition(
        {**status, "phase": "Running", "sandboxID": sandbox, "endpoint": endpoint},
        "Ready",
        value="True",
        reason="Running",
        message="the sandbox runs",
        generation=generation,
        now=now,
    )


def start_failed(status: Status, *, message: str, generation: int, now: str) -> Status:
    """Report that the sandbox could not be started; nothing of it is left."""
    return with_condition(
        {**status, "phase": "Failed", "finishedTime": now},
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
        {**status, "phase": "Succeeded" if succeeded else "Failed", "finishedTime": now},
        "Ready",
        value="False",
        reason="Finished",
        message=message,
        generation=generation,
        now=now,
    )


def refused(status: Status, *, node: str, reason: str, generation: int, now: str) -> Status:
    """Give the request back, in one write: it names no node and holds no room any more."""
    refusal = {"node": node, "reason": reason[:MAX_REFUSAL_CHARS], "time": now}
    refusals = [*status.get("refusals", ()), refusal][-MAX_REFUSALS:]
    return with_condition(
        {**_off_the_node(status), "refusals": refusals},
        "Scheduled",
        value="False",
        reason="Refused",
        message=f"{node} refused: {reason}",
        generation=generation,
        now=now,
    )


def evicted(status: Status, *, generation: int, now: str) -> Status:  # noqa: ARG001 - as the others
    """Give back what was evicted, once it is stopped; why stands there as the operator left it."""
    return _off_the_node(status)


def _off_the_node(status: Status) -> Status:
    """Return a status that names no node and holds no room."""
    kept = {name: value for name, value in status.items() if name not in _OFF_THE_NODE}
    conditions = [
        c for c in stored_conditions(status.get("conditions")) if c.get("type") != "Ready"
    ]
    return {**kept, "phase": "Pending", "conditions": conditions}
