"""Texts by code, and what is remembered of them."""

from __future__ import annotations

import numpy as np
from tests.unit.builders import a_node, a_snapshot
from tests.unit.plugins.cel.asking import verdicts

from cubesched.core.request import Request
from cubesched.plugins.cel.limits import FRESH_NS
from cubesched.plugins.cel.texts import Budget, Extended, Interned, Memo, Names, Vocabulary
from cubesched.plugins.cel.values import Env


class Purse:
    """A budget that never runs out."""

    spent = 0.0

    def check(self) -> None:
        pass

    def charge(self, nanoseconds: float) -> None:
        self.spent += nanoseconds


def lengths(asked: list[list[str]]) -> Memo:
    def answer(texts: list[str], _: Budget) -> list[int]:
        asked.append(texts)
        return [len(text) for text in texts]

    return Memo(answer, np.int64)


def codes(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(numbers, np.int32)


def test_interned_texts_follow_the_mapping_as_it_grows() -> None:
    source = {"a": 1, "b": 2}
    texts = Interned(source)

    assert texts.among([0, 1, 2]) == ["", "a", "b"]
    source["c"] = 3
    source["d"] = 4
    assert texts.among([3, 4, 1]) == ["c", "d", "a"]
    assert (texts.size, texts.codes_of("c"), texts.codes_of("x")) == (5, (3,), ())


def test_the_empty_text_may_have_two_codes() -> None:
    assert Interned({"a": 1, "": 2}).codes_of("") == (0, 2)
    assert Interned({"a": 1}).codes_of("") == (0,)
    assert Interned({"": 0, "a": 1}).among([0, 1]) == ["", "a"]
    assert Interned({"": 0, "a": 1}).codes_of("") == (0,)


def test_a_mapping_that_was_emptied_is_read_anew() -> None:
    vocabulary, source = Vocabulary(), {"a": 1, "b": 2}
    vocabulary.interned(source).among([1])
    source.clear()
    source["x"] = 1

    assert vocabulary.interned(source).among([1]) == ["x"]


def test_names_keep_their_codes_when_rows_move() -> None:
    names, purse = Names(), Purse()
    first = names.codes(["a", "b", "c"], purse).tolist()
    spent = purse.spent

    assert names.codes(["a", "b", "c"], purse).tolist() == first
    assert purse.spent == spent
    assert names.codes(["a", "aa", "c"], purse).tolist() == [first[0], 4, first[2]]
    assert names.among([4]) == ["aa"]


def test_names_of_a_frozen_fleet_are_looked_at_once() -> None:
    names, purse = Names(), Purse()
    first = names.codes(["a", "b"], purse)

    assert names.codes(("a", "b"), purse) is first


def test_rows_that_move_in_place_are_noticed() -> None:
    names, purse, rows = Names(), Purse(), ["a", "b"]
    first = names.codes(rows, purse).tolist()
    rows[:] = ["b", "c"]

    assert names.codes(rows, purse).tolist() == [first[1], 3]


def test_names_that_are_gone_are_forgotten_in_the_end() -> None:
    vocabulary, purse = Vocabulary(), Purse()

    def size(number: int) -> int:
        _, names = vocabulary.names([f"n{number}-{row}" for row in range(1_000)], purse)
        return names.size

    assert [size(number) for number in range(12)][-1] < 9_000


def test_extended_texts_are_found_by_what_was_there_before() -> None:
    texts = Extended(Interned({"a": 1}), "<", ">")

    assert texts.among([1, 0]) == ["<a>", "<>"]
    assert (texts.codes_of("<a>"), texts.codes_of("a"), texts.codes_of("<")) == ((1,), (), ())


def test_a_memo_asks_once_for_each_text_it_meets() -> None:
    asked: list[list[str]] = []
    memo, texts = lengths(asked), Interned({"a": 1, "bb": 2, "ccc": 3})

    assert memo.take(codes(1, 2, 1), texts, Purse()).tolist() == [1, 2, 1]
    assert memo.take(codes(2, 3), texts, Purse()).tolist() == [2, 3]
    assert memo.take(codes(3, 1), texts, Purse()).tolist() == [3, 1]
    assert asked == [["a", "bb"], ["ccc"]]


def test_a_memo_grows_with_its_texts_and_starts_anew_with_others() -> None:
    asked: list[list[str]] = []
    source = {"a": 1}
    memo, texts = lengths(asked), Interned(source)
    memo.take(codes(1), texts, Purse())
    source.update({f"x{number}": number for number in range(2, 500)})

    assert memo.take(codes(1, 499), texts, Purse()).tolist() == [1, 4]
    assert memo.take(codes(1), Interned({"other": 1}), Purse()).tolist() == [5]
    assert asked == [["a"], ["x499"], ["other"]]


def test_equal_texts_of_different_columns_are_equal() -> None:
    nodes = [
        a_node("n1", labels={"host": "n1"}, instance_type="x"),
        a_node("n2", labels={"host": "n9"}, address="n2", instance_type="n2"),
    ]
    fleet = a_snapshot(nodes)

    assert verdicts("node.id == node.labels.host", fleet) == [True, False]
    assert verdicts("node.id == node.ip && node.ip == node.instance_type", fleet) == [False, True]
    assert verdicts('node.id + "x" == node.labels.host + "x"', fleet) == [True, False]
    assert verdicts('"n" + node.id != node.labels.host', fleet) == [True, True]


def test_a_node_that_comes_or_goes_changes_no_answer() -> None:
    text = 'node.id.endsWith("1") || node.labels.z == "b"'
    for names in (["n1", "n2"], ["n1", "n11", "n2"], ["m1", "n2"], ["n2"]):
        fleet = a_snapshot(
            [a_node(name, labels={"z": "b" if name == "m1" else "c"}) for name in names]
        )
        assert verdicts(text, fleet) == [name.endswith("1") for name in names]


def test_text_of_a_request_is_compared_with_any_number_of_requests() -> None:
    fleet = a_snapshot([a_node(f"n{number}") for number in range(10)])
    text = "node.id.endsWith(request.template_id)"

    for number in range(10):
        request = Request("u", "d", "r", 1, 1, template_id=str(number))
        assert verdicts(text, fleet, request).index(True) == number


def test_the_budget_of_a_decision_grows_with_the_fleet() -> None:
    request = Request("u", "d", "r", 1, 1)
    large = a_snapshot([a_node(f"n{number}") for number in range(10_000)])

    assert Env(a_snapshot([a_node("a")]), request).fresh_ns == FRESH_NS
    assert Env(large, request).fresh_ns == 2 * FRESH_NS
