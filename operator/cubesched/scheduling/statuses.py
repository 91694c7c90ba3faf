"""The statuses that transitions write: an entry's whole status with only our fields changed.

What other writers, or newer versions, keep in the status survives.
"""

from __future__ import annotations

from typing import Any

from cubesched.api.conditions import with_condition, without_condition
from cubesched.api.timestamps import timestamp
from cubesched.core.decision import Reason, ResumeReason
from cubesched.core.scheduler_settings import Confirmation
from cubesched.fleet.entries import Entry, Weight
from cubesched.fleet.objects import plain

Status = dict[str, Any]
SCHEDULED, READY, RESUME_BLOCKED = "Scheduled", "Ready", "ResumeBlocked"
MOST_ATTEMPTS = (1 << 31) - 1
"""The largest count of attempts that can be stored."""
_FOR_WANT_OF_ROOM = frozenset({Reason.CONFLICT, Reason.REFUSED})
_READY_TEXTS = {
    "Starting": "the node creates the sandbox",
    "Running": "the sandbox runs",
    "Paused": "the sandbox is paused",
}
_OF_PLACEMENT = ("nodeName", "reservation", "sandboxID", "endpoint", "score")


def copied(entry: Entry) -> Status:
    """Return the entry's status as it is stored, to be changed."""
    return plain(entry.status_raw)


def _saying(
    status: Status,
    generation: int,
    condition: tuple[str, str],
    *,
    reason: str,
    message: str,
    wall: float,
) -> Status:
    """Return the status with a condition, (type, status), of this generation of the spec."""
    kind, value = condition
    return with_condition(
        status,
        kind,
        value=value,
        reason=reason,
        message=message,
        generation=generation,
        now=timestamp(wall),
    )


def reserved(
    entry: Entry,
    *,
    node: str,
    node_uid: str,
    reservation_id: str,
    replica: str,
    weight: Weight,
    profile: str,
    revision: str,
    attempts: int,
    confirmation: Confirmation,
    score: float,
    wall: float,
) -> Status:
    """Pending or Reserved -> Reserved on `node`, under a new id.

    Where the operator does not confirm it, this is its last write of the placement, so the score
    goes with it.
    """
    status = copied(entry)
    for key in ("explanation", "nextAttemptTime", "score"):
        status.pop(key, None)
    status.update(
        phase="Reserved",
        nodeName=node,
        profile=profile,
        policyRevision=revision,
        attempts=_storable(attempts),
        reservation={
            "id": reservation_id,
            "replica": replica,
            "time": timestamp(wall),
            "nodeUID": node_uid,
            "cpuMillis": weight.cpu_millis,
            "memoryBytes": weight.memory_bytes,
            "diskBytes": weight.disk_bytes,
        },
    )
    if confirmation is not Confirmation.OPERATOR:
        status["reservation"]["confirmation"] = str(confirmation)
        status["score"] = _shown(score)
    return status


def bound(entry: Entry, *, line: str, score: float | None, wall: float) -> Status:
    """Reserved -> Bound; `line` explains the choice when this replica made it."""
    status = copied(entry)
    if score is not None:
        status["score"] = _shown(score)
    return _bind(status, line=line, wall=wall, generation=entry.generation)


def bound_directly(reserved: Status, *, line: str, wall: float, generation: int) -> Status:
    """Pending -> Bound in one write: the `reserved` status, as if it had been confirmed."""
    return _bind(reserved, line=line, wall=wall, generation=generation)


def _bind(status: Status, *, line: str, wall: float, generation: int) -> Status:
    status["phase"] = "Bound"
    if line:
        status["explanation"] = line
    return _saying(
        status,
        generation,
        (SCHEDULED, "True"),
        reason="Bound",
        message=f"bound to {status['nodeName']}",
        wall=wall,
    )


def given_back(entry: Entry, *, reason: str, message: str, wall: float) -> Status:
    """Reserved or Bound -> where it came from: Pending, or Paused when it was to be resumed.

    Whoever undoes a reservation writes this: the node still holds what was to be resumed.
    """
    if not entry.resume:
        return pending(entry, reason=reason, message=message, wall=wall)
    blocked_by = (
        ResumeReason.INSUFFICIENT_CAPACITY
        if reason in _FOR_WANT_OF_ROOM
        else ResumeReason.NODE_NOT_READY
    )
    status = resume_blocked(entry, reason=blocked_by, message=message, wall=wall)
    return {**status, "phase": "Paused"}


def resume_blocked(entry: Entry, *, reason: ResumeReason, message: str, wall: float) -> Status:
    """Return why a paused sandbox is not resumed; everything of its placement stays."""
    status = copied(entry)
    return _saying(
        status,
        entry.generation,
        (RESUME_BLOCKED, "True"),
        reason=reason,
        message=message,
        wall=wall,
    )


