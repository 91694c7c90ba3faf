from __future__ import annotations

from cubesched.fleet.metrics_layout import DTYPE
from cubesched.generate.nodereport import MEANINGS, nodereport_page


def test_every_field_of_the_layout_is_explained_and_no_other() -> None:
    assert tuple(MEANINGS) == DTYPE.names


def test_the_page_shows_where_each_field_lies_and_what_stands_for_unknown() -> None:
    page = nodereport_page()

    assert f"struct of {DTYPE.itemsize} bytes" in page
    assert "| 24 | 8 | `stamp_ms` | int64 |  |" in page
    assert "| 72 | 8 | `cpu_util_percent` | float64 | NaN |" in page
    assert "| 128 | 8 | `creating` | int64 | -1 |" in page
