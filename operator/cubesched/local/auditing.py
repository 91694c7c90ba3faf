"""What the auditor counts, written apart from the scheduler's own ledger: errors are not shared.

Nothing here reads a clock or a network; events and lines come in, violations come out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, NamedTuple

from cubesched.api.quantity import parse_millis, parse_units

CONFIRMED: Final = frozenset({"Bound", "Starting", "Running", "Paused", "Evicting"})
CREATING: Final = frozenset({"Bound", "Starting"})
SMALLER: Final = frozenset({"Paused", "Evicting", "Reserved"})
"""Phases in which only the stamp of a pause counts, where there is one."""
WINDOW_SECONDS: Final = 30.0
"""A limit that was lowered still counts this long: nodes and requests come in separate streams."""
MAX_EXAMPLES: Final = 20


class Amount(NamedTuple):
    """What is used, or allowed, of everything that is limited; None = not limited."""

    cpu_millis: int | None = 0
    memory_bytes: int | None = 0
    disk_bytes: int | None = 0
    sandboxes: int | None = 0
    creating: int | None = 0

    def plus(self, other: Amount, sign: int = 1) -> Amount:
        """Return the sum; both must be use, not limits."""
        return Amount(*((a or 0) + sign * (b or 0) for a, b in zip(self, other, strict=True)))

    def rises_from(self, other: Amount) -> bool:
        """Tell whether anything is more than in `other`; both must be use, not limits."""
        return any((a or 0) > (b or 0) for a, b in zip(self, other, strict=True))

    def excess_over(self, limits: list[Amount]) -> str:
        """Name what is above the largest of the limits; empty when all fits."""
        for name, used, allowed in zip(self._fields, self, zip(*limits, strict=True), strict=True):
            if None not in allowed and (used or 0) > max(allowed):
                return f"{name} {used} of {max(allowed)}"
        return ""


@dataclass(slots=True)
class Violations:
    """Everything that must never happen, as counted; a few examples are kept in words."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, kind: str, text: str) -> None:
        """Count one."""
        self.counts[kind] += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(f"{kind}: {text}")


@dataclass(slots=True)
class NodeLimits:
    """The limits of each node, those just lowered included."""

    monotonic: Callable[[], float]
    overcommit_cpu: Fraction = Fraction(1)
    overcommit_memory: Fraction = Fraction(1)
    _current: dict[str, Amount] = field(default_factory=dict)
    _former: dict[str, list[tuple[float, Amount]]] = field(default_factory=dict)
    _largest: dict[str, list[Amount]] = field(default_factory=dict)

    def learn(self, node: Mapping[str, Any]) -> None:
        """Take the newest state of one SandboxNode."""
        name = node["metadata"]["name"]
        limits = self._limits_of(node.get("spec", {}))
        before = self._current.get(name)
        if before == limits:
            return
        if before is not None:
            self._former.setdefault(name, []).append((self.monotonic(), before))
        self._current[name] = limits
        self._largest.setdefault(name, []).append(limits)

    def in_force(self, name: str) -> list[Amount]:
        """Return every limit that an evaluator may have seen lately; empty when never seen."""
        current = self._current.get(name)
        if current is None:
            return []
        oldest = self.monotonic() - WINDOW_SECONDS
        former = [pair for pair in self._former.get(name, ()) if pair[0] >= oldest]
        self._former[name] = former
        return [current, *(limits for _, limits in former)]

    def ever(self, name: str) -> list[Amount]:
        """Return every limit that the node ever had."""
        return self._largest.get(name, [])

    def _limits_of(self, spec: Mapping[str, Any]) -> Amount:
        amounts = {**spec.get("capacity", {}), **spec.get("quota", {})}
        disk = amounts.get("systemDisk")
        cpu_millis = parse_millis(amounts["cpu"], round_up=False)
        memory_bytes = parse_units(amounts["memory"], round_up=False)
        return Amount(
            int(cpu_millis * self.overcommit_cpu),
            int(memory_bytes * self.overcommit_memory),
            None if disk is None else parse_units(disk, round_up=False),
            amounts.get("sandboxes"),
            amounts.get("createConcurrency"),
        )


