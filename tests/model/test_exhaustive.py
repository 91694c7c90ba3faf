"""The protocol holds in every state that small numbers of requests and nodes can reach, and each
of its rules is needed: dropping it leads to a violation. Complete searches, in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.model import (
    creating_rules,
    machine_rules,
    mode_rules,
    pausing_rules,
    placement_rules,
)
from tests.model.creating_rules import Creating
from tests.model.exploring import Explored, Rules, explore
from tests.model.machine_rules import Machines
from tests.model.mode_rules import Modes
from tests.model.pausing_rules import Pausing
from tests.model.placement_rules import Placement


def search(rules: Rules[Any], capsys: pytest.CaptureFixture[str], title: str) -> Explored:
    """Explore and show the count, also when the test passes."""
    found: Explored = explore(rules)
    with capsys.disabled():
        print(f"\n  {title}: {found.summary()}", end="")  # noqa: T201 - the count is the result
    return found


@pytest.mark.parametrize(
    "placement",
    [
        Placement(sizes=(1, 1, 2, 2), nodes=2, capacity=3),
        Placement(sizes=(1, 1, 2, 2, 3), nodes=2, capacity=3),
        Placement(sizes=(1, 1, 2, 3), nodes=3, capacity=3),
        Placement(sizes=(1, 2, 2, 3, 4), nodes=3, capacity=4),
    ],
    ids=str,
)
def test_confirmed_requests_never_exceed_a_node(
    placement: Placement, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not search(placement.rules(), capsys, str(placement)).violation


@pytest.mark.parametrize("broken", placement_rules.Broken, ids=lambda broken: broken.name)
def test_each_rule_of_placement_is_needed(
    broken: placement_rules.Broken, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = 2 if broken is placement_rules.Broken.MOVE_KEEPS_ID else 1
    placement = Placement(sizes=(2, 2, 2), nodes=nodes, capacity=3, broken=broken)

    assert search(placement.rules(), capsys, broken.value).violation


@pytest.mark.parametrize("creating", [Creating(4, 2), Creating(5, 2), Creating(6, 3)], ids=str)
def test_creates_in_flight_never_exceed_the_limit(
    creating: Creating, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not search(creating.rules(), capsys, str(creating)).violation


@pytest.mark.parametrize("broken", creating_rules.Broken, ids=lambda broken: broken.name)
def test_each_rule_of_creating_is_needed(
    broken: creating_rules.Broken, capsys: pytest.CaptureFixture[str]
) -> None:
    assert search(Creating(4, 2, broken).rules(), capsys, broken.value).violation


@pytest.mark.parametrize(
    "machines",
    [
        Machines(sizes=(1, 1, 1), nodes=2, capacity=1),
        Machines(sizes=(1, 2), nodes=2, capacity=2),
        Machines(sizes=(1, 2, 1), nodes=2, capacity=2),
        Machines(sizes=(1, 1, 1), nodes=2, capacity=1, agents=(True,)),
        Machines(sizes=(1, 2, 1), nodes=2, capacity=2, agents=(True,)),
        Machines(sizes=(1, 2), nodes=2, capacity=2, agents=(True, False)),
    ],
    ids=str,
)
def test_machines_hold_what_fits_and_nothing_twice(
    machines: Machines, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not search(machines.rules(), capsys, str(machines)).violation


@pytest.mark.parametrize(
    ("broken", "agents"),
    [
        *((broken, (False, True)) for broken in machine_rules.Broken),
        *((broken, (True,)) for broken in machine_rules.OF_CONFIRMING_AGENTS),
    ],
    ids=lambda value: value.name if isinstance(value, machine_rules.Broken) else str(value),
)
def test_each_rule_of_machines_is_needed(
    broken: machine_rules.Broken, agents: tuple[bool, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    machines = Machines(sizes=(1, 1), nodes=2, capacity=1, broken=broken, agents=agents)

    assert search(machines.rules(), capsys, broken.value).violation


@pytest.mark.parametrize(
    "pausing",
    [
        Pausing(sizes=(2, 2, 2), less=1, capacity=3),
        Pausing(sizes=(2, 2, 2, 2), less=1, capacity=4),
        Pausing(sizes=(3, 2, 2), less=0, capacity=4),
    ],
    ids=str,
)
def test_what_is_paused_and_resumed_never_exceeds_its_node_or_machine(
    pausing: Pausing, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not search(pausing.rules(), capsys, str(pausing)).violation


@pytest.mark.parametrize("broken", pausing_rules.Broken, ids=lambda broken: broken.name)
def test_each_rule_of_pausing_is_needed(
    broken: pausing_rules.Broken, capsys: pytest.CaptureFixture[str]
) -> None:
    is_late = broken is pausing_rules.Broken.NO_ENTITLEMENT
    number = 4 if is_late else 3  # of requests, and the capacity that lets all but one run
    pausing = Pausing(sizes=(2,) * number, less=1, capacity=number, broken=broken)

    assert search(pausing.rules(), capsys, broken.value).violation


@pytest.mark.parametrize(
    "modes",
    [
        Modes(sizes=(2, 2, 1), capacity=3),
        Modes(sizes=(2, 2), capacity=3, modes=(True, False, True)),
        Modes(sizes=(1,), capacity=1, replicas=3),
    ],
    ids=str,
)
def test_what_was_confirmed_fits_whatever_is_bound_directly_beside_it(
    modes: Modes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not search(modes.rules(), capsys, str(modes)).violation


@pytest.mark.parametrize("broken", mode_rules.Broken, ids=lambda broken: broken.name)
def test_each_rule_of_changing_modes_is_needed(
    broken: mode_rules.Broken, capsys: pytest.CaptureFixture[str]
) -> None:
    modes = Modes(sizes=(2, 2), capacity=3, broken=broken)

    assert search(modes.rules(), capsys, broken.value).violation


def test_the_search_finds_a_shortest_schedule() -> None:
    def steps(number: int) -> Iterator[tuple[str, int]]:
        yield "add one", number + 1
        yield "double", number * 2

    found = explore(Rules(1, steps, lambda number: "seven" if number == 7 else ""))

    assert found.schedule == ("add one", "add one", "double", "add one")
