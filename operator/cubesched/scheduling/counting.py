"""What is counted, timed and announced of each step; nothing here decides anything."""

from __future__ import annotations

from dataclasses import dataclass, field

from cubesched.api import REQUESTS
from cubesched.core.snapshot import Snapshot
from cubesched.fleet.entries import Entry
from cubesched.fleet.ledger import Change
from cubesched.scheduling.attempts import No, Yes
from cubesched.scheduling.faultlog import FaultLog
from cubesched.scheduling.inflight import Intent, Write
from cubesched.scheduling.ports import Clock, Events, Meter


@dataclass(slots=True)
class Counting:
    """One replica's numbers and events about requests."""

    identity: str
    clock: Clock
    meter: Meter
    events: Events
    first_seen: dict[str, float] = field(default_factory=dict)
    """When this replica first saw each request that it owns (monotonic)."""
    faults: FaultLog = field(init=False)
    _limited: str = ""

    def __post_init__(self) -> None:
        """Keep the log of failures on the same clock."""
        self.faults = FaultLog(self.clock)

    def attempt(self, answer: Yes | No, *, seconds: float, fleet: Snapshot) -> None:
        """Count one decision."""
        profile = answer.pipeline.profile if answer.pipeline else ""
        self.meter.observe("scheduler_duration_seconds", seconds, profile=profile)
        self._faults(answer, profile)
        if isinstance(answer, No):
            self._result(answer.profile, "unschedulable", answer.reason)
            return
        self._result(profile, "reserved", "none")
        template = answer.request.template_id
        holders = fleet.templates.get(template)
        row = fleet.row_of.get(answer.placed.node)  # it may have moved while a plugin was asked
        held = holders is not None and row is not None and bool(holders[row])
        hit = str(held).lower() if template else "none"
        self.meter.inc("scheduler_decisions_total", profile=profile, template_hit=hit)

    def _faults(self, answer: Yes | No, profile: str) -> None:
        decision = answer.placed if isinstance(answer, Yes) else answer.rejected
        for fault in decision.faults if decision else ():
            self.meter.inc(
                "cubesched_plugin_failures_total",
                profile=profile,
                plugin=fault.plugin,
                policy=fault.policy,
            )
            self.faults.note(profile, fault)

    def limit(self, uid: str) -> None:
        """Count, once each time it is next, a request that waits for `maxInFlight` to let it in."""
        if uid and uid != self._limited:
            self._result("", "unschedulable", "concurrency_limit")
        self._limited = uid

    def _result(self, profile: str, result: str, reason: str) -> None:
        self.meter.inc("scheduler_attempts_total", profile=profile, result=result, reason=reason)

    def rescue(self) -> None:
        """Count a request that only the flush has saved."""
        self.meter.inc("cubesched_flush_rescues_total")

    def meet(self, change: Change) -> None:
        """Time a request of this replica's share from its first sight to Running or Failed."""
        entry = change.after
        if entry is None:
            self.first_seen.pop(change.uid, None)
            return
        if _is_claimed(change) and entry.replica == self.identity:
            self._tell_bound(entry)
        if entry.phase in {"Running", "Failed"}:
            since = self.first_seen.pop(change.uid, None)
            if since is not None:
                self.meter.observe(
                    "sandbox_create_duration_seconds",
                    self.clock.monotonic() - since,
                    profile=entry.status.profile,
                    result=entry.phase.lower(),
                )

    def settled(self, write: Write, after: Entry | None, rejected: str) -> None:
        """Announce a binding that this replica has confirmed; count a reservation it lost."""
        if after is None or rejected:
            return
        is_first = write.intent in {Intent.RESERVE, Intent.BIND}
        is_lost = is_first and after.replica != self.identity
        if write.intent in {Intent.CONFIRM, Intent.BIND} and after.phase == "Bound" and not is_lost:
            self._tell_bound(after)
        if is_lost:
            profile = str(write.status.get("profile", ""))
            self.meter.inc("cubesched_bind_conflicts_total", profile=profile, kind="write")

    def _tell_bound(self, entry: Entry) -> None:
        self.events.post(
            kind=REQUESTS.kind,
            namespace=entry.namespace,
            name=entry.name,
            uid=entry.uid,
            reason="Bound",
            note=f"bound to {entry.node}" + ", to be resumed" * bool(entry.resume),
            action="Binding",
        )


def _is_claimed(change: Change) -> bool:
    """Tell whether this event shows a reservation that its node's agent has confirmed."""
    before, after = change.before, change.after
    was_reserved = before is not None and before.phase == "Reserved"
    return was_reserved and after is not None and after.phase == "Starting"
