"""What the generated reference pages have in common: a first line, tables, cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cubesched.generate.yamltext import NOTE


def first_lines(title: str, what: str) -> Iterator[str]:
    """Return the head of a page: where it comes from, its title, what it is about."""
    yield from (f"<!-- {NOTE} -->", f"# {title}", "", what)


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Return a table with an empty line before it."""
    names = list(headings)
    yield from ("", _row(names), "|" + "---|" * len(names))
    for row in rows:
        yield _row(cell(text) for text in row)


def cell(text: str) -> str:
    """Return the text on one line, with nothing in it that would end a cell."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: object) -> str:
    """Return the text as code."""
    return f"`{text}`"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
