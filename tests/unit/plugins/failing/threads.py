"""Plugins in Python that are wrong, as a package would offer them."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.unit.plugins.failing.cells import Fault
from tests.unit.plugins.failing.synchronous import ANSWERS, masks, scores
from typing_extensions import override

from cubesched.core.pipeline import WaitingFilter, WaitingScore
from cubesched.plugins.kinds import AnyFilter, AnyScore, build_filter, build_score
from cubesched.plugins.listing import Listing, Surroundings
from cubesched.plugins.python import (
    ColumnFilter,
    ColumnScore,
    Fleet,
    Node,
    NodeFilter,
    NodeScore,
    Request,
)
from cubesched.plugins.python.installed import Installed, Offer

HASTE_SECONDS = 0.02


@dataclass(frozen=True)
class Entry:
    """An entry point of a package that is not there."""

    found: type
    name: str = "wrong"
    value: str = "wrong:Plugin"

    def load(self) -> type:
        return self.found


def _columns(answer: Callable[[Fleet], Any]) -> type:
    class Plugin(ColumnFilter, ColumnScore):
        @override
        def keep(self, fleet: Fleet, request: Request) -> Any:
            return answer(fleet)

        score = keep

    return Plugin


class OneNode(NodeFilter, NodeScore):
    """Cannot tell about n2; keeps all but n4."""

    @override
    def keep_node(self, node: Node, request: Request) -> bool:
        if node.id == "n2":
            raise KeyError("zone")
        return node.id != "n4"

    @override
    def score_node(self, node: Node, request: Request) -> float:
        return 10.0 * self.keep_node(node, request)


@asynccontextmanager
async def plugin(where: str, fault: Fault) -> AsyncIterator[AnyFilter | AnyScore]:
    """Give the plugin that fails so; what hangs returns at the end."""
    gate = threading.Event()
    found: type = OneNode
    sound = masks if where == "filter" else scores
    if fault is Fault.TIMEOUT:
        found = _columns(lambda fleet: gate.wait(10) or sound(len(fleet)))
    elif fault is not Fault.ON_A_NODE:
        found = _columns(lambda fleet: ANSWERS[where][fault](len(fleet)))
    offer = Offer("wrong 1.0", Entry(found))  # type: ignore[arg-type]  # all that is asked of it
    seconds = HASTE_SECONDS if fault is Fault.TIMEOUT else 10.0
    build = build_filter if where == "filter" else build_score
    try:
        built = build(
            Listing("wrong", "python", timeout_seconds=seconds),
            Surroundings(installed=Installed(lambda: [offer])),
        )
        assert isinstance(built, WaitingFilter | WaitingScore)
        yield built
        await built.host.close()
    finally:
        gate.set()
