from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from cubesched.local.auditing import (
    WINDOW_SECONDS,
    Amount,
    MachineAudit,
    NodeLimits,
    RequestAudit,
    Violations,
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Case:
    """An audit of nodes n1 and n2, each of 4 cores and 8 GiB."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.violations = Violations()
        self.limits = NodeLimits(self.clock, **options)
        self.requests = RequestAudit(self.limits, self.violations)
        self.machines = MachineAudit(self.limits, self.violations)
        for name in ("n1", "n2"):
            self.node(name)

    def node(self, name: str, cpu: str = "4", quota: dict[str, Any] | None = None) -> None:
        spec: dict[str, Any] = {"capacity": {"cpu": cpu, "memory": "8Gi"}}
        if quota:
            spec["quota"] = quota
        self.limits.learn({"metadata": {"name": name}, "spec": spec})

    def see(self, uid: str, phase: str, node: str = "n1", *, cpu_millis: int = 2000) -> None:
        self.requests.apply("MODIFIED", a_request(uid, phase, node, cpu_millis=cpu_millis))

    def log(self, event: str, node: str, uid: str = "", *, cpu_millis: int = 2000) -> None:
        line = {"event": event, "node": node, "sandbox": f"{uid}.r", "requestUID": uid}
        self.machines.apply({**line, "cpuMillis": cpu_millis, "memoryBytes": 1 << 30})

    @property
    def found(self) -> dict[str, int]:
        return dict(self.violations.counts)


def a_request(uid: str, phase: str, node: str, *, cpu_millis: int = 2000) -> dict[str, Any]:
    status: dict[str, Any] = {"phase": phase}
    if phase != "Pending":
        status |= {
            "nodeName": node,
            "reservation": {"id": "x", "cpuMillis": cpu_millis, "memoryBytes": 1 << 30},
        }
    return {"metadata": {"name": uid, "uid": uid, "namespace": "ns"}, "status": status}


def bound_directly(uid: str, phase: str = "Bound", *, cpu_millis: int = 2000) -> dict[str, Any]:
    request = a_request(uid, phase, "n1", cpu_millis=cpu_millis)
    request["status"]["reservation"]["confirmation"] = "none"
    return request


def test_what_nobody_confirmed_may_be_too_much_and_is_told_apart() -> None:
    case = Case()
    case.see("a", "Running")
    case.see("b", "Running")

    case.requests.apply("MODIFIED", bound_directly("c"))
    case.requests.apply("MODIFIED", bound_directly("c", "Running"))

    assert not case.found
    assert case.requests.over_dispatched == {"n1"}
    assert case.requests.directly_bound == {"c"}


def test_what_was_bound_directly_makes_no_room_for_a_confirmation_too_many() -> None:
    case = Case()
    case.requests.apply("MODIFIED", bound_directly("a", cpu_millis=1))
    case.see("b", "Bound", cpu_millis=4000)

    case.see("c", "Bound", cpu_millis=1)

    assert case.found == {"over_committed": 1}


def test_without_anything_bound_directly_nothing_is_over_dispatched() -> None:
    case = Case()
    case.requests.apply("MODIFIED", bound_directly("a"))
    case.requests.apply("DELETED", bound_directly("a"))

    case.see("b", "Bound", cpu_millis=4001)

    assert case.requests.over_dispatched == set()
    assert case.requests.directly_bound == {"a"}


def test_a_full_node_is_no_violation() -> None:
    case = Case()

    case.see("a", "Bound")
    case.see("b", "Bound")

    assert not case.found


@pytest.mark.parametrize("phase", ["Bound", "Starting", "Running", "Paused", "Evicting"])
def test_one_confirmation_too_many_is_found(phase: str) -> None:
    case = Case()
    case.see("a", "Bound")
    case.see("b", "Running")

    case.see("c", phase, cpu_millis=1)

    assert case.found == {"over_committed": 1}
    assert case.requests.over_committed == {"n1"}
    assert "n1: cpu_millis 4001 of 4000" in case.violations.examples[0]


def test_a_reservation_does_not_count_yet() -> None:
    case = Case()
    case.see("a", "Bound")
    case.see("b", "Bound")

    case.see("c", "Reserved")

    assert not case.found


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_what_ended_makes_room(phase: str) -> None:
    case = Case()
    case.see("a", "Bound", cpu_millis=4000)
    case.see("a", phase)

    case.see("b", "Bound", cpu_millis=4000)

    assert not case.found


def test_what_was_deleted_makes_room() -> None:
    case = Case()
    case.see("a", "Bound", cpu_millis=4000)
    case.requests.apply("DELETED", a_request("a", "Bound", "n1"))

    case.see("b", "Bound", cpu_millis=4000)

    assert not case.found


def test_an_over_commitment_is_found_though_it_ends_at_once() -> None:
    case = Case()
    case.see("a", "Bound", cpu_millis=4000)
    case.see("b", "Bound", cpu_millis=4000)
    case.see("b", "Pending")

    assert case.requests.over_committed == {"n1"}


def test_a_quota_replaces_the_capacity() -> None:
    case = Case()
    case.node("n1", quota={"cpu": "8"})

    case.see("a", "Bound", cpu_millis=8000)
    assert not case.found
    case.see("b", "Bound", cpu_millis=1)

    assert case.found == {"over_committed": 1}


@pytest.mark.parametrize(
    ("quota", "what"),
    [({"sandboxes": 1}, "sandboxes 2 of 1"), ({"createConcurrency": 1}, "creating 2 of 1")],
)
def test_numbers_are_limits_too(quota: dict[str, int], what: str) -> None:
    case = Case()
    case.node("n1", quota=quota)
    case.clock.now += WINDOW_SECONDS + 1

    case.see("a", "Bound", cpu_millis=1)
    case.see("b", "Bound", cpu_millis=1)

    assert what in case.violations.examples[0]


def test_the_configured_over_commit_stretches_cpu() -> None:
    case = Case(overcommit_cpu=Fraction("1.5"))

    case.see("a", "Bound", cpu_millis=6000)
    assert not case.found
    case.see("b", "Bound", cpu_millis=1)

    assert case.found == {"over_committed": 1}


def test_a_shrink_alone_is_no_violation_and_neither_is_what_goes_on_there() -> None:
    case = Case()
    case.see("a", "Bound", cpu_millis=4000)
    case.node("n1", cpu="1")
    case.clock.now += 2 * WINDOW_SECONDS

    case.see("a", "Starting", cpu_millis=4000)
    case.see("a", "Running", cpu_millis=4000)

    assert not case.found


def test_a_confirmation_soon_after_a_shrink_is_forgiven_and_a_late_one_is_not() -> None:
    case = Case()
    case.node("n1", cpu="1")

    case.see("a", "Bound", cpu_millis=2000)
    assert not case.found
    case.clock.now += WINDOW_SECONDS + 1
    case.see("b", "Bound", cpu_millis=1)

    assert case.found == {"over_committed": 1}


def test_a_move_without_going_back_is_found() -> None:
    case = Case()
    case.see("a", "Bound", "n1")

    case.see("a", "Bound", "n2")

    assert case.found == {"moved_while_confirmed": 1}


@pytest.mark.parametrize("between", ["Pending", "Reserved"])
def test_a_move_by_way_of_a_new_reservation_is_fine(between: str) -> None:
    case = Case()
    case.see("a", "Bound", "n1")
    case.see("a", between, "n2")

    case.see("a", "Bound", "n2")

    assert not case.found


def test_a_list_is_judged_as_well() -> None:
    case = Case()

    case.requests.replace_all(
        [a_request("a", "Running", "n1"), a_request("b", "Running", "n1", cpu_millis=2001)]
    )

    assert case.found == {"over_committed": 1}
    assert case.requests.by_phase() == {"Running": 2}


def test_a_node_never_seen_is_not_judged() -> None:
    case = Case()

    case.see("a", "Bound", "n9", cpu_millis=10**6)

    assert not case.found


def test_one_sandbox_after_the_other_is_fine() -> None:
    case = Case()
    for node in ("n1", "n2"):
        case.log("start", node, "a")
        case.log("stop", node, "a")
    case.machines.judge_machines()

    assert not case.found
    assert (case.machines.starts, case.machines.still_running()) == (2, 0)


def test_a_sandbox_that_runs_on_two_nodes_at_once_is_found() -> None:
    case = Case()
    case.log("start", "n1", "a")

    case.log("start", "n2", "a")

    assert case.found == {"ran_twice": 1}


def test_a_machine_that_boots_runs_nothing() -> None:
    case = Case()
    case.log("start", "n1", "a")
    case.machines.apply({"event": "boot", "node": "n1"})

    case.log("start", "n2", "a")

    assert not case.found


def test_a_machine_over_its_limit_is_found_though_it_was_brief() -> None:
    case = Case()
    case.log("start", "n1", "a", cpu_millis=3000)
    case.log("start", "n1", "b", cpu_millis=1001)
    case.log("stop", "n1", "a")
    case.log("stop", "n1", "b")
    case.log("start", "n2", "c", cpu_millis=4000)

    case.machines.judge_machines()

    assert case.found == {"machine_over_limit": 1}


def test_a_paused_sandbox_takes_what_it_keeps_and_a_resumed_one_all_again() -> None:
    case = Case()
    case.log("start", "n1", "a", cpu_millis=3000)
    case.log("pause", "n1", "a", cpu_millis=1000)
    case.log("start", "n1", "b", cpu_millis=3000)
    case.machines.judge_machines()
    assert not case.found

    case.log("resume", "n1", "a", cpu_millis=0)
    case.machines.judge_machines()
    assert case.found == {"machine_over_limit": 1}


@pytest.mark.parametrize("event", ["pause", "resume"])
def test_what_does_not_run_cannot_be_paused_or_resumed(event: str) -> None:
    case = Case()

    case.log(event, "n1", "a")

    assert case.found == {"unreadable_log": 1}


def a_paused(uid: str, phase: str, *, keeping: int, **more: str) -> dict[str, Any]:
    request = a_request(uid, phase, "n1", cpu_millis=4000)
    request["status"]["reservation"] |= {
        "paused": {"cpuMillis": keeping, "memoryBytes": 1 << 30},
        **more,
    }
    return request


@pytest.mark.parametrize("phase", ["Paused", "Evicting", "Reserved"])
def test_a_paused_request_counts_what_it_keeps_also_while_a_resume_is_tried(phase: str) -> None:
    case = Case()
    case.requests.apply("MODIFIED", a_paused("a", phase, keeping=2000, resume="s"))
    case.see("b", "Bound", cpu_millis=2000)
    assert not case.found

    case.see("c", "Bound", cpu_millis=1)
    assert case.found == {"over_committed": 1}


@pytest.mark.parametrize("phase", ["Bound", "Running"])
def test_a_resumed_request_counts_in_full(phase: str) -> None:
    case = Case()
    case.see("b", "Running", cpu_millis=2000)
    case.requests.apply("MODIFIED", a_paused("a", "Paused", keeping=2000))
    assert not case.found

    case.requests.apply("MODIFIED", a_paused("a", phase, keeping=2000, resume="s"))
    assert case.found == {"over_committed": 1}


def test_a_log_that_cannot_be_understood_is_a_finding() -> None:
    case = Case()

    case.machines.apply({"event": "dream", "node": "n1"})

    assert case.found == {"unreadable_log": 1}


def test_amounts_compare_each_part() -> None:
    assert Amount(1, 2).rises_from(Amount(2, 1))
    assert not Amount(1, 2).rises_from(Amount(1, 2))
    assert not Amount(5, 5, 5, 5, 5).excess_over([Amount(5, 5, None, 5, None)])
    assert Amount(0, 6).excess_over([Amount(5, 5), Amount(5, 4)]) == "memory_bytes 6 of 5"
