"""Comparisons of bools, ints and doubles, and membership in a list of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cubesched.plugins.cel.typed import Errors, Typed
from cubesched.plugins.cel.values import Env, Pair, Run, either, is_column


def comparison(
    scalar: Callable[[Any, Any], bool], column: Callable[[Any, Any], Any]
) -> Callable[[tuple[Typed, ...], Errors], Run]:
    """Return an operation that never fails by itself; NaN is unlike everything."""

    def make(args: tuple[Typed, ...], _: Errors) -> Run:
        left, right = args[0].run, args[1].run

        def run(env: Env) -> Pair:
            (a, ea), (b, eb) = left(env), right(env)
            value = column(a, b) if is_column(a) or is_column(b) else scalar(a, b)
            return value, either(ea, eb)

        return run

    return make


LESS = comparison(lambda a, b: a < b, np.less)
LESS_OR_EQUAL = comparison(lambda a, b: a <= b, np.less_equal)
GREATER = comparison(lambda a, b: a > b, np.greater)
GREATER_OR_EQUAL = comparison(lambda a, b: a >= b, np.greater_equal)
EQUAL = comparison(lambda a, b: a == b, np.equal)
NOT_EQUAL = comparison(lambda a, b: a != b, np.not_equal)


def member_by(
    equal: Callable[[tuple[Typed, ...], Errors], Run],
) -> Callable[[tuple[Typed, ...], Errors], Run]:
    """Return `a in [...]` as a chain of comparisons; an error where any part is one."""

    def make(args: tuple[Typed, ...], errors: Errors) -> Run:
        subject, listed = args
        tests = [equal((subject, item), errors) for item in listed.items]

        def run(env: Env) -> Pair:
            value, error = tests[0](env)
            for each in tests[1:]:
                other, failed = each(env)
                value = value | other
                error = either(error, failed)
            return value, error

        return run

    return make


MEMBER = member_by(EQUAL)
