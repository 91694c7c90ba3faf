"""Score `image_score`: nodes that hold what the request starts from come first.

Sum of f * w over sum of w, over the factors that apply to the request:

| factor | applies with | f |
|---|---|---|
| template_id | a `templateID` | 100 for a node that holds the template, 0 for the rest |
| image_id | `images` | 100 * (S - 23 MiB) / (80000 MiB * k - 23 MiB), clamped to 0..100 |

k is the number of images that the request names; S is the sum over those that the node holds of
size * holders / healthy nodes. Size is what the node itself reports; holders are counted among the
healthy nodes: ready, schedulable and with fresh reports. So an image that few nodes hold draws less
than one of the same size that many hold: its first holders are not run over.
A node that reports no images holds none. NOT_APPLICABLE for a request to which no factor with a
weight above 0 applies.
Arguments: `factors`, a list of names (weight 1 each) or a map from name to weight. Without it the
factors and weights of the SchedulerConfig's `score` hold, and where that says nothing template_id.
Source: CubeMaster's score of that name; image_id as in Kubernetes' ImageLocality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

import numpy as np
from typing_extensions import override

from cubesched.core.pipeline import NOT_APPLICABLE, NotApplicable, Score
from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Safety, Snapshot
from cubesched.plugins.args import FactorArgs, Factors, only_known
from cubesched.plugins.builtin.switched_off import SwitchedOff

NAME: Final = "image_score"
FACTORS: Final = ("template_id", "image_id")
DEFAULT_FACTORS: Final = ("template_id",)

_MIB: Final = 1 << 20
LEAST_BYTES: Final = 23 * _MIB
"""What is smaller is fetched as fast as it is found."""
MOST_BYTES: Final = 80_000 * _MIB
"""Of each image; more makes no difference."""


class ImageScoreArgs(FactorArgs):
    """Arguments of `image_score`."""

    known: ClassVar = FACTORS
    factors: Annotated[Factors, only_known(dict.fromkeys(FACTORS))] = dict.fromkeys(
        DEFAULT_FACTORS, 1.0
    )
    """What is rated: a list of names, or a map from name to weight."""

    @override
    def build(self) -> Score:
        """Return the score."""
        template, images = (self.factors.get(factor, 0.0) for factor in FACTORS)
        return ImageScore(template, images) if template or images else SwitchedOff(NAME)


@dataclass(frozen=True, slots=True)
class ImageScore:
    """Rates a node by the template and the images it holds."""

    template_weight: float
    image_weight: float
    name: str = NAME

    def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats | NotApplicable:
        """Return one score for each row; see the module."""
        of_template = self.template_weight if request.template_id else 0.0
        of_images = self.image_weight if request.images else 0.0
        if not of_images:
            return template_id(fleet, request, rows) if of_template else NOT_APPLICABLE
        total = image_id(fleet, request, rows)
        if of_template:
            share = of_template / (of_template + of_images)
            total *= 1.0 - share
            total += template_id(fleet, request, rows) * share
            np.minimum(total, 100.0, out=total)
        return total


def template_id(fleet: Snapshot, request: Request, rows: Ints) -> Floats:
    """Return the factor of that name for each row; see the module."""
    holders = fleet.templates.get(request.template_id)
    if holders is None:
        return np.zeros(rows.size)
    return np.multiply(holders.take(rows), 100.0, dtype=np.float64)


def image_id(fleet: Snapshot, request: Request, rows: Ints) -> Floats:
    """Return the factor of that name for each row; see the module."""
    is_healthy = fleet.safety == Safety.OK
    healthy = int(np.count_nonzero(is_healthy)) or 1
    total = np.zeros(rows.size)
    for image in request.images:
        size_bytes = fleet.images.get(image)
        if size_bytes is not None:
            holders = np.count_nonzero(size_bytes[is_healthy])
            total += size_bytes.take(rows) * (holders / healthy)
    most = float(MOST_BYTES * len(request.images))
    total = np.clip(total, LEAST_BYTES, most, out=total)
    total -= LEAST_BYTES
    # Exact at both ends: the product is a whole number of less than 53 bits.
    total *= 100.0
    total /= most - LEAST_BYTES
    return total
