"""Ranking, the seeded tie rule, the three methods, and own nodes first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.unit.builders import a_node, a_request, a_snapshot

from cubesched.core.pipeline import Selection, SelectionMethod
from cubesched.core.selection import OWN_NODES_WINDOW, _draw, rank, seed_of, select


def pick(
    scores: Sequence[float],
    method: SelectionMethod,
    top_n: int,
    *,
    own: Sequence[int] = (),
    sandboxes: Sequence[int] = (),
    prefer_own: bool = False,
    uid: str = "uid-1",
    attempt: int = 0,
) -> int:
    fleet = a_snapshot(
        [
            a_node(f"{row:03}", own=row in own, sandboxes=sandboxes[row] if sandboxes else 0)
            for row in range(len(scores))
        ]
    )
    return select(
        fleet,
        a_request(uid, attempt=attempt),
        Selection(method, top_n),
        rows=np.arange(len(scores)),
        scores=np.array(scores),
        prefer_own=prefer_own,
    ).chosen


@pytest.mark.parametrize("count", [1, 3, 16, 17, 40, 100])
@pytest.mark.parametrize("start", [0, 1, 20, 39])
def test_rank_is_by_score_then_by_place_from_the_start(count: int, start: int) -> None:
    scores = np.array([float(place * 7 % 5) for place in range(40)])

    ranked = rank(scores, count=count, start=start)

    expected = sorted(range(40), key=lambda place: (-scores[place], (place - start) % 40))
    assert ranked.tolist() == expected[:count]


def test_rank_leaves_the_scores_alone() -> None:
    scores = np.array([1.0, 3.0, 2.0])

    rank(scores, count=3, start=0)

    assert scores.tolist() == [1.0, 3.0, 2.0]


def test_the_draw_depends_on_uid_and_attempt_alone() -> None:
    request = a_request("uid-1", attempt=3)

    assert seed_of(request) == seed_of(a_request("uid-1", attempt=3, cpu_millis=7, name="other"))
    assert seed_of(request) != seed_of(a_request("uid-1", attempt=4))
    assert seed_of(request) != seed_of(a_request("uid-2", attempt=3))
    assert 0.0 <= seed_of(request).fraction < 1.0


def test_the_draw_is_the_same_for_ever() -> None:
    seed = seed_of(a_request("6f0c8a52-9d1b-4a56-8f2e-0d6a3c1f7b11", attempt=2))

    assert (seed.tie_start, seed.fraction) == (3884092557350734956, 0.8823037423528718)


def test_ties_of_many_requests_reach_every_node() -> None:
    chosen = {pick([5.0] * 8, SelectionMethod.HIGHEST, 1, uid=f"uid-{n}") for n in range(200)}

    assert chosen == set(range(8))


def test_another_attempt_may_take_another_of_equal_nodes() -> None:
    chosen = {pick([5.0] * 8, SelectionMethod.HIGHEST, 1, attempt=n) for n in range(40)}

    assert len(chosen) > 4


@pytest.mark.parametrize("method", list(SelectionMethod))
def test_one_candidate_leaves_no_choice(method: SelectionMethod) -> None:
    assert pick([1.0, 9.0, 3.0], method, 1) == 1


def test_spread_counts_sandboxes_and_ties_keep_the_order_of_scores() -> None:
    scores = [9.0, 8.0, 7.0, 6.0]

    assert pick(scores, SelectionMethod.SPREAD, 3, sandboxes=[5, 2, 2, 0]) == 1
    assert pick(scores, SelectionMethod.SPREAD, -1, sandboxes=[5, 2, 2, 0]) == 3
    assert pick(scores, SelectionMethod.SPREAD, 99, sandboxes=[5, 2, 2, 0]) == 3


def test_random_is_in_proportion_to_the_score() -> None:
    draws = [pick([60.0, 30.0, 10.0, 0.0], SelectionMethod.RANDOM, -1, uid=f"u{n}")
             for n in range(5000)]  # fmt: skip

    shares = np.bincount(draws, minlength=4) / 5000

    assert shares == pytest.approx([0.6, 0.3, 0.1, 0.0], abs=0.03)
    assert shares[3] == 0.0


def test_random_is_uniform_when_all_are_zero() -> None:
    draws = [pick([0.0] * 4, SelectionMethod.RANDOM, -1, uid=f"u{n}") for n in range(4000)]

    assert np.bincount(draws, minlength=4) / 4000 == pytest.approx([0.25] * 4, abs=0.03)


def test_a_draw_on_the_boundary_belongs_to_the_next() -> None:
    assert _draw(np.array([1.0, 1.0]), 0.5) == 1
    assert _draw(np.array([1.0, 1.0]), 0.4999) == 0
    assert _draw(np.array([1.0, 0.0]), 1.0 - 2**-53) == 0


def test_random_stays_among_the_first_top_n() -> None:
    draws = {
        pick([9.0, 8.0, 7.0, 90.0], SelectionMethod.RANDOM, 2, uid=f"u{n}") for n in range(300)
    }

    assert draws == {0, 3}


def test_an_own_node_among_the_best_is_preferred() -> None:
    scores = [float(20 - place) for place in range(12)]

    assert pick(scores, SelectionMethod.HIGHEST, 1, own=[5, 7], prefer_own=True) == 5
    assert pick(scores, SelectionMethod.HIGHEST, 1, own=[5, 7]) == 0


def test_an_own_node_beyond_the_window_is_not_looked_for() -> None:
    scores = [float(20 - place) for place in range(12)]
    beyond = [OWN_NODES_WINDOW, 11]

    assert pick(scores, SelectionMethod.HIGHEST, 1, own=beyond, prefer_own=True) == 0
    assert pick(scores, SelectionMethod.HIGHEST, 9, own=beyond, prefer_own=True) == 8


def test_the_method_picks_among_the_first_top_n_of_the_own_nodes() -> None:
    scores = [float(20 - place) for place in range(12)]
    sandboxes = [0, 9, 0, 9, 5, 0, 4, 0, 0, 0, 0, 0]

    chosen = pick(
        scores, SelectionMethod.SPREAD, 2, own=[1, 4, 6], sandboxes=sandboxes, prefer_own=True
    )

    assert chosen == 4  # of the own nodes 1 and 4; 6 comes third


def test_the_next_two_are_named_even_when_one_candidate_was_asked_for() -> None:
    fleet = a_snapshot([a_node(str(row)) for row in range(4)])

    choice = select(
        fleet,
        a_request(),
        Selection(SelectionMethod.HIGHEST, 1),
        rows=np.arange(4),
        scores=np.array([1.0, 4.0, 3.0, 2.0]),
        prefer_own=False,
    )

    assert (choice.chosen, choice.runners_up) == (1, (2, 3))
