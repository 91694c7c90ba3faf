"""CubeMaster's adjustment after scoring: nodes that are favoured, and nodes that are avoided.

A favoured node gains a share of the mean of all scores, then an avoided one loses a share of its
own. All scores are divided by the most that a score can become of 100, which changes neither their
order nor their proportions. A share of more than 1 would make scores negative: an avoided node
loses at most all it has.
Source: CubeMaster's postscore.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cubesched.core.snapshot import Floats, Ints, Snapshot


@dataclass(frozen=True, slots=True)
class Whitelist:
    """The lists hold names of nodes; names of which there is no node do nothing."""

    favoured: tuple[str, ...]
    gain: float
    """Share of the mean of all scores, 0 or more."""
    avoided: tuple[str, ...]
    loss: float
    """Share of a node's own score, 0 to 1."""

    def adjust(self, fleet: Snapshot, rows: Ints, scores: Floats) -> Floats:
        """Return the adjusted scores; see the module."""
        gaining = _positions(fleet, rows, self.favoured)
        if gaining.size:
            mean = scores.mean()
            scores[gaining] += mean * self.gain
        losing = _positions(fleet, rows, self.avoided)
        scores[losing] *= 1.0 - self.loss
        scores /= 1.0 + self.gain
        return np.minimum(scores, 100.0, out=scores)


def _positions(fleet: Snapshot, rows: Ints, names: tuple[str, ...]) -> Ints:
    """Return the places among `rows`, which are in order, of those nodes that are there."""
    listed = [fleet.row_of[name] for name in names if name in fleet.row_of]
    wanted = np.array(listed, dtype=np.int64)
    places = np.searchsorted(rows, wanted)
    places[places == rows.size] = 0
    found: Ints = places[rows[places] == wanted]
    return found
