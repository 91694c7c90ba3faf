"""`image_score` as CubeMaster computes it: what a request does not have counts as 0.

Ours leaves a factor that does not apply to the request out of the mean; there its weight stays in
the divisor, so the score of a request without images is the smaller for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot
from cubesched.plugins.builtin.scores.image_score import FACTORS, NAME, image_id, template_id

IMAGES: Final = NAME
KNOWN: Final = FACTORS


@dataclass(frozen=True, slots=True)
class LegacyImages:
    """Rates a node by the template and the images it holds; the shares add up to 1."""

    template_share: float
    image_share: float
    name: str = NAME

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats:
        """Return one score for each row; see the module."""
        total = np.zeros(rows.size)
        if request.template_id and self.template_share:
            total += template_id(fleet, request, rows) * self.template_share
        if request.images and self.image_share:
            total += image_id(fleet, request, rows) * self.image_share
        return np.minimum(total, 100.0, out=total)


def images(factors: Sequence[str], weights: Mapping[str, float]) -> LegacyImages | None:
    """Return the score; None where it never applies. A factor without a weight weighs 0."""
    template, image = (weights.get(factor, 0.0) if factor in factors else 0.0 for factor in FACTORS)
    if not template + image:
        return None
    return LegacyImages(template / (template + image), image / (template + image))
