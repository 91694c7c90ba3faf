"""Score `template_local_pressure`: fewer creates of the same template in flight first.

100 - 100 * (creates of this template in flight on the node) / limit, clamped to 0..100, cluster-
wide. NOT_APPLICABLE for a request without a template.
No arguments. Source: CubeMaster's score of that name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from cubesched.core.pipeline import NOT_APPLICABLE, NotApplicable
from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.plugins.args import ScoreArgs
from cubesched.plugins.builtin.ratios import creates_left


class TemplateLocalPressureArgs(ScoreArgs):
    """`template_local_pressure` takes no arguments."""

    @override
    def build(self) -> TemplateLocalPressure:
        """Return the score."""
        return TemplateLocalPressure()


@dataclass(frozen=True, slots=True)
class TemplateLocalPressure:
    """Rates a node by the starts of the same template on it."""

    name: str = "template_local_pressure"

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats | NotApplicable:
        """Return one score for each row; see the module."""
        if not request.template_id:
            return NOT_APPLICABLE
        creating = fleet.template_creating.get(request.template_id)
        if creating is None:
            return np.full(rows.size, 100.0)
        return creates_left(fleet, creating, rows)
