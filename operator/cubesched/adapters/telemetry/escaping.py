"""Text of unknown origin made safe to show: one line, no control characters, bounded."""

from __future__ import annotations

import unicodedata
from typing import Final

ELLIPSIS: Final = "..."
UNSAFE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Controls, direction overrides, surrogates, unassigned, line and paragraph separators."""


def printable(text: str, *, max_bytes: int) -> str:
    """Return `text` on one line without unsafe characters, at most `max_bytes` long in UTF-8."""
    # A character is at least one byte: what lies behind this cut can never be shown.
    text = text[: max_bytes + 1]
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_safe, text))
    encoded = text.encode()
    if len(encoded) <= max_bytes:
        return text
    kept = encoded[: max_bytes - len(ELLIPSIS)]
    return kept.decode("utf-8", "ignore") + ELLIPSIS


def _safe(character: str) -> str:
    if character in "\n\r\t":
        return " "
    return "?" if unicodedata.category(character) in UNSAFE_CATEGORIES else character