class _Placed(NamedTuple):
    """One request as last seen."""

    key: str
    phase: str
    node: str
    weight: Amount
    is_confirmed: bool
    """It has its node for certain, also while it is reserved there to be resumed."""
    is_direct: bool
    """Nobody confirmed it: it may be too much, which is no violation."""


@dataclass(slots=True)
class RequestAudit:
    """A list-watch sink's worth of checks: confirmed sums by node, at every revision in order."""

    limits: NodeLimits
    violations: Violations
    over_committed: set[str] = field(default_factory=set)
    over_dispatched: set[str] = field(default_factory=set)
    """Nodes that at some time held too much together with what was bound directly."""
    directly_bound: set[str] = field(default_factory=set)
    """Requests, by uid, that were ever bound without a confirmation."""
    revisions: int = 0
    _requests: dict[str, _Placed] = field(default_factory=dict)
    _used: defaultdict[str, Amount] = field(default_factory=lambda: defaultdict(Amount))
    _direct: defaultdict[str, Amount] = field(default_factory=lambda: defaultdict(Amount))
    """By what was bound directly; it is not in `_used`."""

    def replace_all(self, objects: list[Mapping[str, Any]]) -> None:
        """Take a whole list; what happened between two lists is not judged."""
        self._requests = {o["metadata"]["uid"]: _placed(o) for o in objects}
        self._used.clear()
        self._direct.clear()
        for uid, request in self._requests.items():
            self._count(uid, request, 1)
        for node in {*self._used, *self._direct}:
            self._check(node, "the list")

    def apply(self, kind: str, request: Mapping[str, Any]) -> None:
        """Apply one event."""
        self.revisions += 1
        uid = request["metadata"]["uid"]
        before = self._requests.pop(uid, None)
        if before is not None:
            self._count(uid, before, -1)
        if kind == "DELETED":
            return
        after = self._requests[uid] = _placed(request)
        if not after.is_confirmed:
            return
        self._count(uid, after, 1)
        self._check_move(before, after)
        if before is None or not before.is_confirmed or after.weight.rises_from(before.weight):
            # A lowered limit alone is no violation: only a confirmation under it is.
            self._check(after.node, after.key)

    def by_phase(self) -> dict[str, int]:
        """Return how many requests are in each phase."""
        counts = Counter(request.phase for request in self._requests.values())
        return dict(sorted(counts.items()))

    def _count(self, uid: str, request: _Placed, sign: int) -> None:
        if request.is_confirmed:
            sums = self._direct if request.is_direct else self._used
            sums[request.node] = sums[request.node].plus(request.weight, sign)
        if request.is_confirmed and request.is_direct:
            self.directly_bound.add(uid)

    def _check(self, node: str, culprit: str) -> None:
        limits = self.limits.in_force(node)
        together = self._used[node].plus(self._direct[node])
        if self._direct[node].sandboxes and limits and together.excess_over(limits):
            self.over_dispatched.add(node)
        excess = self._used[node].excess_over(limits) if limits else ""
        if excess:
            self.over_committed.add(node)
            self.violations.add("over_committed", f"{node}: {excess}, with {culprit}")

    def _check_move(self, before: _Placed | None, after: _Placed) -> None:
        if before is not None and before.is_confirmed and before.node != after.node:
            text = f"{after.key} went from {before.node} straight to {after.node}"
            self.violations.add("moved_while_confirmed", text)


