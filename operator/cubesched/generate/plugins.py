"""The reference page of the built-in plugins, from the registry and the modules' docstrings."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cubesched.core.pipeline import Filter
from cubesched.generate.markdown import code, first_lines, table
from cubesched.plugins.args import Args
from cubesched.plugins.registry import CONSTRAINTS, FILTERS, GUARDS, SCORES

_WHAT: Final = """\
Every built-in plugin, in the order in which a decision asks them. Guards and constraints are in
every pipeline and cannot be listed, switched off or reordered; filters and scores are what a
SchedulerProfile lists by name. [Write policy](../write-policy.md) says how they work together."""


def plugins_page() -> str:
    """Return the Markdown page of all built-in plugins."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from first_lines("Built-in plugins", _WHAT)
    yield from ("", "## Guards")
    for guard in GUARDS:
        yield from _stage(guard)
    yield from ("", "## Constraints")
    for constraint in CONSTRAINTS:
        yield from _stage(constraint)
    yield from ("", "## Filters")
    for name, args in FILTERS.items():
        yield from _plugin(name, args)
    yield from ("", "## Scores")
    for name, score_args in SCORES.items():
        yield from _plugin(name, score_args)


def _stage(stage: Filter) -> Iterator[str]:
    yield from ("", f"### {stage.name}", "", *_prose(type(stage)))


def _plugin(name: str, args: type[Args]) -> Iterator[str]:
    yield from ("", f"### {name}", "", *_prose(args))
    rows = list(_arguments(args))
    if rows:
        yield from table(("argument", "type", "default", "what"), rows)


def _prose(found: type) -> list[str]:
    """Return the docstring of the plugin's module without the name it begins with."""
    first, *rest = (sys.modules[found.__module__].__doc__ or "").strip().splitlines()
    sentence = first.partition("`: ")[2]
    return [sentence[:1].upper() + sentence[1:], *rest]


def _arguments(model: type[Args]) -> Iterator[tuple[str, str, str, str]]:
    schema = model.model_json_schema()
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        default = "**required**" if name in required else _default(field["default"])
        yield code(name), _type(field), default, f"{field['description']}{_bounds(field)}"


def _type(field: Mapping[str, Any]) -> str:
    if "items" in field:
        return f"list of {_type(field['items'])}s"
    if "additionalProperties" in field:
        return f"map of {_type(field['additionalProperties'])}s"
    return str(field["type"])


def _default(value: Any) -> str:
    """Return a default as a Profile spells it; factors of weight 1 by their names."""
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, dict | list | tuple):
        return ", ".join(code(name) for name in value)
    return code(f"{value:g}")


def _bounds(field: Mapping[str, Any]) -> str:
    if "minimum" in field and "maximum" in field:
        return f" ({field['minimum']:g} to {field['maximum']:g})"
    return ""
