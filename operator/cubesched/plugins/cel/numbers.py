"""Arithmetic: ints of 64 bits that overflow into errors, doubles as IEEE 754 has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubesched.core.snapshot import Bools
from cubesched.plugins.cel.literals import MAX_INT, MIN_INT
from cubesched.plugins.cel.typed import Errors, Typed
from cubesched.plugins.cel.values import (
    NO_ERROR,
    Env,
    Error,
    Pair,
    Run,
    Value,
    either,
    failing,
    is_column,
)

OVERFLOW = "integer overflow"
DIVISION = "division by zero"
MODULUS = "modulus by zero"

Column = Any
"""An array, or a number beside one."""
Make = Callable[[tuple[Typed, ...], Errors], Run]
ScalarInts = Callable[[int, int], int]
ColumnInts = Callable[[Column, Column], tuple[NDArray[np.int64], Bools]]


def doubles(scalar: Callable[[float, float], float], column: Callable[[Any, Any], Any]) -> Make:
    """Return an operation on doubles, which never fails by itself."""

    def make(args: tuple[Typed, ...], _: Errors) -> Run:
        left, right = args[0].run, args[1].run

        def run(env: Env) -> Pair:
            (a, ea), (b, eb) = left(env), right(env)
            value = column(a, b) if is_column(a) or is_column(b) else scalar(a, b)
            return value, either(ea, eb)

        return run

    return make


def ints(scalar: ScalarInts, column: ColumnInts) -> Make:
    """Return an operation on ints; the mask tells where the result overflows."""

    def make(args: tuple[Typed, ...], errors: Errors) -> Run:
        left, right, overflow = args[0].run, args[1].run, errors.number(OVERFLOW)

        def run(env: Env) -> Pair:
            (a, ea), (b, eb) = left(env), right(env)
            value: Value
            error: Error
            if is_column(a) or is_column(b):
                value, mask = column(a, b)
                error = failing(mask, overflow)
            else:
                value = scalar(a, b)
                error = NO_ERROR if MIN_INT <= value <= MAX_INT else overflow
                value = 0 if error else value
            return value, either(either(ea, eb), error)

        return run

    return make


def dividing(scalar: ScalarInts, column: Callable[[Any, Any], Any], by_zero: str) -> Make:
    """Return an operation on ints that has no result for 0, and none for the least int by -1."""

    def make(args: tuple[Typed, ...], errors: Errors) -> Run:
        left, right = args[0].run, args[1].run
        zero, overflow = errors.number(by_zero), errors.number(OVERFLOW)

        def run(env: Env) -> Pair:
            (a, ea), (b, eb) = left(env), right(env)
            if is_column(a) or is_column(b):
                is_zero, overflows = np.equal(b, 0), np.equal(a, MIN_INT) & np.equal(b, -1)
                value = column(a, np.where(is_zero | overflows, 1, b))
                error = either(_filled(is_zero, zero), failing(overflows, overflow))
            else:
                error = zero if b == 0 else overflow if (a, b) == (MIN_INT, -1) else NO_ERROR
                value = 0 if error else scalar(a, b)
            return value, either(either(ea, eb), error)

        return run

    return make


def _filled(mask: Any, error: int) -> Error:
    """Return the error on the rows of a mask that may be one bool for all."""
    if not is_column(mask):
        return error if mask else NO_ERROR
    return failing(mask, error)


def _add(a: Any, b: Any) -> tuple[Any, Bools]:
    value = np.add(a, b)
    return value, ((a ^ value) & (b ^ value)) < 0


def _subtract(a: Any, b: Any) -> tuple[Any, Bools]:
    value = np.subtract(a, b)
    return value, ((a ^ b) & (a ^ value)) < 0


def _multiply(a: Any, b: Any) -> tuple[Any, Bools]:
    # What wraps is off by a multiple of 2**64, what does not by rounding only.
    value = np.multiply(a, b)
    rounded = np.multiply(a, b, dtype=np.float64)
    return value, np.abs(rounded - value) > 2.0**62


def _divide(a: Any, b: Any) -> Any:
    """Round toward zero, where NumPy rounds down."""
    value = np.floor_divide(a, b)
    value += (value * b != a) & ((a ^ b) < 0)
    return value


def _divide_scalars(a: int, b: int) -> int:
    value = abs(a) // abs(b)
    return value if (a < 0) == (b < 0) else -value


def _divide_doubles(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0.0 or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


ADD_INTS = ints(lambda a, b: a + b, _add)
SUBTRACT_INTS = ints(lambda a, b: a - b, _subtract)
MULTIPLY_INTS = ints(lambda a, b: a * b, _multiply)
DIVIDE_INTS = dividing(_divide_scalars, _divide, DIVISION)
MODULO_INTS = dividing(lambda a, b: a - b * _divide_scalars(a, b), np.fmod, MODULUS)
ADD_DOUBLES = doubles(lambda a, b: a + b, np.add)
SUBTRACT_DOUBLES = doubles(lambda a, b: a - b, np.subtract)
MULTIPLY_DOUBLES = doubles(lambda a, b: a * b, np.multiply)
DIVIDE_DOUBLES = doubles(_divide_doubles, np.true_divide)


def negate_int(args: tuple[Typed, ...], errors: Errors) -> Run:
    """Return `-a`; the least int has no opposite."""
    arg, overflow = args[0].run, errors.number(OVERFLOW)

    def run(env: Env) -> Pair:
        value, error = arg(env)
        if is_column(value):
            return np.negative(value), either(error, failing(value == MIN_INT, overflow))
        if value == MIN_INT:
            return 0, either(error, overflow)
        return -value, error

    return run


def negate_double(args: tuple[Typed, ...], _: Errors) -> Run:
    """Return `-a`."""
    arg = args[0].run

    def run(env: Env) -> Pair:
        value, error = arg(env)
        return -value, error

    return run
