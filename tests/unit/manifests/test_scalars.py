from __future__ import annotations

import math

import pytest

from cubesched.manifests.scalars import plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("yes", True),
        ("off", False),
        ("y", True),
        ("8", 8),
        ("-8", -8),
        ("+8", 8),
        ("0x1F", 31),
        ("017", 15),
        ("0o17", 15),
        ("0b11", 3),
        ("1_000", 1000),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1e3", 1000),
        ("1.0", 1),
        ("08", 8),
        ("-.inf", float("-inf")),
        ("18446744073709551615", (1 << 64) - 1),
        ("99999999999999999999", 10**20),
        ("1:30", "1:30"),
        ("2026-12-01", "2026-12-01"),
        ("500m", "500m"),
        ("1_000m", "1_000m"),
        ("+", "+"),
        (".", "."),
        ("e3", "e3"),
        ("10s", "10s"),
    ],
)
def test_an_unquoted_scalar_is_what_kubectl_makes_of_it(text: str, value: object) -> None:
    found = plain(text)

    assert (type(found), found) == (type(value), value)


def test_what_is_no_number_stays_none() -> None:
    found = plain(".nan")

    assert isinstance(found, float)
    assert math.isnan(found)


def test_a_number_of_any_length_is_read() -> None:
    assert plain("9" * 10_000) == float("inf")
    assert plain("1" + "0" * 30) == 1e30
