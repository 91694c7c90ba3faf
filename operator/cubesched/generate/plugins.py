"""The reference page of the built-in plugins, from the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from cubesched.generate.markdown import code, first_lines, table
from cubesched.plugins.catalogue import Argument, PluginEntry, catalogue

_WHAT: Final = """\
Every built-in plugin, in the order in which a decision asks them. Guards and constraints are in
every pipeline and cannot be listed, switched off or reordered; filters and scores are what a
SchedulerProfile lists by name. [Write policy](../write-policy.md) says how they work together."""


def plugins_page() -> str:
    """Return the Markdown page of all built-in plugins."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from first_lines("Built-in plugins", _WHAT)
    for kind, entries in groupby(catalogue(), key=lambda entry: entry.kind):
        yield from ("", f"## {kind.capitalize()}s")
        for entry in entries:
            yield from _section(entry)


def _section(entry: PluginEntry) -> Iterator[str]:
    yield from ("", f"### {entry.name}", "", *entry.lines)
    if entry.arguments:
        rows = [_row(argument) for argument in entry.arguments]
        yield from table(("argument", "type", "default", "what"), rows)


def _row(argument: Argument) -> tuple[str, str, str, str]:
    default = "**required**" if argument.is_required else _default(argument.default)
    bounds = f" ({argument.bounds})" if argument.bounds else ""
    return code(argument.name), argument.type, default, f"{argument.text}{bounds}"


def _default(value: Any) -> str:
    """Return a default as a Profile spells it."""
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, dict | list | tuple):
        return ", ".join(code(name) for name in value)
    return code(f"{value:g}")
