"""Score `image_score`: nodes that hold what the request starts from come first.

Factor `template_id`: 100 for a node that holds the request's template, 0 for the rest.
NOT_APPLICABLE for a request without a template, or when every factor's weight is 0.
Arguments: `factors` (default [template_id]). Source: CubeMaster's score of that name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

import numpy as np
from typing_extensions import override

from cubesched.core.pipeline import NOT_APPLICABLE, NotApplicable
from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.plugins.args import FactorArgs, Factors, only_known

FACTORS: Final = {"template_id": "100 for a holder of the template, 0 for the rest"}


class ImageScoreArgs(FactorArgs):
    """Arguments of `image_score`."""

    known: ClassVar = tuple(FACTORS)

    factors: Annotated[Factors, only_known(FACTORS)] = dict.fromkeys(FACTORS, 1.0)
    """What is rated: a list of names, or a map from name to weight."""

    @override
    def build(self) -> ImageScore:
        """Return the score."""
        return ImageScore(is_on=self.factors.get("template_id", 0.0) > 0.0)


@dataclass(frozen=True, slots=True)
class ImageScore:
    """Rates a node by the template it holds; with one factor its weight cancels out."""

    is_on: bool
    name: str = "image_score"

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats | NotApplicable:
        """Return one score for each row; see the module."""
        if not (self.is_on and request.template_id):
            return NOT_APPLICABLE
        holders = fleet.templates.get(request.template_id)
        if holders is None:
            return np.zeros(rows.size)
        return np.multiply(holders.take(rows), 100.0, dtype=np.float64)
