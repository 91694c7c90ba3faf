"""Which of the feasible nodes gets the request.

Candidates are ordered by score; ties by name, starting from a feasible row hashed from the
request's uid and attempt. The same hash draws for the random methods: same input, same node.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from cubesched.core.pipeline import Selection, SelectionMethod
from cubesched.core.request import Request
from cubesched.core.snapshot import Floats, Ints, Snapshot

OWN_NODES_WINDOW = 8
"""Among how many of the best a replica looks for its own nodes, at least."""

_REPEATED_ARGMAX_LIMIT = 16
"""Up to so many candidates, repeated argmax is faster than a stable sort."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Positions in the feasible rows: the chosen node, and the next two by score."""

    chosen: int
    runners_up: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Seed:
    """What is drawn for one attempt of one request."""

    tie_start: int
    """A large whole number; modulo the number of feasible nodes, where ties start."""
    fraction: float
    """0 <= fraction < 1, for the random method."""


def seed_of(request: Request) -> Seed:
    """Return the attempt's draw: a function of uid and attempt alone."""
    digest = blake2b(f"{request.uid}/{request.attempt}".encode(), digest_size=16).digest()
    draw = int.from_bytes(digest[8:], "big") >> 11
    return Seed(int.from_bytes(digest[:8], "big"), draw / (1 << 53))


def select(
    fleet: Snapshot,
    request: Request,
    selection: Selection,
    *,
    rows: Ints,
    scores: Floats,
    prefer_own: bool,
) -> Choice:
    """Pick one of `rows` (at least one) by its score.

    With `prefer_own` the first max(topN, 8) are looked at: if any of them belongs to this
    replica, only such nodes stay, the first topN of those.
    """
    seed = seed_of(request)
    wanted = rows.size if selection.top_n < 0 else min(selection.top_n, rows.size)
    window = max(wanted, OWN_NODES_WINDOW) if prefer_own else wanted
    start = 0 if selection.first_by_name else seed.tie_start % rows.size
    ranked = rank(scores, count=max(window, 3), start=start)
    candidates = ranked[:window]
    if prefer_own:
        own = candidates[fleet.own.take(rows.take(candidates))]
        candidates = own if own.size else candidates
    chosen = _pick(fleet, selection.method, candidates[:wanted], rows, scores, seed)
    others = [position for position in ranked[:3].tolist() if position != chosen]
    return Choice(chosen, tuple(others[:2]))


def rank(scores: Floats, *, count: int, start: int) -> Ints:
    """Return the positions of the `count` best scores (or all, if fewer), best first.

    Equal scores stand in position order, starting from `start` and wrapping around.
    """
    rotated = np.concatenate((scores[start:], scores[:start]))
    count = min(count, scores.size)
    if count <= _REPEATED_ARGMAX_LIMIT:
        best = _repeated_argmax(rotated, count)
    else:
        best = np.argsort(-rotated, kind="stable")[:count]
    return (best + start) % scores.size


def _repeated_argmax(scores: Floats, count: int) -> Ints:
    # argmax returns the first of equals, so this is stable; `scores` is used up.
    best = []
    for _ in range(count):
        position = int(scores.argmax())
        best.append(position)
        scores[position] = -1.0
    return np.array(best)


def _pick(
    fleet: Snapshot,
    method: SelectionMethod,
    candidates: Ints,
    rows: Ints,
    scores: Floats,
    seed: Seed,
) -> int:
    match method:
        case SelectionMethod.HIGHEST:
            return int(candidates[0])
        case SelectionMethod.SPREAD:
            return int(candidates[fleet.sandboxes[rows[candidates]].argmin()])
        case SelectionMethod.RANDOM:
            return int(candidates[_draw(scores[candidates], seed.fraction)])
        case SelectionMethod.UNIFORM:
            return int(candidates[int(seed.fraction * candidates.size)])


def _draw(weights: Floats, fraction: float) -> int:
    """Return a place with probability proportional to its weight, uniform when all are 0."""
    sums = np.cumsum(weights)
    if sums[-1] == 0.0:
        return int(fraction * weights.size)
    place = int(np.searchsorted(sums, fraction * sums[-1], side="right"))
    # Rounding may lift fraction * total up to the total itself: the last place with a weight.
    return min(place, int(np.flatnonzero(weights)[-1]))
