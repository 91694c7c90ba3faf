"""What a plain YAML scalar is to kubectl: YAML 1.1 in its Go reading, then JSON.

PyYAML's own rules differ where it counts: `1e3` is a number, `1:30` and `2026-12-01` are text.
"""

from __future__ import annotations

import re
from typing import Final

Scalar = str | int | float | bool | None

_NAMED: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False
    ),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_INT: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)"
    r"|(?P<dec>0|[1-9][0-9]*))"
)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASES: Final = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_MAX_INT: Final = (1 << 64) - 1
_MAX_DIGITS: Final = 100
"""Beyond, even Python would refuse to convert; kubectl makes a float of them."""
_INTEGRAL_BELOW: Final = 1e21
"""Up to here Go writes a float without an exponent, so that the server reads an integer."""


def plain(text: str) -> Scalar:
    """Return what an unquoted scalar without a tag stands for."""
    if text in _NAMED:
        return _NAMED[text]
    digits = text.replace("_", "") if text[0] in "+-0123456789" else text
    whole = _INT.fullmatch(digits)
    if whole and len(digits) <= _MAX_DIGITS:
        number = _whole(whole)
        if abs(number) <= _MAX_INT:
            return number
    if _FLOAT.fullmatch(digits):
        return as_json(float(digits))
    return text


def as_json(number: float) -> int | float:
    """Return the number that arrives at the server: `1.0` is sent as 1."""
    if number.is_integer() and abs(number) < _INTEGRAL_BELOW:
        return int(number)
    return number


def key(value: Scalar, text: str) -> str:
    """Return the JSON key that a scalar key becomes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else text


def _whole(found: re.Match[str]) -> int:
    base, digits = next((base, found[name]) for name, base in _BASES.items() if found[name])
    return -int(digits, base) if found["sign"] == "-" else int(digits, base)
