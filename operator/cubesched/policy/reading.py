"""From a stored spec to its model: every error with its path, unknown fields with a suggestion."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cubesched.api.v1alpha1 import Model
from cubesched.api.v1alpha1.profile import MAX_PLUGINS
from cubesched.plugins.spelling import did_you_mean
from cubesched.policy.objects import ProblemList

ModelT = TypeVar("ModelT", bound=Model)

MAX_INPUT_CHARS = 60
MAX_PROBLEMS = 200
"""Of one object: what is beyond them is counted only."""
_UNION_STEPS = {"int", "str", "[key]"}
"""Steps of pydantic's location that are no field of the object."""
_SIZES = {"too_long", "too_short"}
"""Their messages say already how many there are."""
_ENTRY = re.compile(r"(spec\.(?:filters|scores)\[\d+\])")


def read(model: type[ModelT], problems: ProblemList) -> ModelT | None:
    """Return the subject's spec as a model, or None after adding what is wrong with it.

    Errors that a finer check has already noted at the same field are not repeated.
    """
    try:
        return model.model_validate(problems.subject.spec)
    except ValidationError as error:
        found = error.errors(include_url=False)
        for item in found[:MAX_PROBLEMS]:
            _add(item, model, problems)
        if len(found) > MAX_PROBLEMS:
            problems.add("spec", f"has {len(found) - MAX_PROBLEMS} more errors")
        return None


def entries(spec: Any, field: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (path, entry) of a list of plugins, whatever else is wrong with the spec."""
    listed = spec.get(field) if isinstance(spec, Mapping) else None
    # More of them are an error of the list, not looked at one by one.
    for index, entry in enumerate(listed[:MAX_PLUGINS] if isinstance(listed, list) else ()):
        if isinstance(entry, Mapping):
            yield f"spec.{field}[{index}]", entry


def block(spec: Any, field: str) -> Mapping[str, Any]:
    """Return a block of the spec, empty where it is absent or malformed."""
    value = spec.get(field) if isinstance(spec, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _add(item: ErrorDetails, model: type[Model], problems: ProblemList) -> None:
    path = _path(item["loc"])
    if item["type"] == "extra_forbidden":
        if not _has_refused_type(path, problems):
            known = _known_fields(model, item["loc"][:-1])
            name = str(item["loc"][-1])
            problems.add(path, f"unknown field; {did_you_mean(name, known)}")
    elif item["type"] == "too_long" or not problems.covers(path):
        problems.add(path, _sentence(item))


def _path(location: tuple[int | str, ...]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return "spec" + "".join(s for s in steps if s.removeprefix(".") not in _UNION_STEPS)


def _has_refused_type(path: str, problems: ProblemList) -> bool:
    """Fields of a plugin type that is refused by name are not refused once more."""
    entry = _ENTRY.match(path)
    return entry is not None and problems.covers(f"{entry[1]}.type")


def _sentence(item: ErrorDetails) -> str:
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] in ("missing", "value_error"):
        return message
    if item["type"] == "model_type":
        return "must be an object"
    if item["type"] in _SIZES:
        return f"{message[0].lower()}{message[1:]}".replace(" after validation", "")
    shown = repr(item["input"])
    if len(shown) > MAX_INPUT_CHARS:
        shown = shown[: MAX_INPUT_CHARS - 1] + "…"
    return f"{message[0].lower()}{message[1:]}, not {shown}"


def _known_fields(model: type[Model], location: tuple[int | str, ...]) -> list[str]:
    """Return the field names that the block at this location may have."""
    schema = _schema(model)
    definitions = schema.get("$defs", {})
    here: Mapping[str, Any] = schema
    for step in location:
        here = _below(here, step, definitions)
    return sorted(_resolved(here, definitions).get("properties", {}))


@cache
def _schema(model: type[Model]) -> Mapping[str, Any]:
    return model.model_json_schema(by_alias=True)


def _below(
    schema: Mapping[str, Any], step: int | str, definitions: Mapping[str, Any]
) -> Mapping[str, Any]:
    block_schema = _resolved(schema, definitions)
    below = block_schema.get("items") if isinstance(step, int) else None
    values = block_schema.get("additionalProperties", {})
    found = below or block_schema.get("properties", {}).get(step, values)
    return found if isinstance(found, Mapping) else {}


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references and step into the non-null part of an optional field."""
    for choice in schema.get("anyOf", ()):
        if choice.get("type") != "null":
            return _resolved(choice, definitions)
    if "$ref" not in schema:
        return schema
    found = definitions[str(schema["$ref"]).rsplit("/", 1)[-1]]
    return found if isinstance(found, Mapping) else {}
