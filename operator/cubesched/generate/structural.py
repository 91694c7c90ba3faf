"""pydantic models as structural schemas: what of OpenAPI a CRD may hold."""

from __future__ import annotations

from typing import Any, Final

from cubesched.api.v1alpha1 import Model

Schema = dict[str, Any]

_INT32_MAX: Final = (1 << 31) - 1
_NOISE: Final = ("title", "propertyNames", "discriminator")
_ORDER: Final = ("description", "type", "format", "default", "enum", "required", "properties")
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


def structural(model: type[Model]) -> Schema:
    """Return the schema of a model: references inlined, None as absence, integers with a format."""
    raw = model.model_json_schema(by_alias=True)
    return _converted(raw, raw.get("$defs", {}))


def filled_default(schema: Schema) -> Schema:
    """Return a block's default written out: the server checks it before it fills in others."""
    children = schema["properties"].items()
    return {name: child["default"] for name, child in children if "default" in child}


def _converted(node: Schema, definitions: dict[str, Schema]) -> Schema:
    schema = _one_type(_inlined(node, definitions), definitions)
    for noise in _NOISE:
        schema.pop(noise, None)
    _set_values(schema)
    _set_bounds(schema)
    _set_children(schema, definitions)
    if "default" in schema and "properties" in schema:
        schema["default"] = filled_default(schema)
    return {key: schema[key] for key in sorted(schema, key=_position)}


def _inlined(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return the node with its reference replaced; what stands beside the reference wins."""
    schema = {key: value for key, value in node.items() if key not in {"$ref", "$defs"}}
    if "$ref" not in node:
        return schema
    return {**definitions[node["$ref"].removeprefix("#/$defs/")], **schema}


def _one_type(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return `T | None` as T: in a CRD, unset is the absence of the field."""
    if "anyOf" not in schema:
        return schema
    [some] = [entry for entry in schema.pop("anyOf") if entry.get("type") != "null"]
    return {**_inlined(some, definitions), **schema}


def _set_values(schema: Schema) -> None:
    """Spell a constant as an enum of one, and keep only defaults that tell something."""
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    empty = (None,) if "properties" in schema else _EMPTY
    if "default" in schema and schema["default"] in empty:
        del schema["default"]


def _set_bounds(schema: Schema) -> None:
    """Give integers the format their bounds allow; bounds that exclude are flags in a CRD."""
    if schema.get("type") == "integer":
        low, high = schema.get("minimum", -_INT32_MAX), schema.get("maximum", _INT32_MAX + 1)
        small = low >= -_INT32_MAX and high <= _INT32_MAX
        schema["format"] = "int32" if small else "int64"
    if "exclusiveMinimum" in schema:
        schema["minimum"] = schema.pop("exclusiveMinimum")
        schema["exclusiveMinimum"] = True


def _set_children(schema: Schema, definitions: dict[str, Schema]) -> None:
    """Convert properties, items and values; a map of anything keeps what the schema cannot know."""
    if "patternProperties" in schema:
        [schema["additionalProperties"]] = schema.pop("patternProperties").values()
    if schema.get("additionalProperties") is False:
        del schema["additionalProperties"]
    elif schema.get("additionalProperties") is True:
        schema["additionalProperties"] = {"x-kubernetes-preserve-unknown-fields": True}
    elif "additionalProperties" in schema:
        schema["additionalProperties"] = _converted(schema["additionalProperties"], definitions)
    if "items" in schema:
        schema["items"] = _without_defaults(_converted(schema["items"], definitions))
    if "properties" in schema:
        schema["properties"] = {
            name: _converted(child, definitions) for name, child in schema["properties"].items()
        }


def _without_defaults(item: Schema) -> Schema:
    """Return what stands in a list without defaults; readers know them.

    kubectl and GitOps tools compare lists whole: one that the server fills in never matches its
    file again.
    """
    if "properties" not in item:
        return item
    children = {
        name: {key: value for key, value in _without_defaults(child).items() if key != "default"}
        for name, child in item["properties"].items()
    }
    return {**item, "properties": children}


def _position(key: str) -> tuple[int, str]:
    return (_ORDER.index(key) if key in _ORDER else len(_ORDER) - 2, key)
