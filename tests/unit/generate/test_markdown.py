from __future__ import annotations

from cubesched.generate.markdown import table


def test_a_cell_stays_on_one_line_and_in_its_column() -> None:
    lines = list(table(("a", "b"), [("x | y", "two\n  lines")]))

    assert lines == ["", "| a | b |", "|---|---|", "| x \\| y | two lines |"]
