"""Quantities: what is read, what is refused, which way it rounds, and how it is written back."""

from __future__ import annotations

import re
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubesched.api.quantity import (
    GRAMMAR,
    MAX_CHARS,
    MAX_INT64,
    QuantityError,
    format_bytes,
    format_millis,
    parse_millis,
    parse_units,
)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("1.5Gi", 1610612736),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1.", 1),
        ("+1", 1),
        ("129e6", 129_000_000),
        ("1Ei", 1 << 60),
        ("0", 0),
        ("9223372036854775807", MAX_INT64),
        (1073741824, 1073741824),
    ],
)
def test_bytes_are_read_exactly(text: str | int, units: int) -> None:
    assert parse_units(text, round_up=True) == units
    assert parse_units(text, round_up=False) == units


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("100m", 100),
        ("0.5", 500),
        (".5", 500),
        ("0.57", 570),
        ("4.35", 4350),
        ("2.3", 2300),
        ("1.1", 1100),
        ("1e-3", 1),
        (2, 2000),
        ("2", 2000),
    ],
)
def test_cores_are_read_exactly(text: str | int, millis: int) -> None:
    assert parse_millis(text, round_up=True) == millis
    assert parse_millis(text, round_up=False) == millis


@pytest.mark.parametrize(
    "text",
    [
        *("", " 1Gi", "1Gi ", "1 Gi", "1gi", "1KI", "1K", "1e3Mi", "1_000", "0x10", "NaN", "inf"),
        *("--1", "-1", "-0.1", "1Gi\n", "\uff11", "\u0661", "true", ".", "+", "e3", "1e", "1ee3"),
        *("1m5", "1mm", "\u00b5", "1" * 21),
    ],
)
def test_what_is_no_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(QuantityError) as refused:
        parse_units(text, round_up=True)

    assert repr(text) in str(refused.value)
    assert "4Gi" in str(refused.value)


@pytest.mark.parametrize("value", [True, False, None, [], {}, b"1"])
def test_what_is_neither_number_nor_text_is_refused(value: object) -> None:
    with pytest.raises(QuantityError):
        parse_units(value, round_up=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-1, MAX_INT64 + 1, "9223372036854775808", "10E"])
def test_what_no_64_bits_can_hold_is_refused(value: int | str) -> None:
    with pytest.raises(QuantityError):
        parse_units(value, round_up=True)


def test_a_huge_integer_is_refused_without_spelling_it_out() -> None:
    with pytest.raises(QuantityError, match="a number of 16610 bits is too large"):
        parse_units(10**5000, round_up=True)


def test_an_unquoted_fraction_is_refused_with_the_cure() -> None:
    with pytest.raises(
        QuantityError, match=re.escape("0.5 is a YAML float: quote it, as in '0.5'")
    ):
        parse_millis(0.5, round_up=True)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.5, 1e300])
def test_a_float_that_no_quotes_can_save_is_refused(value: float) -> None:
    with pytest.raises(QuantityError):
        parse_millis(value, round_up=True)


@pytest.mark.parametrize(
    "text",
    ["1e300000", "2E6024865272343", "1e9223372036854775807", "1e-300000", "1e100", "9" * 100_000],
)
def test_a_huge_number_is_refused_before_it_is_built(text: str) -> None:
    start = time.perf_counter()

    with pytest.raises(QuantityError):
        parse_units(text, round_up=True)

    assert time.perf_counter() - start < 0.01


@pytest.mark.parametrize(
    ("text", "up", "down"),
    [
        ("0.5m", 1, 0),
        ("100u", 1, 0),
        ("1n", 1, 0),
        ("1000.1m", 1001, 1000),
        ("1000.9m", 1001, 1000),
    ],
)
def test_cores_round_up_for_requests_and_down_for_capacity(text: str, up: int, down: int) -> None:
    assert parse_millis(text, round_up=True) == up
    assert parse_millis(text, round_up=False) == down


@pytest.mark.parametrize(("text", "up", "down"), [("1234.1", 1235, 1234), ("0.5", 1, 0)])
def test_bytes_round_up_for_requests_and_down_for_capacity(text: str, up: int, down: int) -> None:
    assert parse_units(text, round_up=True) == up
    assert parse_units(text, round_up=False) == down


@pytest.mark.parametrize(
    ("millis", "text"), [(500, "500m"), (2000, "2"), (0, "0"), (1, "1m"), (1500, "1500m")]
)
def test_cores_are_written_canonically(millis: int, text: str) -> None:
    assert format_millis(millis) == text


@pytest.mark.parametrize(
    ("units", "text"),
    [(1536 << 20, "1536Mi"), (4 << 30, "4Gi"), (0, "0"), (1, "1"), (10**18, "976562500000000Ki")],
)
def test_bytes_are_written_canonically(units: int, text: str) -> None:
    assert format_bytes(units) == text


@given(st.integers(min_value=0, max_value=MAX_INT64))
def test_what_is_written_reads_back_the_same(amount: int) -> None:
    for form, parse in ((format_millis, parse_millis), (format_bytes, parse_units)):
        text = form(amount)

        assert parse(text, round_up=True) == parse(text, round_up=False) == amount
        assert len(text) <= MAX_CHARS
        assert re.fullmatch(GRAMMAR, text)


@given(st.text(max_size=24))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(QuantityError):
        assert 0 <= parse_units(text, round_up=True) <= MAX_INT64
