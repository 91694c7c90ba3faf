"""Printable text: one line, bounded in bytes, whatever came in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cubesched.adapters.telemetry.escaping import printable


def test_plain_text_is_left_as_it_is() -> None:
    assert (
        printable("0/5 nodes: 3 insufficient cpu", max_bytes=100) == "0/5 nodes: 3 insufficient cpu"
    )
    assert printable("Übergröße 漢字", max_bytes=100) == "Übergröße 漢字"


def test_a_cut_never_splits_a_character() -> None:
    assert printable("é" * 10, max_bytes=10) == "ééé..."


@given(st.text(alphabet=st.characters(codec=None), max_size=80), st.integers(4, 60))
def test_any_text_ends_up_on_one_bounded_line(text: str, bound: int) -> None:
    shown = printable(text, max_bytes=bound)

    assert len(shown.encode()) <= bound
    assert len(shown.splitlines()) <= 1
    assert "\x1b" not in shown
