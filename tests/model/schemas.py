"""What the server makes of an object by its CRD: unknown fields go, defaults come, bounds hold.

The schemas are the generated ones. Their CEL rules are not evaluated here; the rules of a
SandboxRequest's status that they state are asked in plain Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.model.resources import Kind, Refusal
from tests.model.store import Object

CRDS = Path(__file__).parents[2] / "crds"
Schema = Mapping[str, Any]
TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
PLACED = ("Reserved", "Bound", "Starting", "Running", "Paused", "Evicting")


@cache
def _schema(plural: str) -> Schema | None:
    path = CRDS / f"{plural}.yaml"
    if not path.exists():
        return None
    crd = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    schema: Schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def shape(kind: Kind, obj: Object) -> dict[str, Any]:
    """Return the object pruned and defaulted; refuse with 422 what is out of bounds."""
    schema = _schema(kind.plural)
    shaped = dict(obj)
    if schema is None:
        return shaped
    for part in ("spec", "status"):
        inner = schema["properties"][part]
        if part in obj or "default" in inner:
            shaped[part] = _shaped(inner, obj.get(part, inner.get("default")))
    wrong = [
        text
        for part in ("spec", "status")
        if part in shaped
        for text in _problems(schema["properties"][part], shaped[part], part)
    ]
    if kind.kind == "SandboxRequest":
        wrong += _status_problems(shaped.get("status", {}))
    if wrong:
        name = obj["metadata"].get("name", "")
        raise Refusal(422, "Invalid", f'{kind.kind} "{name}" is invalid: {"; ".join(wrong)}')
    return shaped


def _shaped(schema: Schema, value: Any) -> Any:
    if isinstance(value, dict) and "properties" in schema:
        properties: Mapping[str, Schema] = schema["properties"]
        kept = {
            name: _shaped(properties[name], part)
            for name, part in value.items()
            if name in properties and part is not None
        }
        defaults = {
            name: _shaped(inner, inner["default"])
            for name, inner in properties.items()
            if "default" in inner and name not in kept
        }
        return kept | defaults
    if isinstance(value, list) and "items" in schema:
        return [_shaped(schema["items"], item) for item in value]
    return value


def _problems(schema: Schema, value: Any, path: str) -> Iterator[str]:
    wanted = schema.get("type")
    if wanted is not None and not _is_a(wanted, value):
        yield f"{path}: must be of type {wanted}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: Unsupported value: {value!r}"
    if isinstance(value, str):
        yield from _string_problems(schema, value, path)
    elif isinstance(value, int | float):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{path}: {value} is out of bounds"
    elif isinstance(value, list):
        yield from _list_problems(schema, value, path)
    elif isinstance(value, dict):
        yield from _object_problems(schema, value, path)


def _is_a(wanted: str, value: Any) -> bool:
    return isinstance(value, TYPES[wanted]) and isinstance(value, bool) == (wanted == "boolean")


def _list_problems(schema: Schema, value: list[Any], path: str) -> Iterator[str]:
    if len(value) > schema.get("maxItems", len(value)):
        yield f"{path}: Too many: {len(value)}"
    for number, item in enumerate(value):
        yield from _problems(schema.get("items", {}), item, f"{path}[{number}]")


def _string_problems(schema: Schema, value: str, path: str) -> Iterator[str]:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        yield f"{path}: a length of {len(value)} is out of bounds"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: {value!r} does not match {schema['pattern']}"


def _object_problems(schema: Schema, value: Mapping[str, Any], path: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: Required value"
    properties = schema.get("properties", {})
    for name, part in value.items():
        yield from _problems(
            properties.get(name, schema.get("additionalProperties", {})), part, f"{path}.{name}"
        )


def _status_problems(status: Mapping[str, Any]) -> Iterator[str]:
    phase = status.get("phase", "Pending")
    has_place = "nodeName" in status, "reservation" in status
    if phase in PLACED and not all(has_place):
        yield "status: a request that is placed has a nodeName and a reservation"
    if phase == "Pending" and any(has_place):
        yield "status: a request that is Pending has neither a nodeName nor a reservation"
