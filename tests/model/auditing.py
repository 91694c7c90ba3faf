"""Judges every committed write and every start on a machine: what must never be.

Reads only what the store commits and what the machines do, never what a replica believes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.model.apiserver import ADMIN
from tests.model.loads import Load, NodeLimits
from tests.model.store import Change, Object, Store

from cubesched.agent.runtime import Order
from cubesched.fleet.entries import Weight

REQUESTS = "cubesched.io/v1alpha1/sandboxrequests"
CONFIRMED = frozenset({"Bound", "Starting", "Running", "Paused", "Evicting"})
COUNTED = CONFIRMED | {"Reserved"}
FINISHED = frozenset({"Succeeded", "Failed"})
ALLOWED = frozenset(
    {
        ("Pending", "Reserved"),
        ("Pending", "Bound"),
        ("Pending", "Failed"),
        ("Reserved", "Reserved"),
        ("Reserved", "Bound"),
        ("Reserved", "Starting"),
        ("Reserved", "Pending"),
        ("Bound", "Starting"),
        ("Bound", "Pending"),
        ("Starting", "Running"),
        ("Starting", "Pending"),
        ("Starting", "Failed"),
        ("Running", "Succeeded"),
        ("Running", "Failed"),
        ("Running", "Evicting"),
        ("Running", "Paused"),
        ("Paused", "Reserved"),
        ("Paused", "Succeeded"),
        ("Paused", "Failed"),
        ("Paused", "Evicting"),
        ("Reserved", "Paused"),
        ("Bound", "Paused"),
        ("Starting", "Paused"),
        ("Starting", "Succeeded"),
        ("Evicting", "Pending"),
        ("Evicting", "Succeeded"),
        ("Evicting", "Failed"),
    }
)


ONLY_OF_A_RESUME = frozenset(
    {("Reserved", "Paused"), ("Bound", "Paused"), ("Starting", "Paused"), ("Starting", "Succeeded")}
)


class ViolationError(AssertionError):
    """Something happened that must never happen."""


@dataclass
class Auditor:
    """Raises nothing by itself: the first violation is kept and asked for by the world."""

    store: Store
    limits: Mapping[str, NodeLimits]
    may_bind_directly: Callable[[Mapping[str, str]], bool]
    """Whether the Leases allowed it when a reservation was made."""
    violation: str = ""
    fired: Counter[str] = field(default_factory=Counter)
    takes_now: Callable[[str, str], Weight | None] = lambda _node, _sandbox: None
    """What a sandbox really takes on its machine; None when it is not there."""
    claimed: set[str] = field(default_factory=set)
    """Reservation ids that an agent's claim was stored for."""
    fitted: set[str] = field(default_factory=set)
    """Reservation ids that fitted at some revision since they stand: only then may an evaluation,
    by whomever and from however far behind, have said yes."""

    def __post_init__(self) -> None:
        """Listen to every commit."""
        self.store.listeners.append(self.committed)

    def note_fitting(self) -> None:
        """Note which standing reservations fit now, beside everything else that counts."""
        for obj in self.requests():
            status = _status(obj)
            if status["phase"] == "Reserved" and _reservation_id(status) not in self.fitted:
                node = status["nodeName"]
                if not self.confirmed_on(node, COUNTED).exceeds(self.limits[node]):
                    self.fitted.add(_reservation_id(status))

    def committed(self, change: Change) -> None:
        """Judge one committed write."""
        if change.key.resource != REQUESTS:
            return
        before, after = _status(change.previous), _status(change.object)
        if change.kind == "DELETED":
            self.fired[f"deleted while {before['phase']}"] += 1
            if change.by != ADMIN:
                self.fired["expired"] += 1
                if before["phase"] not in FINISHED:
                    self._object(change, f"was deleted while {before['phase']}")
        else:
            self._count_transition(before, after, change)
            self.fired["node silent"] += says_lost(after) and not says_lost(before)
            if after["phase"] in CONFIRMED:
                self._check_node(after["nodeName"], change)
        self.note_fitting()

    def _count_transition(
        self, before: Mapping[str, Any], after: Mapping[str, Any], change: Change
    ) -> None:
        old, new = before["phase"], after["phase"]
        old_id, new_id = _reservation_id(before), _reservation_id(after)
        if (old, old_id) == (new, new_id):
            if before.get("nodeName") != after.get("nodeName"):
                self._object(change, "changed its node under the same reservation id")
            return
        self.fired[f"{old} -> {new}"] += 1
        if (old, new) not in ALLOWED:
            self._object(change, f"went from {old} to {new}")
        self._check_resume(before, after, change)
        if new == "Reserved" and new_id == old_id:
            self._object(change, "was reserved again under the same id")
        self._check_who(before, after, change)
        if new == "Starting":
            self.claimed.add(new_id)
        if old == "Reserved" and new in {"Bound", "Starting"}:
            if new_id not in self.fitted:
                self._object(change, "was confirmed though its reservation never fitted")
            if new_id != old_id or before["nodeName"] != after["nodeName"]:
                self._object(change, "was confirmed on another reservation than it had")
            self.fired["confirmed by another replica"] += (
                before["reservation"]["replica"] != change.by
            )

    def _check_resume(
        self, before: Mapping[str, Any], after: Mapping[str, Any], change: Change
    ) -> None:
        """Judge what concerns a sandbox that is paused, or that is to be resumed."""
        old, new = before["phase"], after["phase"]
        resumes = bool((before.get("reservation") or {}).get("resume"))
        if new == "Pending" and old != "Evicting" and resumes:
            self._object(change, "lost the sandbox that it was to resume")
        if (old, new) in ONLY_OF_A_RESUME and not resumes:
            self._object(change, f"went from {old} to {new} though it was not to be resumed")
        if (old, new) == ("Paused", "Reserved") and before["nodeName"] != after["nodeName"]:
            self._object(change, "is to be resumed on another node")
        if new == "Paused" and old in {"Running", "Starting"}:
            stamp = after["reservation"].get("paused", after["reservation"])
            takes = self.takes_now(after["nodeName"], after["sandboxID"])
            if takes is not None and takes.cpu_millis > stamp["cpuMillis"]:
                self._object(change, "was written Paused before the machine let go")

    def _check_who(
        self, before: Mapping[str, Any], after: Mapping[str, Any], change: Change
    ) -> None:
        """Each way to a binding is for those alone whom the reservation names."""
        who = _confirmed_by(after)
        match before["phase"], after["phase"]:
            case "Pending", "Bound" if who != "none":
                self._object(change, f"was bound directly though the {who} is to confirm it")
            case "Pending", "Bound" if not self.may_bind_directly(after["reservation"]):
                self._object(change, "was bound directly before all Leases showed that mode")
            case "Reserved", "Bound" if who != "operator":
                self._object(change, "was confirmed though the agent is to do that")
            case "Reserved", "Starting" if who != "agent":
                self._object(change, "was claimed before it was confirmed")

    def _check_node(self, node: str, change: Change) -> None:
        # What nobody confirmed may be too much; it makes no room for what somebody confirmed.
        load = self.confirmed_on(node, evaluated_only=True)
        if node in self.limits and load.exceeds(self.limits[node]):
            self._object(change, f"over-commits {node}: {load} of {self.limits[node]}")

    def confirmed_on(
        self,
        node: str,
        phases: frozenset[str] = CONFIRMED,
        *,
        but: str = "",
        evaluated_only: bool = False,
    ) -> Load:
        """Return what counts on a node, without the request that has the uid `but`."""
        load = Load()
        for obj in self.requests():
            status = _status(obj)
            if status.get("nodeName") != node or obj["metadata"]["uid"] == but:
                continue
            if evaluated_only and _confirmed_by(status) == "none":
                continue
            if status["phase"] in phases:
                load.add(status)
            elif status["phase"] == "Reserved" and status["reservation"].get("resume"):
                load.add_kept(status)
        return load

    def requests(self) -> list[Object]:
        """Return all stored requests."""
        return [obj for key, obj in self.store.objects.items() if key.resource == REQUESTS]

    def _object(self, change: Change, text: str) -> None:
        if not self.violation:
            name = change.key.name
            self.violation = (
                f"revision {change.revision} at {change.at_seconds:.3f} s by {change.by}: "
                f"{name} {text}"
            )

    def raise_violation(self) -> None:
        """Raise the first violation, if there is one."""
        if self.violation:
            raise ViolationError(self.violation)

    def started(self, node: str, order: Order, on_machine: Mapping[str, Any], twins: int) -> None:
        """Judge a start on a machine; `on_machine` holds the weights of what runs there already."""
        self.fired["sandbox started"] += 1
        if order.reservation_id not in self.claimed:
            self.violation = self.violation or f"{order.name} is started before it is claimed"
        limits = self.limits[node]
        used = sum(weight.cpu_millis for weight in on_machine.values()) + order.weight.cpu_millis
        if used > limits.cpu_millis or len(on_machine) + 1 > limits.sandboxes:
            self.violation = self.violation or f"machine {node} is over its limits: {used} millis"
        if twins:
            self.violation = self.violation or f"{order.name} is started twice, again on {node}"

    def resumed(
        self, node: str, sandbox: str, weight: Weight, on_machine: Mapping[str, Weight]
    ) -> None:
        """Judge a resume on a machine; it may run already, then nothing changes."""
        self.fired["sandbox resumed"] += 1
        used = weight.cpu_millis + sum(
            other.cpu_millis for name, other in on_machine.items() if name != sandbox
        )
        if used > self.limits[node].cpu_millis:
            self.violation = self.violation or f"machine {node} is over its limits: {used} millis"


def _status(obj: Object | None) -> Mapping[str, Any]:
    status: Mapping[str, Any] = (obj or {}).get("status") or {"phase": "Pending"}
    return status


def says_lost(status: Mapping[str, Any]) -> bool:
    """Tell whether a request says that its node is gone or silent."""
    conditions = status.get("conditions", ())
    return any(c["type"] == "Ready" and c["reason"] == "NodeLost" for c in conditions)


def _confirmed_by(status: Mapping[str, Any]) -> str:
    return str((status.get("reservation") or {}).get("confirmation", "operator"))


def _reservation_id(status: Mapping[str, Any]) -> str:
    return str((status.get("reservation") or {}).get("id", ""))
