"""Which nodes have fallen silent, counted in time listened and never in time away.

Time counts only between reads of the reports that showed some node's stamp advance. So an outage
of Redis makes nobody silent, nor does a replica that was stopped for a while, and one that has
just started has heard of nobody's silence yet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cubesched.core.snapshot import Ints
from cubesched.fleet.columns import Columns
from cubesched.fleet.reported import Reported

MOST_SECONDS_A_READ = 2.0
"""What one read counts at most: twice the time between two of them."""


@dataclass(frozen=True, slots=True)
class Silence:
    """One node that has said nothing for longer than its reports are believed."""

    seconds: float
    """Listened since it was last heard."""
    last_heard: float
    """Monotonic time of its last heartbeat; -inf when this replica never saw one."""


@dataclass(slots=True)
class Listening:
    """This replica's time of listening, and who was heard when on that clock."""

    seconds: float = 0.0
    _read_at: float = np.inf

    def take(self, reported: Reported, stamps_before: Ints, *, monotonic: float) -> None:
        """Take one read of the reports; `stamps_before` is the column as it stood before it."""
        passed = min(MOST_SECONDS_A_READ, max(0.0, monotonic - self._read_at))
        self._read_at = monotonic
        advanced = (stamps_before >= 0) & (reported.stamp_ms > stamps_before)
        if advanced.any():
            self.seconds += passed
            reported.heard_seconds[advanced] = self.seconds

    def silent(self, columns: Columns, *, longer_than_seconds: float) -> dict[str, Silence]:
        """Return the nodes that have been silent for so long."""
        reported = columns.reported
        silent = self.seconds - reported.heard_seconds
        return {
            columns.names[row]: Silence(float(silent[row]), float(reported.advanced_monotonic[row]))
            for row in np.flatnonzero(silent >= longer_than_seconds).tolist()
        }
