"""Durations as Go's YAML has them, and as our objects do."""

from __future__ import annotations

import math
import re
from typing import Final

from cubesched.policy.migration.yamltree import number_of

_PART: Final = re.compile(r"([0-9]+(?:[.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3}
_LARGE: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}
MAX_CHARACTERS: Final = 40


def seconds_of(text: str) -> float | None:
    """Return the seconds of `1h30m`, or of a bare number, which Go takes for nanoseconds."""
    bare = number_of(text)
    if bare is not None:
        return bare / 1e9
    digits = text.removeprefix("-")
    parts = _PART.findall(digits)
    if len(text) > MAX_CHARACTERS or "".join(map("".join, parts)) != digits or not parts:
        return None
    units = _SECONDS | _LARGE
    total = sum(float(number) * units[unit] for number, unit in parts)
    return -total if text.startswith("-") else total


def written(seconds: float) -> str:
    """Return it as our objects spell it, what is finer than a millisecond rounded up."""
    millis = math.ceil(seconds * 1000 - 1e-6)
    return f"{millis}ms" if millis % 1000 else f"{millis // 1000}s"
