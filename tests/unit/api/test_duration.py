"""Durations: the spellings that Go, CEL and this parser share."""

from __future__ import annotations

import pytest

from cubesched.api.duration import DurationError, parse_nanos, parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("300s", 300), ("1h30m", 5400), ("1.5h", 5400), ("100ms", 0.1), ("0s", 0), ("90m", 5400)],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "1", "1d", "-1s", "1 s", "s", "1s ", "1e3s", "+1s", "\uff11s", "9" * 10 + "s", "1." * 30],
)
def test_what_is_no_duration_is_refused_by_name(text: str) -> None:
    with pytest.raises(DurationError, match="is not a duration"):
        parse_seconds(text)


def test_a_fraction_is_exact_to_the_nanosecond() -> None:
    assert parse_nanos("0.000000001s") == 1
    assert parse_nanos("0.1s") == 100_000_000
