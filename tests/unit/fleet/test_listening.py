"""Silence is what was listened through: neither outages nor pauses nor a late start count."""

from __future__ import annotations

from math import inf

import pytest
from tests.unit.fleet.objects import a_node_object, reports

from cubesched.fleet.fleet import Fleet

T0 = 1_800_000_000.0


class Listener:
    """A fleet of nodes, read second by second on a clock of its own."""

    def __init__(self, *nodes: str) -> None:
        self.now = 1000.0
        self.fleet = Fleet(monotonic=lambda: self.now, wall=lambda: T0 + self.now)
        self.fleet.reset()
        for node in nodes:
            self.fleet.seen(a_node_object(node))
        self.fleet.complete(1)
        self._stamps: dict[str, int] = {}
        self.read(*nodes)

    def read(self, *heard: str, after: float = 1.0) -> None:
        """Read all reports once more; these nodes have made new ones."""
        self.now += after
        for node in heard:
            self._stamps[node] = int((T0 + self.now) * 1000)
        readings = [reports(stamp, node) for node, stamp in self._stamps.items()]
        self.fleet.take_reports(*readings)

    def silent(self) -> dict[str, float]:
        return {node: found.seconds for node, found in self.fleet.silent_nodes().items()}


def test_a_node_is_silent_after_as_long_as_reports_are_believed() -> None:
    listener = Listener("n1", "n2")
    listener.read("n1", "n2")
    for _ in range(299):
        listener.read("n2")
    assert listener.silent() == {}

    listener.read("n2")
    assert listener.silent() == {"n1": 300.0}
    assert listener.fleet.silent_nodes()["n1"].last_heard == 1002.0
    listener.read("n1")
    assert listener.silent() == {}


@pytest.mark.parametrize("gap", [10.0, 100_000.0])
def test_time_in_which_nothing_was_read_counts_as_one_read(gap: float) -> None:
    listener = Listener("n1", "n2")
    listener.read("n1", "n2")
    for _ in range(200):
        listener.read("n2")
    listener.read("n2", after=gap)
    assert listener.silent() == {}

    for _ in range(97):
        listener.read("n2")
    assert listener.silent() == {}
    listener.read("n2")
    assert listener.silent() == {"n1": 300.0}


def test_reads_in_which_nobody_is_heard_count_for_nobody() -> None:
    listener = Listener("n1", "n2")
    listener.read("n1", "n2")
    for _ in range(1000):
        listener.read()

    assert listener.silent() == {}


def test_a_node_alone_is_never_silent() -> None:
    listener = Listener("n1")
    for _ in range(1000):
        listener.read()

    assert listener.silent() == {}


def test_a_node_that_comes_while_others_are_silent_has_its_own_time() -> None:
    listener = Listener("n1", "n2")
    listener.read("n1", "n2")
    for _ in range(290):
        listener.read("n2")
    listener.fleet.event("ADDED", a_node_object("n0"), 2)
    for _ in range(20):
        listener.read("n2")
    assert listener.silent().keys() == {"n1"}

    for _ in range(281):
        listener.read("n2")
    assert listener.silent().keys() == {"n0", "n1"}
    assert listener.fleet.silent_nodes()["n0"].last_heard == -inf


def test_a_node_created_anew_under_its_name_is_another() -> None:
    listener = Listener("n1", "n2")
    for _ in range(400):
        listener.read("n2")
    assert listener.silent().keys() == {"n1"}

    listener.fleet.event("DELETED", a_node_object("n1"), 2)
    listener.fleet.event("ADDED", a_node_object("n1", uid="another"), 3)
    assert listener.silent() == {}


def test_a_stamp_that_goes_back_is_heard_from_its_next_advance_on() -> None:
    listener = Listener("n1", "n2")
    listener.read("n1", "n2")
    listener._stamps["n1"] -= 3_600_000
    for _ in range(301):
        listener.read("n2")
    assert listener.silent().keys() == {"n1"}

    listener._stamps["n1"] += 1
    listener.read("n2")
    assert listener.silent() == {}
