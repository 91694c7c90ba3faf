"""What would help: changes of one thing after which a node fits, found by running the masks on it.

Computed only when a rejection is put in words; each is true of the fleet it was computed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from cubesched.core.changes import Case, Change, less_cpu_and_memory, of_the_request
from cubesched.core.decision import Reason, Rejected
from cubesched.core.node_changes import of_the_nodes
from cubesched.core.pipeline import Pipeline
from cubesched.core.request import Request
from cubesched.core.snapshot import Ints, Snapshot

MOST = 5
_NAMED = 2
"""So few nodes are named, more are only counted."""
HELPED = frozenset({Reason.UNSCHEDULABLE, Reason.NEVER_FITS, Reason.STALE_METRICS})
"""Reasons that a change of the request or of a node may remove."""


@dataclass(frozen=True, slots=True, eq=False)
class Counterfactual:
    """A change, and the rows of the nodes that would fit."""

    change: Change
    rows: Ints

    @property
    def nodes(self) -> int:
        """How many nodes would fit."""
        return int(self.rows.size)

    @property
    def line(self) -> str:
        """The whole sentence: `12 nodes would fit with cpu <= 1500m`."""
        text = f"{self.nodes} node{'s' * (self.nodes != 1)} would fit {self.change.text}"
        if self.nodes > _NAMED:
            return text
        names = self.change.case.fleet.names
        return f"{text}: {', '.join(names[row] for row in self.rows.tolist())}"


def counterfactuals(
    rejected: Rejected,
    fleet: Snapshot,
    request: Request,
    pipeline: Pipeline,
    *,
    route: Callable[[Request], Pipeline | None] | None = None,
) -> list[Counterfactual]:
    """Return what would help most: by the nodes won, then by how small the change is.

    Where no single thing helps, less cpu and memory together is tried. `route` tells which
    pipeline serves a request of another instance type; without it, the same one.
    """
    if rejected.reason not in HELPED:
        return []
    case = Case(fleet, request, pipeline, route or (lambda _: pipeline))
    one_thing = _helpful(chain(of_the_request(case), of_the_nodes(case)))
    found = _distinct(one_thing) or list(_helpful(less_cpu_and_memory(case)))
    found.sort(key=lambda each: (-each.nodes, each.change.size, each.change.text))
    return found[:MOST]


def _helpful(proposed: Iterator[Change]) -> Iterator[Counterfactual]:
    for change in proposed:
        rows = change.case.rows()
        if rows.size:
            yield Counterfactual(change, rows)


def _distinct(found: Iterator[Counterfactual]) -> list[Counterfactual]:
    """Leave out what wins the same nodes as a smaller change of the same kind."""
    best: dict[tuple[str, bytes], Counterfactual] = {}
    for each in found:
        key = each.change.kind, each.rows.tobytes()
        known = best.setdefault(key, each)
        if each.change.size < known.change.size:
            best[key] = each
    return list(best.values())
