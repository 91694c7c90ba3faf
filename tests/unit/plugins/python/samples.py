"""Plugins as packages would offer them, well made and not, for the entry points of tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint
from typing import Annotated, Any

import numpy as np
from pydantic import Field, field_validator
from typing_extensions import override

from cubesched.core.errors import PluginArgsInvalid
from cubesched.plugins.python import (
    NOT_APPLICABLE,
    ColumnFilter,
    ColumnScore,
    Fleet,
    Node,
    NodeFilter,
    NodeScore,
    PluginArgs,
    Request,
)
from cubesched.plugins.python.installed import GROUP, Installed, Offer

HERE = "tests.unit.plugins.python.samples"


class ZoneArgs(PluginArgs):
    zone: Annotated[str, Field(min_length=1)]
    strict: bool = True

    @field_validator("zone")
    @classmethod
    def _is_known(cls, zone: str) -> str:
        if zone == "broken":
            raise KeyError(zone)
        return zone


class InZone(ColumnFilter[ZoneArgs]):
    """Keeps the nodes of one zone."""

    @override
    def keep(self, fleet: Fleet, request: Request) -> Any:
        return fleet.zone == self.args.zone


class ZoneOfNode(NodeFilter[ZoneArgs]):
    """The same, node by node."""

    @override
    def keep_node(self, node: Node, request: Request) -> bool:
        return node.labels["topology.kubernetes.io/zone"] == self.args.zone


class Idle(ColumnScore):
    """Rates by what the cpus leave; has nothing to say of requests without a team."""

    @override
    def score(self, fleet: Fleet, request: Request) -> Any:
        return 100.0 - fleet.cpu_util if "team" in request.labels else NOT_APPLICABLE


class IdleNode(NodeScore):
    """The same, node by node."""

    @override
    def applies(self, request: Request) -> bool:
        return "team" in request.labels

    @override
    def score_node(self, node: Node, request: Request) -> float:
        return 100 - node.cpu_util


class Scripted(ColumnFilter, ColumnScore):
    """Answers as a test tells it to, filter and score alike."""

    answer: Callable[[Fleet, Request], Any] = staticmethod(
        lambda fleet, _: np.ones(len(fleet), np.bool_)
    )
    made: int = 0

    def __init__(self, args: PluginArgs) -> None:
        super().__init__(args)
        type(self).made += 1

    @override
    def keep(self, fleet: Fleet, request: Request) -> Any:
        return type(self).answer(fleet, request)

    score = keep


class ScriptedNode(NodeFilter, NodeScore):
    """Answers about each node as a test tells it to, filter and score alike."""

    answer: Callable[[Node, Request], Any] = staticmethod(lambda _node, _: True)

    @override
    def keep_node(self, node: Node, request: Request) -> Any:
        return type(self).answer(node, request)

    score_node = keep_node


class WithoutMethods(ColumnFilter):
    """Lacks what a filter must have."""


class Refusing(InZone):
    def __init__(self, args: ZoneArgs) -> None:
        raise ValueError("no such zone in the inventory")


class Exiting(ColumnFilter):
    def __init__(self, args: PluginArgs) -> None:
        raise SystemExit(3)

    @override
    def keep(self, fleet: Fleet, request: Request) -> Any:
        return np.ones(len(fleet), np.bool_)


class Slow(InZone):
    """Takes as long to be made as a test wants."""

    gate = threading.Event()

    def __init__(self, args: ZoneArgs) -> None:
        super().__init__(args)
        assert self.gate.wait(10)


class Elsewhere(InZone):
    def __new__(cls, *_: Any) -> Any:
        return "something else"


def a_function(fleet: Fleet, request: Request) -> None:
    """No plugin: there is nothing to give arguments to."""


def an_offer(name: str, value: str, package: str = "samples 1.0") -> Offer:
    """An entry point; `value` without a module is one of this module."""
    where = value if ":" in value else f"{HERE}:{value}"
    return Offer(package, EntryPoint(name, where, GROUP))


def installed(*offers: Offer, load_seconds: float = 10.0) -> Installed:
    """The plugins of these offers."""
    return Installed(lambda: offers, load_seconds=load_seconds)


def problems(call: Callable[[], object]) -> Sequence[tuple[str, str]]:
    """What keeps a Profile from running."""
    try:
        call()
    except PluginArgsInvalid as error:
        return error.problems
    raise AssertionError("nothing is wrong")
