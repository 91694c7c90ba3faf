"""What nodes of a CubeMaster fleet report: a Redis hash a node, all fields optional, all text.

Decoded column by column. A value that is no number counts as a field that was not sent, and is
counted by reason; a hash without a usable stamp is left out whole.
Source: CubeMaster's node metric hash; units are milli-cores, MiB, percent and numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from math import isnan, nan
from typing import Final

import numpy as np

from cubesched.core.derived import UNKNOWN
from cubesched.core.snapshot import Floats
from cubesched.fleet.metrics_layout import LARGEST, Decoded

_MIB: Final = 1 << 20
ID_FIELD: Final = "ins_id"
STAMP_FIELD: Final = "update_at"
COUNTS: Final = {
    "quota_cpu_usage": ("allocated_cpu_millis", 1),
    "quota_mem_mb_usage": ("allocated_memory_bytes", _MIB),
    "mem_load_mb_usage": ("memory_used_bytes", _MIB),
    "mvm_num": ("sandboxes", 1),
    "realtime_create_num": ("creating", 1),
}
"""Whole numbers: the field, its column, and how many of the column's units one is."""
MEASURES: Final = {
    "cpu_util": "cpu_util_percent",
    "cpu_load_usage": "cpu_load",
    "data_disk_usage_per": "data_disk_percent",
    "storage_disk_usage_per": "storage_disk_percent",
    "sys_disk_usage_per": "system_disk_percent",
}
FIELDS: Final = (ID_FIELD, STAMP_FIELD, *COUNTS, *MEASURES)
"""What is read of each hash, in this order."""

DTYPE: Final = np.dtype(
    [
        ("stamp_ms", "<i8"),
        *((column, "<i8") for column, _ in COUNTS.values()),
        *((column, "<f8") for column in MEASURES.values()),
    ]
)

Value = bytes | None
Answer = Sequence[Value] | None
"""The values of `FIELDS` of one hash, each None where there is no such field; None instead of all
where the key holds something else than a hash."""


def decode_hashes(names: Sequence[str], answers: Sequence[Answer]) -> Decoded:
    """Decode the hash of each of `names`; never raises on its content. All None = no hash."""
    problems: Counter[str] = Counter()
    kept, stamps = _stamped(names, answers, problems)
    table = np.zeros(len(kept), DTYPE)
    table["stamp_ms"] = stamps
    by_field = dict(zip(FIELDS, zip(*(answer for _, answer in kept), strict=True), strict=False))
    for field, (column, unit) in COUNTS.items():
        numbers = np.ceil(_numbers(by_field.get(field, ()), problems, unit))
        table[column] = np.where(numbers >= 0, numbers, UNKNOWN)
    for field, column in MEASURES.items():
        table[column] = _numbers(by_field.get(field, ()), problems, 1)
    found = {reason: count for reason, count in problems.items() if count}
    return Decoded([name for name, _ in kept], table, found)


def _stamped(
    names: Sequence[str], answers: Sequence[Answer], problems: Counter[str]
) -> tuple[list[tuple[str, Sequence[Value]]], list[int]]:
    """Return the hashes that are there, are their node's own and have a stamp; and the stamps."""
    kept, stamps = [], []
    for name, answer in zip(names, answers, strict=True):
        stamp = stamp_ms(answer[1]) if answer else 0
        reason = _unusable(name, answer, stamp)
        if reason:
            problems[reason] += 1
        elif answer and stamp:
            kept.append((name, answer))
            stamps.append(stamp)
    return kept, stamps


def _unusable(name: str, answer: Answer, stamp: int) -> str:
    """Say why a hash is left out; empty when it is not, or when there is none."""
    if answer is None:
        return "type"
    if answer[0] and answer[0] != name.encode():
        return "name"
    return "stamp" if not stamp and any(answer) else ""


def _numbers(values: Sequence[Value], problems: Counter[str], unit: int) -> Floats:
    """Return the values times `unit`; NaN where there is none, or none that can be."""
    if values.count(None) == len(values):
        return np.full(len(values), nan)
    try:
        numbers = np.fromiter(map(float, values), np.float64, len(values))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # some are missing, or no numbers: look at each
        numbers = np.array([_number(value, problems) for value in values], np.float64)
    else:
        problems["number"] += int(np.count_nonzero(np.isnan(numbers)))
    numbers *= unit
    out_of_range = (numbers < 0) | (numbers > LARGEST)
    problems["range"] += int(np.count_nonzero(out_of_range))
    numbers[out_of_range] = nan
    return numbers


def _number(value: Value, problems: Counter[str]) -> float:
    if value is None:
        return nan
    try:
        number = float(value)
    except ValueError:
        number = nan
    problems["number"] += isnan(number)
    return number


def stamp_ms(text: Value) -> int:
    """Return a time in any of its forms as milliseconds since 1970; 0 when it is none.

    RFC 3339 with any fraction and zone (UTC without one), or Unix seconds, milliseconds,
    microseconds or nanoseconds, told apart by their size: the larger unit would be beyond the
    year 5000.
    """
    if not text:
        return 0
    try:
        return _calendar_ms(text) if b":" in text else _unix_ms(float(text))
    except (ValueError, OverflowError):
        return 0


def _calendar_ms(text: bytes) -> int:
    at = datetime.fromisoformat(text.decode("ascii").strip().upper())
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0, round(aware.timestamp() * 1000))


def _unix_ms(number: float) -> int:
    for limit, units_per_ms in ((1e11, 1e-3), (1e14, 1.0), (1e17, 1e3), (1e20, 1e6)):
        if 0 < number < limit:
            return int(number / units_per_ms)
    return 0