def resuming(
    entry: Entry, *, reservation_id: str, replica: str, confirmation: Confirmation, wall: float
) -> Status:
    """Paused -> Reserved on the same node under a new id, to be counted in full again.

    The stamp of the pause stays, for when nothing comes of it.
    """
    status = unblocked(entry)
    kept = {k: v for k, v in status["reservation"].items() if k != "confirmation"}
    new = {"id": reservation_id, "replica": replica, "time": timestamp(wall)}
    if confirmation is not Confirmation.OPERATOR:
        new["confirmation"] = str(confirmation)
    status.update(phase="Reserved", reservation={**kept, **new, "resume": entry.sandbox})
    return status


def unblocked(entry: Entry) -> Status:
    """Return the status without a word of why it is not resumed."""
    status = copied(entry)
    if "conditions" in status:
        status["conditions"] = without_condition(status["conditions"], RESUME_BLOCKED)
    return status


def pending(entry: Entry, *, reason: str, message: str, wall: float) -> Status:
    """Reserved or Bound -> Pending: nothing of the placement is left.

    For what has begun nowhere; an undone reservation is `given_back`.
    """
    status = copied(entry)
    for key in (*_OF_PLACEMENT, "explanation"):
        status.pop(key, None)
    status["phase"] = "Pending"
    status["conditions"] = without_condition(status.get("conditions"), READY)
    return _unscheduled(status, entry, reason=reason, message=message, wall=wall)


def evicting(entry: Entry, *, reason: str, message: str, wall: float) -> Status:
    """Evict, Running or Paused -> Evicting: it counts until its agent has stopped it."""
    status = unblocked(entry)
    status["phase"] = "Evicting"
    return _unscheduled(status, entry, reason=reason, message=message, wall=wall)


def failed(entry: Entry, *, condition: str, reason: str, message: str, wall: float) -> Status:
    """Any phase -> Failed; the node stays named for whoever looks later."""
    status = unblocked(entry)
    status.update(phase="Failed", finishedTime=timestamp(wall))
    status.pop("nextAttemptTime", None)
    return _saying(
        status,
        entry.generation,
        (condition, "False"),
        reason=reason,
        message=message,
        wall=wall,
    )


def no_candidate(entry: Entry, *, message: str, wall: float) -> Status:
    """Pending -> Failed: the Profile says not to wait for a node."""
    return failed(
        entry, condition=SCHEDULED, reason=Reason.NO_CANDIDATE, message=message, wall=wall
    )


def node_silent(entry: Entry, *, message: str, wall: float) -> Status:
    """Keep the phase of what an agent has claimed, Ready or not: nobody knows whether it runs."""
    status = copied(entry)
    return _saying(
        status,
        entry.generation,
        (READY, "False"),
        reason=Reason.NODE_LOST,
        message=message,
        wall=wall,
    )


def node_heard(entry: Entry, *, wall: float) -> Status:
    """Put Ready back to what the phase says, after the node was heard again."""
    status = copied(entry)
    is_paused = entry.phase == "Paused" or (entry.phase == "Evicting" and _is_weighed_paused(entry))
    reason = "Paused" if is_paused else "Starting" if entry.phase == "Starting" else "Running"
    return _saying(
        status,
        entry.generation,
        (READY, "True" if reason == "Running" else "False"),
        reason=reason,
        message=_READY_TEXTS[reason],
        wall=wall,
    )


def _is_weighed_paused(entry: Entry) -> bool:
    reservation = entry.status.reservation
    return reservation is not None and reservation.paused is not None


def waiting(
    entry: Entry,
    *,
    reason: str,
    message: str,
    explanation: str,
    attempts: int,
    next_attempt: float,
    profile: str,
    revision: str,
    wall: float,
) -> Status:
    """Pending, with why and until when; `next_attempt` is a wall time."""
    status = copied(entry)
    status.update(
        phase="Pending",
        attempts=_storable(attempts),
        nextAttemptTime=timestamp(next_attempt),
    )
    for key, value in (
        ("explanation", explanation),
        ("profile", profile),
        ("policyRevision", revision),
    ):
        if value:
            status[key] = value
        else:
            status.pop(key, None)
    return _unscheduled(status, entry, reason=reason, message=message, wall=wall)


def _unscheduled(status: Status, entry: Entry, *, reason: str, message: str, wall: float) -> Status:
    told = (SCHEDULED, "False")
    return _saying(status, entry.generation, told, reason=reason, message=message, wall=wall)


def _shown(score: float) -> str:
    return f"{score:.2f}"


def _storable(attempts: int) -> int:
    """Return a count that the schema takes, whatever stood there before."""
    return max(0, min(attempts, MOST_ATTEMPTS))
