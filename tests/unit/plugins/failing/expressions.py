"""Expressions that fail, on nodes, as a whole, or in what they return."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tests.unit.plugins.failing.cells import NUMBERS, Fault

from cubesched.plugins.kinds import AnyFilter, AnyScore, build_filter, build_score
from cubesched.plugins.listing import Listing, Surroundings

_NUMBERS: Mapping[Fault, str] = {
    Fault.NAN: "node.id == 'n2' ? 0.0 / 0.0 : 50.0",
    Fault.NEGATIVE: "node.id == 'n2' ? -1.0 : 50.0",
    Fault.ABOVE: "node.id == 'n2' ? 100.1 : 50.0",
    Fault.INF: "node.id == 'n2' ? 1.0 / 0.0 : 50.0",
}
assert _NUMBERS.keys() == NUMBERS.keys()
# Only n2 lacks the label `rack`; no request has the label `team`; n1's label `essay` is longer than
# one decision may read.
EXPRESSIONS: Mapping[str, Mapping[Fault, str]] = {
    "filter": {
        Fault.ON_A_NODE: "node.labels['rack'] != 'r4'",
        Fault.ON_THE_CALL: "request.labels['team'] == 'a'",
        Fault.TIMEOUT: "!node.labels['essay'].contains('end')",
        **_NUMBERS,
    },
    "score": {
        Fault.ON_A_NODE: "node.labels['rack'] == 'r4' ? 10.0 : 20.0",
        Fault.ON_THE_CALL: "request.labels['team'] == 'a' ? 10.0 : 20.0",
        Fault.TIMEOUT: "node.labels['essay'].contains('end') ? 10.0 : 20.0",
        **_NUMBERS,
    },
}


@asynccontextmanager
async def plugin(where: str, fault: Fault) -> AsyncIterator[AnyFilter | AnyScore]:
    """Give the expression that fails so; raises PluginArgsInvalid where it cannot be had."""
    listing = Listing("wrong", "expr", expr=EXPRESSIONS[where][fault])
    yield (build_filter if where == "filter" else build_score)(listing, Surroundings())
