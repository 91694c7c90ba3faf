"""Operations on strings: of a column each distinct text is looked at once, then remembered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from cubesched.core.snapshot import Bools
from cubesched.plugins.cel.texts import Answer, Budget, Extended, Memo, Texts
from cubesched.plugins.cel.typed import Errors, Typed
from cubesched.plugins.cel.values import Env, Pair, Run, Text, Value, either

_REMEMBERED: Final = 4
"""Arguments that differ from request to request and whose answers are kept."""
Test = Callable[[list[str], str], list[bool]]
"""Asks the same of many texts, with one argument."""


class _Memos:
    """The answers of a test, for the arguments asked about last."""

    def __init__(self, test: Test) -> None:
        self._test = test
        self._memos: OrderedDict[str, Memo] = OrderedDict()

    def take(self, env: Env, column: Text, argument: str) -> Bools:
        memo = self._memos.get(argument)
        if memo is None:
            memo = self._memos[argument] = Memo(self._about(argument), np.bool_)
            if len(self._memos) > _REMEMBERED:
                self._memos.popitem(last=False)
        passed: Bools = memo.take(column.codes, column.texts, env)
        return passed

    def _about(self, argument: str) -> Answer:
        def answer(texts: list[str], budget: Budget) -> list[bool]:
            budget.charge(len(texts) * len(argument))
            return self._test(texts, argument)

        return answer


def test(forward: Test, backward: Test) -> Callable[[tuple[Typed, ...], Errors], Run]:
    """Return a test of two strings, of which one at most is a column: the first, or the second."""

    def make(args: tuple[Typed, ...], _: Errors) -> Run:
        left, right = args[0].run, args[1].run
        first, second = _Memos(forward), _Memos(backward)

        def run(env: Env) -> Pair:
            (a, ea), (b, eb) = left(env), right(env)
            value: Value
            if type(a) is Text:
                value = first.take(env, a, b)
            elif type(b) is Text:
                value = second.take(env, b, a)
            else:
                env.read(a, b)
                (value,) = forward([a], b)
            return value, either(ea, eb)

        return run

    return make


def _less(texts: list[str], other: str) -> list[bool]:
    return [text < other for text in texts]


def _less_or_equal(texts: list[str], other: str) -> list[bool]:
    return [text <= other for text in texts]


def _greater(texts: list[str], other: str) -> list[bool]:
    return [text > other for text in texts]


def _greater_or_equal(texts: list[str], other: str) -> list[bool]:
    return [text >= other for text in texts]


STARTS_WITH = test(
    lambda texts, start: [text.startswith(start) for text in texts],
    lambda starts, text: [text.startswith(start) for start in starts],
)
ENDS_WITH = test(
    lambda texts, end: [text.endswith(end) for text in texts],
    lambda ends, text: [text.endswith(end) for end in ends],
)
CONTAINS = test(
    lambda texts, part: [part in text for text in texts],
    lambda parts, text: [part in text for part in parts],
)
LESS = test(_less, _greater)
LESS_OR_EQUAL = test(_less_or_equal, _greater_or_equal)
GREATER = test(_greater, _less)
GREATER_OR_EQUAL = test(_greater_or_equal, _less_or_equal)


class _Common:
    """Gives equal texts of two columns equal numbers."""

    _MOST: Final = 1_000_000

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._memos = (Memo(self._number, np.int64), Memo(self._number, np.int64))

    def equal(self, env: Env, a: Text, b: Text) -> Bools:
        if len(self._numbers) > self._MOST:
            self.__init__()  # type: ignore[misc]
        first, second = self._memos
        same: Bools = np.equal(
            first.take(a.codes, a.texts, env), second.take(b.codes, b.texts, env)
        )
        return same

    def _number(self, texts: list[str], _: Budget) -> list[int]:
        numbers = self._numbers
        return [numbers.setdefault(text, len(numbers)) for text in texts]


def equal(args: tuple[Typed, ...], _: Errors) -> Run:
    """Return `a == b` of strings: a comparison of codes."""
    left, right, common = args[0].run, args[1].run, _Common()

    def run(env: Env) -> Pair:
        (a, ea), (b, eb) = left(env), right(env)
        return equal_values(env, a, b, common), either(ea, eb)

    return run


def equal_values(env: Env, a: Value, b: Value, common: _Common) -> Value:
    """Return which texts are equal."""
    if type(a) is Text:
        return common.equal(env, a, b) if type(b) is Text else _equal_to(a, b)
    if type(b) is Text:
        return _equal_to(b, a)
    return a == b


def _equal_to(column: Text, text: str) -> Value:
    codes = column.texts.codes_of(text)
    if not codes:
        return False
    value = column.codes == codes[0]
    for code in codes[1:]:
        value |= column.codes == code
    return value


def not_equal(args: tuple[Typed, ...], errors: Errors) -> Run:
    """Return `a != b` of strings."""
    same = equal(args, errors)

    def run(env: Env) -> Pair:
        value, error = same(env)
        return (np.logical_not(value) if type(value) is np.ndarray else not value), error

    return run


def member(args: tuple[Typed, ...], _: Errors) -> Run:
    """Return `a in [...]` of strings that are all literals."""
    subject = args[0].run
    listed = frozenset(str(item.literal) for item in args[1].items)

    memo = Memo(lambda texts, _: [text in listed for text in texts], np.bool_)

    def run(env: Env) -> Pair:
        value, error = subject(env)
        if type(value) is Text:
            return memo.take(value.codes, value.texts, env), error
        return value in listed, error

    return run


def concatenation(args: tuple[Typed, ...], _: Errors) -> Run:
    """Return `a + b`, of which one at most is a column, and the other one then a literal."""
    left, right = args[0].run, args[1].run
    made: dict[str, Any] = {"inner": None, "texts": None}

    def extended(inner: Texts, before: str, after: str) -> Texts:
        if made["inner"] is not inner:
            made.update(inner=inner, texts=Extended(inner, before, after))
        texts: Texts = made["texts"]
        return texts

    def run(env: Env) -> Pair:
        (a, ea), (b, eb) = left(env), right(env)
        error = either(ea, eb)
        if type(a) is Text:
            return Text(a.codes, extended(a.texts, "", b)), error
        if type(b) is Text:
            return Text(b.codes, extended(b.texts, a, "")), error
        env.read(a, b)
        return a + b, error

    return run


def size(args: tuple[Typed, ...], _: Errors) -> Run:
    """Return the number of Unicode characters."""
    subject, memo = args[0].run, Memo(lambda texts, _: list(map(len, texts)), np.int64)

    def run(env: Env) -> Pair:
        value, error = subject(env)
        if type(value) is Text:
            return memo.take(value.codes, value.texts, env), error
        return len(value), error

    return run
