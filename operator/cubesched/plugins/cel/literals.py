"""Literals decoded as CEL says, from tokens that `lexing` has let through."""

from __future__ import annotations

import re
from typing import Final

MAX_INT: Final = (1 << 63) - 1
MIN_INT: Final = -(1 << 63)

_ESCAPES: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    '"': '"', "'": "'", "`": "`", "?": "?", "\\": "\\",
}  # fmt: skip
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{2}|[xX]..|u.{4}|U.{8}|.)", re.DOTALL)
_LAST_CODE_POINT, _SURROGATES = 0x10FFFF, range(0xD800, 0xE000)


class LiteralInvalid(Exception):
    """A literal has no value; `str()` says why."""


def decode_text(token: str) -> str:
    """Return the value of a string literal with its quotes and prefix."""
    is_raw = token[0] in "rR"
    body = token[1:] if is_raw else token
    quotes = 3 if body[:3] in ('"""', "'''") else 1
    body = body[quotes:-quotes]
    return body if is_raw else _ESCAPE.sub(_unescape, body)


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code in _ESCAPES:
        return _ESCAPES[code]
    point = int(code, 8) if code[0] in "0123" else int(code[1:], 16)
    if point > _LAST_CODE_POINT or point in _SURROGATES:
        raise LiteralInvalid(f"{found[0]} is no character of Unicode")
    return chr(point)


def decode_int(token: str) -> int:
    """Return the value of an int literal, with or without a sign."""
    value = int(token, 16 if "x" in token else 10)
    if not MIN_INT <= value <= MAX_INT:
        raise LiteralInvalid(f"{token} does not fit into an int of 64 bits")
    return value


def decode_double(token: str) -> float:
    """Return the value of a double literal, with or without a sign."""
    if token.endswith("."):
        raise LiteralInvalid(f"write {token}0")
    value = float(token)
    if abs(value) == float("inf"):
        raise LiteralInvalid(f"{token} does not fit into a double")
    return value
