"""What is said of each plugin: its text and its arguments, for people.

The text is the docstring of the plugin's module, the arguments are its model's: nothing is said
twice. The reference page and `cubesched plugins` both show this.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any

from cubesched.core.pipeline import Filter
from cubesched.plugins.args import Args
from cubesched.plugins.python.installed import BASES, Installed
from cubesched.plugins.registry import CONSTRAINTS, FILTERS, GUARDS, SCORES


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a filter or score."""

    name: str
    type: str
    is_required: bool
    default: Any
    """As a Profile spells it; None when it is required."""
    bounds: str
    """`0 to 100`, `at least 1 entry`; empty without any."""
    text: str


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """One plugin as its reference shows it."""

    kind: str
    """guard, constraint, filter or score."""
    name: str
    lines: tuple[str, ...]
    """Its whole text, in Markdown."""
    arguments: tuple[Argument, ...] = ()
    package: str = ""
    """Where a plugin in Python comes from: `zones 1.2.0`; empty for a built-in one."""

    @property
    def summary(self) -> str:
        """The first sentence."""
        paragraph = " ".join(self.lines).split("  ")[0]
        return f"{paragraph.split('. ')[0].rstrip('.')}."


def catalogue() -> Iterator[PluginEntry]:
    """Yield every built-in plugin, in the order in which a decision asks them."""
    for kind, stages in (("guard", GUARDS), ("constraint", CONSTRAINTS)):
        for stage in stages:
            yield _stage(kind, stage)
    for name, filter_args in FILTERS.items():
        yield _listed("filter", name, filter_args)
    for name, score_args in SCORES.items():
        yield _listed("score", name, score_args)


def packaged(installed: Installed) -> Iterator[PluginEntry | str]:
    """Yield every plugin that installed packages offer; for one of no use why, in words."""
    for name, package, found in installed.described():
        if isinstance(found, str):
            yield found
            continue
        lines = tuple(cleandoc(found.__doc__ or "It does not say what it does.").splitlines())
        for kind, bases in BASES.items():
            if issubclass(found, bases):
                yield PluginEntry(kind, name, lines, tuple(_arguments(found.args_model)), package)


def _stage(kind: str, stage: Filter) -> PluginEntry:
    return PluginEntry(kind, stage.name, _text(type(stage)))


def _listed(kind: str, name: str, args: type[Args]) -> PluginEntry:
    return PluginEntry(kind, name, _text(args), tuple(_arguments(args)))


def _text(found: type) -> tuple[str, ...]:
    """Return the docstring of the plugin's module without the name it begins with."""
    first, *rest = (sys.modules[found.__module__].__doc__ or "").strip().splitlines()
    sentence = first.partition("`: ")[2]
    return sentence[:1].upper() + sentence[1:], *rest


def _arguments(model: type[Args]) -> Iterator[Argument]:
    schema = model.model_json_schema()
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        yield Argument(
            name=name,
            type=_type(field),
            is_required=name in required,
            default=_plain(field.get("default")),
            bounds=_bounds(field),
            text=field.get("description", ""),
        )


def _type(field: Mapping[str, Any]) -> str:
    if "items" in field:
        return f"list of {_type(field['items'])}s"
    if "additionalProperties" in field:
        return f"map of {_type(field['additionalProperties'])}s"
    return str(field["type"])


def _plain(default: Any) -> Any:
    """Return factors that all weigh 1 as the list of their names."""
    if isinstance(default, Mapping) and set(default.values()) <= {1.0}:
        return list(default)
    return default


def _bounds(field: Mapping[str, Any]) -> str:
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None and most is not None:
        return f"{_number(least)} to {_number(most)}"
    if least is not None:
        return f"at least {_number(least)}"
    entries = field.get("minItems", field.get("minProperties"))
    if entries:
        return f"at least {entries} entr{'y' if entries == 1 else 'ies'}"
    inner = field.get("additionalProperties")
    return f"each {_bounds(inner)}" if isinstance(inner, Mapping) and _bounds(inner) else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"
