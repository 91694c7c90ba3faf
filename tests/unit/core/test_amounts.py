"""Amounts as people write them."""

from __future__ import annotations

import pytest

from cubesched.core.amounts import binary_bytes, millis, told_apart


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0"),
        (1023, "1023"),
        (1024, "1Ki"),
        (1536, "1.5Ki"),
        (2**30, "1Gi"),
        (2**30 - 1, "1023.9Mi"),
        (5 * 2**40, "5Ti"),
    ],
)
def test_bytes_take_the_largest_unit_that_fits(amount: int, text: str) -> None:
    assert binary_bytes(amount) == text


def test_amounts_that_round_alike_are_told_in_bytes() -> None:
    assert told_apart(2**30, 2**29, binary_bytes) == ("1Gi", "512Mi")
    assert told_apart(2**30, 2**30 - 1, binary_bytes) == ("1073741824 bytes", "1073741823 bytes")
    assert told_apart(2000, 1999, millis) == ("2000m", "1999m")
