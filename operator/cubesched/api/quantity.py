"""Kubernetes quantities as exact integers: no float is ever made of one.

The grammar is the one regular expression below; the CRDs carry the same text, so that the
API server and this parser accept and refuse alike.
"""

from __future__ import annotations

import re
from typing import Final

MAX_CHARS: Final = 20
MAX_INT64: Final = (1 << 63) - 1

GRAMMAR: Final = r"^[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$"
"""Spelled so that RE2 and Python read it alike; two digits bound the exponent."""

_PARTS: Final = re.compile(
    r"[+]?(?P<whole>[0-9]*)(?:[.](?P<part>[0-9]*))?(?P<suffix>[a-zA-Z]*)(?P<exponent>[+-]?[0-9]*)",
    re.ASCII,
)
_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_ALLOWED: Final = (
    "a plain number with an optional suffix (n u m k M G T P E, Ki Mi Gi Ti Pi Ei) or a short"
    f" exponent, at most {MAX_CHARS} characters, no sign, no space: 500m, 1.5, 4Gi, 1e3"
)


class QuantityError(ValueError):
    """The text is no quantity; the message names it and says what is allowed."""


def parse_millis(value: float | str, *, round_up: bool) -> int:
    """Return thousandths of a unit, as CPU is counted: `0.5` and `500m` are 500.

    Requests round up and capacities down, so that no fraction is ever given away.
    """
    return _scaled(value, 3, round_up=round_up)


def parse_units(value: float | str, *, round_up: bool) -> int:
    """Return whole units, as bytes are counted: `1.5Ki` is 1536."""
    return _scaled(value, 0, round_up=round_up)


def format_millis(millis: int) -> str:
    """Return the canonical text of thousandths: 2000 is `2`, 500 is `500m`."""
    whole, rest = divmod(millis, 1000)
    return f"{millis}m" if rest else str(whole)


def format_bytes(units: int) -> str:
    """Return the canonical text of bytes: the largest binary suffix that divides it, or none."""
    for suffix, bits in reversed(_BINARY.items()):
        if units and units % (1 << bits) == 0:
            return f"{units >> bits}{suffix}"
    return str(units)


def _scaled(value: float | str, power: int, *, round_up: bool) -> int:
    """Return value * 10**power as an integer of at most 63 bits."""
    numerator, denominator = _fraction(value)
    numerator *= _power_of_ten(power)
    result = -(-numerator // denominator) if round_up else numerator // denominator
    if result > MAX_INT64:
        raise QuantityError(f"{_quoted(value)} is too large: at most 2^63-1 units or millis")
    return result


def _fraction(value: float | str) -> tuple[int, int]:
    """Return the exact value as numerator and denominator."""
    if isinstance(value, str):
        return _fraction_of_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return _fraction_of_int(value)
    if isinstance(value, float) and 0 <= value < MAX_INT64:
        raise QuantityError(f"{value!r} is a YAML float: quote it, as in {str(value)!r}")
    raise QuantityError(f"{_quoted(value)} is not a quantity: write {_ALLOWED}")


def _fraction_of_int(value: int) -> tuple[int, int]:
    if value < 0:
        raise QuantityError(f"{_quoted(value)} is negative: a quantity is at least 0")
    if value > MAX_INT64:
        raise QuantityError(f"{_quoted(value)} is too large: at most 2^63-1")
    return value, 1


def _fraction_of_text(text: str) -> tuple[int, int]:
    if len(text) > MAX_CHARS or not re.fullmatch(GRAMMAR[1:-1], text, re.ASCII):
        raise QuantityError(f"{_quoted(text)} is not a quantity: write {_ALLOWED}")
    parts = _PARTS.fullmatch(text)
    assert parts, text  # whatever the grammar accepts splits into these parts
    fraction = parts["part"] or ""
    digits = int((parts["whole"] + fraction) or "0")
    suffix, exponent = parts["suffix"], parts["exponent"]
    if suffix in _BINARY:
        return digits << _BINARY[suffix], _power_of_ten(len(fraction))
    tens = (int(exponent) if exponent else _DECIMAL[suffix]) - len(fraction)
    return (digits * _power_of_ten(tens), 1) if tens >= 0 else (digits, _power_of_ten(-tens))


def _power_of_ten(exponent: int) -> int:
    power: int = 10**exponent
    return power


def _quoted(value: object) -> str:
    """Return the value as messages show it, cut where it is long."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a number of {value.bit_length()} bits"
    text = repr(value[:41] if isinstance(value, str) else value)
    return text if len(text) <= 43 else f"{text[:40]}..."
