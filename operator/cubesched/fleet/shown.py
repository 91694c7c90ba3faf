"""What was last shown of each node in its status; columns that move with the nodes' rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cubesched.core.snapshot import Floats

Marks = NDArray[np.uint64]

LOOK_AGAIN: Final = 0
"""A mark that equals none: the row must be looked at."""


@dataclass(slots=True)
class Shown:
    """Columns of what was last shown; they move with the rows of the nodes."""

    verdicts: Marks
    allocated: Marks
    written_monotonic: Floats
    """When the status was last written; NaN before the first look."""
    dated_monotonic: Floats
    """The time of the last report as it is shown."""

    @classmethod
    def empty(cls, rows: int) -> Shown:
        """Return the columns of nodes that nothing was shown of."""
        return cls(
            np.full(rows, LOOK_AGAIN, np.uint64),
            np.full(rows, LOOK_AGAIN, np.uint64),
            np.full(rows, np.nan),
            np.full(rows, -np.inf),
        )
