"""Two plugins for cubesched: a filter over columns, and a score that looks at single nodes."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cubesched.plugins.python import (
    ColumnFilter,
    Fleet,
    Node,
    NodeScore,
    PluginArgs,
    Request,
)


class RackPaceArgs(PluginArgs):
    """Arguments of `rack_pace`."""

    label: str = "topology.example.com/rack"
    """The node label that names the rack."""
    most: Annotated[int, Field(ge=1)] = 20
    """How many sandboxes may be starting in one rack."""


class RackPace(ColumnFilter[RackPaceArgs]):
    """Keeps the nodes of racks in which fewer than `most` sandboxes are starting.

    No expression can tell: it has to count over all nodes of a rack. Nodes without the label stay.
    """

    def keep(self, fleet: Fleet, request: Request) -> NDArray[np.bool_]:
        """Return which nodes stay."""
        rack = fleet.label_codes(self.args.label)
        starting = np.bincount(rack, weights=fleet.creating)
        return (starting[rack] < self.args.most) | (rack == 0)


class MemoryHeadroomArgs(PluginArgs):
    """Arguments of `memory_headroom`."""

    reserve_mb: Annotated[int, Field(ge=0)] = 4096
    """What should stay free on every machine, in MiB."""


class MemoryHeadroom(NodeScore[MemoryHeadroomArgs]):
    """Rates a node by the memory that is really free beside a reserve: 100 when all of it is.

    A node that never reported its memory raises an error, and the Profile's `failure.score` says
    what happens then. Requests of priority 1000 and more leave this score out.
    """

    def applies(self, request: Request) -> bool:
        """Return False for urgent requests: any node will do."""
        return request.priority < 1000

    def score_node(self, node: Node, request: Request) -> float:
        """Return the share that would be left, in percent."""
        wanted = node.mem_usage_mb + (request.memory_bytes >> 20) + self.args.reserve_mb
        return max(0.0, 100.0 - 100.0 * wanted / node.mem_total_mb)
