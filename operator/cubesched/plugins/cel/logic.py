"""`&&`, `||`, `!`, `?:` and macros: where errors are absorbed, as CEL says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cubesched.plugins.cel.celtypes import DUMMIES, Type
from cubesched.plugins.cel.values import (
    NO_ERROR,
    Env,
    Error,
    Pair,
    Run,
    Value,
    either,
    is_column,
    only_where,
)


def conjunction(args: Sequence[Run]) -> Run:
    """Return `a && b && ...`: false where any is false, else an error where any is one."""
    return _absorbing(args, decisive=False)


def disjunction(args: Sequence[Run]) -> Run:
    """Return `a || b || ...`: true where any is true, else an error where any is one."""
    return _absorbing(args, decisive=True)


def _absorbing(args: Sequence[Run], *, decisive: bool) -> Run:
    """Return an operation that is decided by any one of its arguments, whatever the others are."""

    def run(env: Env) -> Pair:
        value: Value = not decisive
        error: Error = NO_ERROR
        for arg in args:
            new = arg(env)
            value, error = _absorb(value, error, *new, decisive=decisive)
            if value is decisive and type(error) is int and not error:
                break
        return value, error

    return run


def _absorb(a: Value, ea: Error, b: Value, eb: Error, *, decisive: bool) -> Pair:
    value = _combined(a, b, decisive=decisive)
    if type(ea) is int and type(eb) is int and not ea and not eb:
        return value, NO_ERROR
    decided = _decided(a, ea, decisive=decisive) | _decided(b, eb, decisive=decisive)
    error = either(ea, eb)
    if not is_column(decided):
        return (decisive, NO_ERROR) if decided else (value, error)
    return value, only_where(error, ~decided)


def _combined(a: Value, b: Value, *, decisive: bool) -> Value:
    if not is_column(a):
        return a if a is decisive else b
    if not is_column(b):
        return b if b is decisive else a
    return a | b if decisive else a & b


def _decided(value: Value, error: Error, *, decisive: bool) -> Value:
    if type(error) is int:
        if error:
            return False
        if not is_column(value):
            return value is decisive
        return value if decisive else ~value
    return (error == 0) & (value if decisive else np.logical_not(value))


def negation(arg: Run) -> Run:
    """Return `!a`."""

    def run(env: Env) -> Pair:
        value, error = arg(env)
        return (np.logical_not(value) if is_column(value) else not value), error

    return run


def choice(condition: Run, yes: Run, no: Run, result: Type) -> Run:
    """Return `c ? a : b` of bools, ints or doubles; only the chosen branch's error counts."""

    def run(env: Env) -> Pair:
        chosen, error = condition(env)
        if not is_column(chosen):
            if type(error) is int and error:
                return DUMMIES[result], error
            value, failed = yes(env) if chosen else no(env)
            return value, either(error, failed)
        (a, ea), (b, eb) = yes(env), no(env)
        value = np.where(chosen, a, b)
        if type(ea) is int and type(eb) is int and ea == eb:
            return value, either(error, ea)
        failed = either(only_where(ea, chosen), only_where(eb, ~chosen))
        return value, either(error, failed)

    return run


def strict(run: Run, others: Sequence[Run]) -> Run:
    """Return the same value, an error also where any of the others is one."""

    def guarded(env: Env) -> Pair:
        value, error = run(env)
        for other in others:
            error = either(error, other(env)[1])
        return value, error

    return guarded
