from __future__ import annotations

import pytest

from cubesched.cli.output import age, print_data, print_table


def test_columns_are_as_wide_as_their_longest_cell(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("NAME", "AGE"), [("a-long-name", "1s"), ("b", "")])

    assert capsys.readouterr().out == "NAME          AGE\na-long-name   1s\nb\n"


def test_a_table_without_rows_is_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("NAME", "AGE"), [])

    assert capsys.readouterr().out == "NAME   AGE\n"


@pytest.mark.parametrize(
    ("output", "text"), [("json", '{\n  "a": [\n    1\n  ]\n}\n'), ("yaml", "a:\n- 1\n")]
)
def test_data_is_printed_in_the_form_asked_for(
    capsys: pytest.CaptureFixture[str], output: str, text: str
) -> None:
    print_data({"a": [1]}, output)

    assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0s"), (0.4, "0s"), (119, "119s"), (120, "2m"), (7_200, "2h"), (200_000, "2d")],
)
def test_an_age_is_short(seconds: float, text: str) -> None:
    assert age(seconds) == text
