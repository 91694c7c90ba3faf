from __future__ import annotations

import pytest
from tests.unit.fleet.objects import a_request_object

from cubesched.fleet.drainage import Drainage, drainage, left_on
from cubesched.fleet.ledger import Ledger


def a_ledger(*phases: str, node: str = "n1") -> Ledger:
    ledger = Ledger(observe=lambda _: None, monotonic=lambda: 0.0)
    ledger.reset()
    for number, phase in enumerate(phases):
        ledger.seen(a_request_object(f"r{number}", phase=phase, node=node))
    ledger.complete(100)
    return ledger


def test_what_is_left_is_counted_by_phase_and_only_on_that_node() -> None:
    ledger = a_ledger("Running", "Running", "Starting", "Succeeded")
    ledger.event("ADDED", a_request_object("x", phase="Running", node="n2", version=101), 101)

    assert left_on(ledger, "n1") == {"Running": 2, "Starting": 1}


def test_a_deleted_request_is_left_until_its_node_has_let_go() -> None:
    ledger = a_ledger("Running")
    ledger.event("DELETED", a_request_object("r0", phase="Running", node="n1", version=101), 101)
    assert left_on(ledger, "n1") == {"deleted": 1}

    ledger.release_ghosts({"n1": 101})
    assert left_on(ledger, "n1") == {}


@pytest.mark.parametrize(
    ("drain", "left", "said"),
    [
        ("None", {"Running": 1}, None),
        ("All", {"Running": 5, "Starting": 2}, (False, "7 requests left: 2 starting, 5 running")),
        ("All", {"Evicting": 1}, (False, "1 request left: 1 evicting")),
        (
            "All",
            {"Unheard": 1, "deleted": 1, "Paused": 1},
            (False, "3 requests left: 1 paused, 1 unheard, 1 deleted"),
        ),
        ("All", {}, (True, "no request is left")),
        (
            "Unstarted",
            {"Bound": 1, "Reserved": 2, "Running": 5},
            (False, "3 requests left: 2 reserved, 1 bound"),
        ),
        ("Unstarted", {"Running": 5}, (True, "5 requests may stay: 5 running")),
        ("Unstarted", {}, (True, "no request is left")),
    ],
)
def test_a_drained_node_says_what_is_left(
    drain: str, left: dict[str, int], said: tuple[bool, str] | None
) -> None:
    assert drainage(drain, left) == (said and Drainage(*said))
