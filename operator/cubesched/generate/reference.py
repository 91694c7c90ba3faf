"""The reference pages of the four kinds, from the same schema as the CRDs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cubesched.api import API_VERSION
from cubesched.generate.crds import object_schema
from cubesched.generate.kinds import Column, Kind
from cubesched.generate.structural import Schema
from cubesched.generate.yamltext import NOTE

_UNSET: Final = "–"  # noqa: RUF001 - an en dash reads as "none" in a table


def page(kind: Kind) -> str:
    """Return the Markdown page of one kind."""
    return "\n".join(_lines(kind)) + "\n"


def _lines(kind: Kind) -> Iterator[str]:
    resource, schema = kind.resource, object_schema(kind)
    scope = "in a namespace" if resource.namespaced else "cluster-wide"
    yield f"<!-- {NOTE} -->"
    yield f"# {resource.kind}"
    yield ""
    yield kind.what
    yield ""
    yield f"`{API_VERSION}`, {scope}, short name `{resource.short_name}`, category `cubesched`."
    for part in ("spec", "status"):
        block = schema["properties"][part]
        yield from ("", f"## {part}", "", block["description"])
        yield from ("", "| field | type | default | what |", "|---|---|---|---|")
        yield from _rows(part, block)
    rules = list(_rules("", schema))
    if rules:
        yield from ("", "## Refused by the API server", "")
        yield from (f"* `{path or 'object'}`: {message}" for path, message in rules)
    yield from _columns(kind)


def _rows(path: str, block: Schema) -> Iterator[str]:
    """Return one table row for each field, depth first."""
    for name, field in block["properties"].items():
        child = f"{path}.{name}"
        what, _, default = field.get("description", "").replace("\n", " ").partition("Default: ")
        need = "**required**" if name in block.get("required", ()) else _default(field, default)
        text = f"{what.strip()} {_bounds(field, what)}".strip().replace("|", "\\|")
        yield f"| `{child}` | {_type(field)} | {need} | {text} |"
        if "properties" in field:
            yield from _rows(child, field)
        elif "properties" in field.get("items", {}):
            yield from _rows(f"{child}[]", field["items"])
        elif "properties" in field.get("additionalProperties", {}):
            yield from _rows(f"{child}.*", field["additionalProperties"])


def _type(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    if "items" in field:
        return f"list of {_type(field['items'])}"
    if "additionalProperties" in field:
        values = field["additionalProperties"]
        is_open = values.get("x-kubernetes-preserve-unknown-fields")
        return "map" if is_open else f"map of {_type(values)}s"
    if "enum" in field:
        return " \\| ".join(f"`{value}`" for value in field["enum"])
    return str(field["type"])


def _default(field: Schema, words: str) -> str:
    """Return the schema's default with what the text says beyond it, or the text alone."""
    text = words.strip().removesuffix(".")
    if "default" not in field or "properties" in field:
        return text or _UNSET
    _, _, reason = text.partition(", ")
    return f"{_value(field['default'])}, {reason}" if reason else _value(field["default"])


def _value(value: object) -> str:
    """Return a default as users write it."""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list):
        return ", ".join(f"`{item}`" for item in value)
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _bounds(field: Schema, what: str) -> str:
    """Return bounds that the text does not tell; lengths of single strings are left out."""
    if "minimum" in field and "maximum" in field and " to " not in what:
        return f"({_number(field['minimum'])} to {_number(field['maximum'])})"
    if "maxItems" in field:
        return f"(at most {field['maxItems']})"
    if "maxProperties" in field:
        return f"(at most {field['maxProperties']})"
    return ""


def _number(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else str(value)


def _rules(path: str, schema: Schema) -> Iterator[tuple[str, str]]:
    """Return each CEL rule's message with the field it is about."""
    for entry in schema.get("x-kubernetes-validations", ()):
        yield f"{path}{entry.get('fieldPath', '')}".lstrip("."), entry["message"]
    for name, child in schema.get("properties", {}).items():
        yield from _rules(f"{path}.{name}", child)
    if "items" in schema:
        yield from _rules(f"{path}[]", schema["items"])


def _columns(kind: Kind) -> Iterator[str]:
    yield from ("", "## Columns of `kubectl get`", "", "| column | what |", "|---|---|")
    for column in kind.columns:
        yield f"| {_heading(column)} | {column.what or 'Time since creation'} |"


def _heading(column: Column) -> str:
    return column.name.upper() + (" (`-o wide`)" if column.is_wide else "")
