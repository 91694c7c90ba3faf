"""Durations as Go and CEL spell them: `100ms`, `1.5h`, `1h30m`. There is no day."""

from __future__ import annotations

import re
from typing import Final

MAX_CHARS: Final = 20

GRAMMAR: Final = r"^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$"
"""Spelled so that RE2 and Python read it alike; the CRDs carry the same text."""

_PART: Final = re.compile(r"([0-9]+)(?:[.]([0-9]+))?(ms|s|m|h)", re.ASCII)
_NANOS: Final = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


class DurationError(ValueError):
    """The text is no duration; the message names it and says what is allowed."""


def parse_nanos(text: str) -> int:
    """Return whole nanoseconds, what is finer rounded down."""
    if len(text) > MAX_CHARS or not re.fullmatch(GRAMMAR[1:-1], text, re.ASCII):
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise DurationError(
            f"{shown!r} is not a duration: write numbers with ms, s, m or h, as in 90s or 1h30m"
        )
    return sum(_part_nanos(*part) for part in _PART.findall(text))


def parse_seconds(text: str) -> float:
    """Return the duration in seconds."""
    return parse_nanos(text) / 1e9


def _part_nanos(whole: str, fraction: str, unit: str) -> int:
    return int(whole + fraction) * _NANOS[unit] // int(10 ** len(fraction))
