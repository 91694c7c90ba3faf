"""Constraint `taints`: the request tolerates every NoSchedule and NoExecute taint of the node.

PreferNoSchedule repels nobody here. Tolerations match as in Kubernetes: an empty effect matches
every effect, an empty key every key, `Exists` every value, `Equal` the same value. They are
weighed once for each distinct set of taints in the fleet, not once a node.
Source: Kubernetes' taints and tolerations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from cubesched.core.pipeline import Miss
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Ints, Snapshot
from cubesched.core.tolerating import untolerated
from cubesched.plugins.builtin.yes_or_no import YesOrNo

_FEW = 8
"""Up to so many repelling sets, comparing the column with each is faster than a gather."""


@dataclass(frozen=True, slots=True)
class Taints(YesOrNo):
    """Keeps nodes whose taints the request tolerates."""

    text: ClassVar[str] = "taint not tolerated"
    name: str = "taints"

    def keep(self, fleet: Snapshot, request: Request) -> Bools | None:
        """Return which nodes stay; None when nothing in the fleet repels the request."""
        repelling = [
            code
            for code, taints in enumerate(fleet.taint_sets)
            if taints and untolerated(request, taints)
        ]
        if not repelling:
            return None
        if len(repelling) > _FEW:
            tolerated = np.ones(len(fleet.taint_sets), dtype=np.bool_)
            tolerated[repelling] = False
            return tolerated.take(fleet.taint_set)
        mask: Bools = fleet.taint_set != repelling[0]
        for code in repelling[1:]:
            mask &= fleet.taint_set != code
        return mask

    @override
    def nearest(self, fleet: Snapshot, request: Request, rows: Ints) -> Miss | None:
        """Return the node with the fewest taints that are not tolerated, and which they are."""
        repelled = {
            int(code): untolerated(request, fleet.taint_sets[code])
            for code in np.unique(fleet.taint_set[rows])
        }
        best = min(repelled, key=lambda code: (len(repelled[code]), code), default=0)
        if not best:
            return None
        row = int(rows[np.flatnonzero(fleet.taint_set[rows] == best)[0]])
        return Miss(row, f"taint {' and '.join(map(str, repelled[best]))}")
