"""CEL's tokens, to measure an expression before it is parsed and to hold the parser to them.

cel-python's lexer reads `1 inx` as `1 in x` and takes a quote that a raw string ends with for part
of it; so an expression is refused unless the parser saw exactly these tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from cubesched.plugins.cel.limits import MAX_CHARACTERS, MAX_NESTING
from cubesched.plugins.cel.problems import refused

_ESCAPE = r"\\(?:[abfnrtv\"'`?\\]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_TEXT = "|".join(
    pattern.replace("Q", quote)
    for quote in ('"', "'")
    for pattern in (
        r"[bB]?[rR]QQQ(?:(?!QQQ)[^\r])*QQQ",
        rf"[bB]?QQQ(?:{_ESCAPE}|(?!QQQ)[^\\\r])*QQQ",
        r"[bB]?[rR]Q[^Q\r\n]*Q",
        rf"[bB]?Q(?:{_ESCAPE}|[^Q\\\r\n])*Q",
    )
)
_TOKEN: Final = re.compile(
    rf"""(?P<space>[ \t\n\f\r]+|//[^\n]*)
    |(?P<text>{_TEXT})
    |(?P<number>0x[0-9a-fA-F]+[uU]?|\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?
      |\d+[uU]?)
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()\[\]{{}}])""",
    re.VERBOSE | re.ASCII,
)
_HINTS: Final = {
    "=": "write == to compare",
    "&": "write && for and",
    "|": "write || for or",
    '"': "a text that does not end here, or an escape that CEL does not have",
    "'": "a text that does not end here, or an escape that CEL does not have",
    "`": 'quoted names are not supported: write node.labels["..."]',
}


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `kind` is text, number, name or sign."""

    kind: str
    text: str
    start: int
    line: int
    column: int


def tokenize(text: str) -> list[Token]:
    """Return the tokens, or raise ExpressionInvalid; refuses what is too long or nested."""
    if len(text) > MAX_CHARACTERS:
        message = f"the expression has {len(text)} characters; allowed are {MAX_CHARACTERS}"
        raise refused(1, 1, message)
    tokens: list[Token] = []
    at, line, line_start = 0, 1, 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise refused(line, at - line_start + 1, _illegal(text[at]))
        if found.lastgroup != "space":
            kind = found.lastgroup or ""
            tokens.append(Token(kind, found[0], at, line, at - line_start + 1))
        line += found[0].count("\n")
        if "\n" in found[0]:
            line_start = at + found[0].rindex("\n") + 1
        at = found.end()
    if not tokens:
        raise refused(1, 1, "the expression is empty")
    _check_nesting(tokens)
    return tokens


def _illegal(letter: str) -> str:
    hint = _HINTS.get(letter)
    shown = letter if letter.isprintable() else f"U+{ord(letter):04X}"
    return f"unexpected {shown}" + (f"; {hint}" if hint else "")


def _check_nesting(tokens: list[Token]) -> None:
    depth = 0
    for token in tokens:
        if token.text in ("(", "[", "{"):
            depth += 1
        elif token.text in (")", "]", "}"):
            depth -= 1
        if depth > MAX_NESTING:
            message = f"nested too deeply; allowed are {MAX_NESTING} brackets within one another"
            raise refused(token.line, token.column, message)
