from __future__ import annotations

import pytest

from cubesched.api.timestamps import micro_time, parsed, timestamp, unix_seconds


def test_a_timestamp_drops_what_is_below_a_second() -> None:
    assert timestamp(0.9) == "1970-01-01T00:00:00Z"


def test_a_micro_time_always_has_six_decimals() -> None:
    assert micro_time(1.5) == "1970-01-01T00:00:01.500000Z"


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("2027-01-15T08:00:00Z", 1_800_000_000.0),
        ("2027-01-15T09:00:00+01:00", 1_800_000_000.0),
        ("2027-01-15t08:00:00z", 1_800_000_000.0),
        ("2027-01-15T08:00:00", 1_800_000_000.0),
        ("2027-01-15T08:00:00.123456789Z", 1_800_000_000.123456),
        ("0001-01-01T00:00:00+23:59", 0.0),
        ("", 0.0),
        ("soon", 0.0),
    ],
)
def test_a_stamp_is_read_in_any_form(stamp: str, seconds: float) -> None:
    assert unix_seconds(stamp) == seconds


@pytest.mark.parametrize("stamp", ["", "soon", "2030-02-30T00:00:00Z", "0000-01-01T00:00:00Z"])
def test_what_is_no_time_is_told_from_the_epoch(stamp: str) -> None:
    assert parsed(stamp) is None
    assert parsed("1970-01-01T00:00:00Z") == 0.0