def _placed(request: Mapping[str, Any]) -> _Placed:
    meta = request["metadata"]
    status = request.get("status", {})
    phase = status.get("phase", "Pending")
    reservation = status.get("reservation", {})
    stamp = reservation.get("paused", {}) if phase in SMALLER else {}
    is_kept = phase == "Reserved" and bool(reservation.get("resume"))
    counted = {**reservation, **stamp}
    weight = Amount(
        counted.get("cpuMillis", 0),
        counted.get("memoryBytes", 0),
        counted.get("diskBytes", 0),
        1,
        int(phase in CREATING),
    )
    key = f"{meta.get('namespace', '')}/{meta['name']}"
    is_confirmed = is_kept or phase in CONFIRMED
    is_direct = reservation.get("confirmation") == "none"
    return _Placed(key, phase, status.get("nodeName", ""), weight, is_confirmed, is_direct)


class _Sandbox(NamedTuple):
    """One sandbox that runs by the log."""

    uid: str
    weight: Amount
    full: Amount
    """What it takes when it is not paused."""


@dataclass(slots=True)
class MachineAudit:
    """What really ran, from the agents' log: no request twice at once, no machine too full."""

    limits: NodeLimits
    violations: Violations
    lines: int = 0
    starts: int = 0
    _running: dict[str, dict[str, _Sandbox]] = field(default_factory=dict)
    """For each node its sandboxes."""
    _peaks: dict[str, list[Amount]] = field(default_factory=dict)

    def apply(self, line: Mapping[str, Any]) -> None:
        """Take one line of the log."""
        self.lines += 1
        sandboxes = self._running.setdefault(line["node"], {})
        match line["event"]:
            case "boot":
                sandboxes.clear()
            case "stop":
                sandboxes.pop(line["sandbox"], None)
            case "start":
                self._start(line, sandboxes)
            case "pause" if (found := sandboxes.get(line["sandbox"])) is not None:
                sandboxes[line["sandbox"]] = found._replace(weight=_weight(line))
            case "resume" if (found := sandboxes.get(line["sandbox"])) is not None:
                sandboxes[line["sandbox"]] = found._replace(weight=found.full)
                self._note_peak(line["node"], sandboxes)
            case "pause" | "resume":
                text = f"{line['sandbox']} is not on {line['node']}"
                self.violations.add("unreadable_log", text)
            case other:
                self.violations.add("unreadable_log", f"unknown event {other!r}")

    def still_running(self) -> int:
        """Return how many sandboxes run by the log."""
        return sum(len(sandboxes) for sandboxes in self._running.values())

    def judge_machines(self) -> None:
        """Compare what each machine ran at most with what it ever was allowed to. Call it once."""
        for node, peaks in sorted(self._peaks.items()):
            limits = self.limits.ever(node)
            excess = (
                next(filter(None, (p.excess_over(limits) for p in peaks)), "") if limits else ""
            )
            if excess:
                self.violations.add("machine_over_limit", f"{node}: {excess}")

    def _start(self, line: Mapping[str, Any], sandboxes: dict[str, _Sandbox]) -> None:
        self.starts += 1
        node, uid = line["node"], line["requestUID"]
        for other, running in self._running.items():
            if uid in {sandbox.uid for sandbox in running.values()}:
                text = f"request {uid} starts on {node} while it runs on {other}"
                self.violations.add("ran_twice", text)
        sandboxes[line["sandbox"]] = _Sandbox(uid, _weight(line), _weight(line))
        self._note_peak(node, sandboxes)

    def _note_peak(self, node: str, sandboxes: dict[str, _Sandbox]) -> None:
        """Keep what the machine ran at most; in several dimensions there may be several mosts."""
        used = Amount()
        for sandbox in sandboxes.values():
            used = used.plus(sandbox.weight)
        peaks = self._peaks.setdefault(node, [])
        if all(used.rises_from(peak) for peak in peaks):
            self._peaks[node] = [*(peak for peak in peaks if peak.rises_from(used)), used]


def _weight(line: Mapping[str, Any]) -> Amount:
    return Amount(line["cpuMillis"], line["memoryBytes"], 0, 1, 0)
