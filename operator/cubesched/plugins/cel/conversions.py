"""int(), double() and string()."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cubesched.plugins.cel.literals import MAX_INT, MIN_INT
from cubesched.plugins.cel.texts import OR_FAILED, Budget, Memo
from cubesched.plugins.cel.typed import Errors, Typed
from cubesched.plugins.cel.values import (
    Env,
    Pair,
    Run,
    Text,
    either,
    failing,
    is_column,
)

_SPACE = r"[ \t\n\v\f\r]*"
_INT: Final = re.compile(rf"{_SPACE}([+-]?[0-9]+){_SPACE}")
_DOUBLE: Final = re.compile(
    rf"{_SPACE}([+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)){_SPACE}",
    re.IGNORECASE | re.ASCII,
)
_HEXADECIMAL: Final = re.compile(
    rf"{_SPACE}([+-]?0x(?:[0-9a-f]+(?:\.[0-9a-f]*)?|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?){_SPACE}",
    re.IGNORECASE | re.ASCII,
)
_PARSE_NS: Final = 1_500
_DIGIT_NS: Final = 10
_LONGEST_INT: Final = 100
"""Digits beyond this are zeros or too many."""
_NO_INT, _NO_DOUBLE = "text that is no int", "text that is no double"
_OUT_OF_RANGE = "a double that no int can hold"


def parse_int(text: str) -> int | None:
    """Return the int that a text spells, or None."""
    found = _INT.fullmatch(text)
    if found is None:
        return None
    digits = found[1].lstrip("+-").lstrip("0") or "0"
    if len(digits) > _LONGEST_INT:
        return None
    value = -int(digits) if found[1].startswith("-") else int(digits)
    return value if MIN_INT <= value <= MAX_INT else None


def parse_double(text: str) -> float | None:
    """Return the double that a text spells, or None; too large is infinite."""
    if found := _DOUBLE.fullmatch(text):
        return float(found[1])
    if "x" in text or "X" in text:
        return _parse_hexadecimal(text)
    return None


def _parse_hexadecimal(text: str) -> float | None:
    found = _HEXADECIMAL.fullmatch(text)
    if found is None:
        return None
    try:
        return float.fromhex(found[1])
    except OverflowError:
        return -math.inf if found[1].startswith("-") else math.inf


def _of_text(
    parse: Callable[[str], Any], dtype: type[np.int64 | np.float64], dummy: float, failure: str
) -> Callable[[tuple[Typed, ...], Errors], Run]:
    def answer(texts: list[str], budget: Budget) -> NDArray[Any]:
        budget.charge(_DIGIT_NS * sum(map(len, texts)))
        parsed = [parse(text) for text in texts]
        answers = np.zeros(len(texts), OR_FAILED[dtype])
        answers["failed"] = [value is None for value in parsed]
        answers["value"] = [dummy if value is None else value for value in parsed]
        return answers

    def make(args: tuple[Typed, ...], errors: Errors) -> Run:
        subject, number = args[0].run, errors.number(failure)
        memo = Memo(answer, OR_FAILED[dtype], each_ns=_PARSE_NS)

        def run(env: Env) -> Pair:
            text, error = subject(env)
            if type(text) is Text:
                answers = memo.take(text.codes, text.texts, env)
                return answers["value"], either(error, failing(answers["failed"], number))
            env.read(text)
            value = parse(text)
            return (value, error) if value is not None else (dummy, either(error, number))

        return run

    return make


INT_OF_TEXT = _of_text(parse_int, np.int64, 0, _NO_INT)
DOUBLE_OF_TEXT = _of_text(parse_double, np.float64, 0.0, _NO_DOUBLE)


def int_of_double(args: tuple[Typed, ...], errors: Errors) -> Run:
    """Return the double without its fraction; an error beyond an int's range."""
    subject, number = args[0].run, errors.number(_OUT_OF_RANGE)

    def run(env: Env) -> Pair:
        value, error = subject(env)
        if is_column(value):
            mask = ~(np.abs(value) < 2.0**63)
            return np.where(mask, 0.0, value).astype(np.int64), either(error, failing(mask, number))
        if not abs(value) < 2.0**63:
            return 0, either(error, number)
        return int(value), error

    return run


def double_of_int(args: tuple[Typed, ...], _: Errors) -> Run:
    """Return the nearest double."""
    subject = args[0].run

    def run(env: Env) -> Pair:
        value, error = subject(env)
        return (value.astype(np.float64) if is_column(value) else float(value)), error

    return run


def string_of_int(args: tuple[Typed, ...], _: Errors) -> Run:
    """Return the decimal digits of an int that is the same for all nodes."""
    subject = args[0].run

    def run(env: Env) -> Pair:
        value, error = subject(env)
        return str(value), error

    return run


def same(args: tuple[Typed, ...], _: Errors) -> Run:
    """Return the value itself."""
    return args[0].run
