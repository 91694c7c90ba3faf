"""Rendezvous: the same owner everywhere, even shares, and little movement."""

from __future__ import annotations

from collections import Counter

from cubesched.fleet.rendezvous import owner, ranking

MEMBERS = ("replica-a", "replica-b", "replica-c")
KEYS = [f"uid-{number}" for number in range(600)]


def test_the_owner_stands_first_in_the_ranking_whatever_the_order_of_members() -> None:
    for key in KEYS[:50]:
        assert ranking(key, MEMBERS) == ranking(key, MEMBERS[::-1])
        assert owner(key, MEMBERS) == ranking(key, MEMBERS)[0]


def test_shares_are_about_even() -> None:
    shares = Counter(owner(key, MEMBERS) for key in KEYS)

    assert all(140 < share < 260 for share in shares.values())


def test_when_a_replica_goes_only_its_own_share_moves() -> None:
    left = MEMBERS[:2]

    for key in KEYS:
        before = owner(key, MEMBERS)
        assert owner(key, left) == (before if before in left else ranking(key, MEMBERS)[1])


def test_without_members_nobody_owns_anything() -> None:
    assert owner("uid", ()) is None
    assert ranking("uid", ()) == []
