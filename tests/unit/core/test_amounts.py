"""Amounts as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubesched.api.quantity import parse_units
from cubesched.core.amounts import binary_bytes, millis, rounded_down, told_apart


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


@pytest.mark.parametrize(
    ("amount", "rounded"),
    [
        (5, (5, "5")),
        (8 * 2**30, (8 * 2**30, "8Gi")),
        (8 * 2**30 + 1, (8 * 2**30, "8192Mi")),
        (27 * 2**30 + 2**29, (27 * 2**30, "27Gi")),
        (3 * 2**20 + 7, (3 * 2**20, "3072Ki")),
        (10 * 2**10 - 1, (10 * 2**10 - 1, "10239")),
    ],
)
def test_a_rounded_amount_is_what_its_text_says(amount: int, rounded: tuple[int, str]) -> None:
    assert rounded_down(amount) == rounded


@given(st.integers(0, 1 << 50))
def test_rounding_down_loses_a_tenth_at_most_and_the_text_is_exact(amount: int) -> None:
    value, text = rounded_down(amount)

    assert amount - amount // 10 <= value <= amount
    assert parse_units(text, round_up=True) == value
