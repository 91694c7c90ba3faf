"""Operations on strings: of a column each distinct text is looked at once, then remembered."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from cubesched.core.snapshot import Bools
from cubesched.plugins.cel.limits import TEXT_NS
from cubesched.plugins.cel.texts import Extended, Memo, Spends, Texts
from cubesched.plugins.cel.typed import Errors, Typed
from cubesched.plugins.cel.values import Env, Pair, Run, Text, Value, either

_REMEMBERED: Final = 4
"""Arguments that differ from request to request and whose answers are kept."""
Test = Callable[[str, str], bool]


class _Memos:
    """The answers of a test of (text, argument), for the arguments asked about last."""

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

    def _about(self, argument: str) -> Callable[[str, Spends], bool]:
        def answer(text: str, budget: Spends) -> bool:
            budget.spend(TEXT_NS + len(text) + len(argument))
            return self._test(text, argument)

        return answer


def test(passes: Test) -> Callable[[tuple[Typed, ...], Errors], Run]:
    """Return a test of two strings, of which one at most is a column."""

    def make(args: tuple[Typed, ...], _: Errors) -> Run:
        left, right = args[0].run, args[1].run
        forward, backward = _Memos(passes), _Memos(lambda text, other: passes(other, text))

        def run(env: Env) -> Pair:
            (a, ea), (b, eb) = left(env), right(env)
            value: Value
            if type(a) is Text:
                value = forward.take(env, a, b)
            elif type(b) is Text:
                value = backward.take(env, b, a)
            else:
                env.spend(TEXT_NS + len(a) + len(b))
                value = passes(a, b)
            return value, either(ea, eb)

        return run

    return make


STARTS_WITH = test(str.startswith)
ENDS_WITH = test(str.endswith)
CONTAINS = test(operator.contains)
LESS = test(operator.lt)
LESS_OR_EQUAL = test(operator.le)
GREATER = test(operator.gt)
GREATER_OR_EQUAL = test(operator.ge)


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

    def _number(self, text: str, budget: Spends) -> int:
        budget.spend(TEXT_NS)
        return self._numbers.setdefault(text, len(self._numbers))


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

    def answer(text: str, budget: Spends) -> bool:
        budget.spend(TEXT_NS)
        return text in listed

    memo = Memo(answer, np.bool_)

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
        env.spend(TEXT_NS + len(a) + len(b))
        return a + b, error

    return run


def size(args: tuple[Typed, ...], _: Errors) -> Run:
    """Return the number of Unicode characters."""

    def answer(text: str, budget: Spends) -> int:
        budget.spend(TEXT_NS)
        return len(text)

    subject, memo = args[0].run, Memo(answer, np.int64)

    def run(env: Env) -> Pair:
        value, error = subject(env)
        if type(value) is Text:
            return memo.take(value.codes, value.texts, env), error
        return len(value), error

    return run
