from __future__ import annotations

from typing import Any

import pytest
from tests.unit.fleet.objects import GIB, a_request_object

from cubesched.core.snapshot import Safety
from cubesched.fleet.entries import Weight, read_entry
from cubesched.fleet.standing import Standing
from cubesched.plugins.builtin.guards.node_safety import TEXTS
from cubesched.scheduling.resumability import added_weight, blocked

PAUSED = read_entry(
    a_request_object(
        phase="Paused",
        node="n1",
        reservation={"diskBytes": 7, "paused": {"cpuMillis": 400, "memoryBytes": 0}},
    )
)


def standing(**facts: Any) -> Standing:
    """Return a node with exactly the room that it takes to resume PAUSED."""
    roomy = Standing(Safety.OK, "None", 600, GIB, 0, 0, 1)
    return roomy._replace(**facts)


def text(**facts: Any) -> str:
    why = blocked(PAUSED, standing(**facts))
    return f"{why.reason}: {why.message}" if why else ""


def test_what_is_added_is_cores_and_memory_and_nothing_that_it_has_kept() -> None:
    assert added_weight(PAUSED) == Weight(600, GIB, 0)


def test_an_exact_fit_is_no_obstacle() -> None:
    assert not text()


@pytest.mark.parametrize(
    ("facts", "what"),
    [
        ({"cpu_millis": 599}, "needs 600m more cpu, 599m free"),
        ({"cpu_millis": -5}, "needs 600m more cpu, 0m free"),
        ({"memory_bytes": 1 << 29}, "needs 1Gi more memory, 512Mi free"),
        ({"memory_bytes": GIB - 1}, "needs 1073741824 bytes more memory, 1073741823 bytes free"),
        (
            {"cpu_millis": 0, "memory_bytes": 0},
            "needs 600m more cpu, 0m free; needs 1Gi more memory, 0 free",
        ),
        ({"disk_bytes": -GIB}, "holds 1Gi more disk than it may"),
        ({"sandboxes": -2}, "holds 2 more sandboxes than it may"),
        ({"creates": 0}, "as many creates in flight as it may have"),
    ],
)
def test_everything_that_is_short_is_named_in_numbers(facts: dict[str, Any], what: str) -> None:
    assert text(**facts) == f"InsufficientCapacity: n1: {what}"


@pytest.mark.parametrize("safety", [code for code in Safety if code is not Safety.OK])
def test_a_node_that_cannot_be_used_is_named_before_any_room(safety: Safety) -> None:
    assert text(safety=safety, cpu_millis=0) == f"NodeNotReady: n1: {TEXTS[safety]}"


def test_a_node_that_evicts_all_it_holds_resumes_none_of_it() -> None:
    assert text(drain="All") == "NodeNotReady: n1: node is being drained"
    assert not text(drain="Unstarted")


@pytest.mark.parametrize(
    ("facts", "is_better"),
    [
        ({}, False),
        ({"cpu_millis": 601}, True),
        ({"cpu_millis": 599}, False),
        ({"memory_bytes": 0, "creates": 2}, True),
        ({"safety": Safety.STALE}, True),
        ({"drain": "All"}, True),
    ],
    ids=str,
)
def test_only_what_may_have_become_possible_is_worth_a_look(
    facts: dict[str, Any], *, is_better: bool
) -> None:
    assert standing(**facts).is_better_than(standing()) == is_better
