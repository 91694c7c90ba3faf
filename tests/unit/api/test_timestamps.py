from __future__ import annotations

import pytest

from cubesched.api.timestamps import micro_time, timestamp, unix_seconds


def test_a_timestamp_drops_what_is_below_a_second() -> None:
    assert timestamp(0.9) == "1970-01-01T00:00:00Z"


def test_a_micro_time_always_has_six_decimals() -> None:
    assert micro_time(1.5) == "1970-01-01T00:00:01.500000Z"


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("2027-01-15T08:00:00Z", 1_800_000_000.0),
        ("2027-01-15T09:00:00+01:00", 1_800_000_000.0),
        ("", 0.0),
        ("soon", 0.0),
    ],
)
def test_a_stamp_is_read_in_any_form(stamp: str, seconds: float) -> None:
    assert unix_seconds(stamp) == seconds
