"""The CRDs are structural, bounded and lean, and hold every status field the code can write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from cubesched.fleet import objects
from cubesched.generate.crds import crd, object_schema
from cubesched.generate.kinds import CONFIG, KINDS, NODE, PROFILE, REQUEST, Kind
from cubesched.generate.structural import Schema

KIND_IDS = [kind.resource.kind for kind in KINDS]


def nodes(path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Return every schema inside this one with its path."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(f"{path}.{name}", child)
    for key, step in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from nodes(path + step, schema[key])


def blocks(kind: Kind) -> Iterator[tuple[str, Schema]]:
    properties = object_schema(kind)["properties"]
    for part in ("spec", "status"):
        yield from nodes(part, properties[part])


@pytest.mark.parametrize("kind", KINDS, ids=KIND_IDS)
def test_nothing_is_left_that_a_structural_schema_may_not_hold(kind: Kind) -> None:
    for path, schema in blocks(kind):
        assert not schema.keys() & {"$ref", "$defs", "anyOf", "const", "title"}, path
        assert schema.get("additionalProperties") is not False, path
        assert "type" in schema or any(key.startswith("x-kubernetes") for key in schema), path


@pytest.mark.parametrize("kind", KINDS, ids=KIND_IDS)
def test_every_value_is_bounded(kind: Kind) -> None:
    bound = {"string": "maxLength", "array": "maxItems", "integer": "minimum", "number": "maximum"}
    for path, schema in blocks(kind):
        if "enum" not in schema and schema.get("type") in bound:
            assert bound[schema["type"]] in schema, path
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, path


@pytest.mark.parametrize("kind", KINDS, ids=KIND_IDS)
def test_every_field_is_described(kind: Kind) -> None:
    for path, schema in blocks(kind):
        for name, child in schema.get("properties", {}).items():
            assert child.get("description"), f"{path}.{name}"


@pytest.mark.parametrize("kind", KINDS, ids=KIND_IDS)
def test_no_rule_on_spec_compares_with_the_old_object(kind: Kind) -> None:
    rules = [
        entry["rule"]
        for path, schema in blocks(kind)
        for entry in schema.get("x-kubernetes-validations", ())
        if path.startswith("spec")
    ]

    assert not [rule for rule in rules if "oldSelf" in rule]


def test_a_request_is_owned_in_few_pieces() -> None:
    properties = object_schema(REQUEST)["properties"]
    status = properties["status"]["properties"]

    assert properties["spec"]["x-kubernetes-map-type"] == "atomic"
    assert status["reservation"]["x-kubernetes-map-type"] == "atomic"
    assert status["refusals"]["x-kubernetes-list-type"] == "atomic"
    assert status["conditions"]["x-kubernetes-list-type"] == "atomic"


@pytest.mark.parametrize("kind", [PROFILE, CONFIG, NODE], ids=lambda kind: kind.resource.kind)
def test_conditions_that_several_write_are_a_map(kind: Kind) -> None:
    conditions = object_schema(kind)["properties"]["status"]["properties"]["conditions"]

    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_every_field_the_fleet_reads_is_in_the_schema() -> None:
    request = object_schema(REQUEST)["properties"]
    node = object_schema(NODE)["properties"]

    for struct, schema in (
        (objects.RequestStatus, request["status"]),
        (objects.RequestSpec, request["spec"]),
        (objects.NodeSpec, node["spec"]),
        (objects.NodeStatus, node["status"]),
    ):
        assert list(missing(struct, schema)) == []


def missing(struct: type[msgspec.Struct], schema: Schema) -> Iterator[str]:
    """Return the path of every field that is in the struct and not in the schema."""
    for field in msgspec.structs.fields(struct):
        child = schema["properties"].get(field.encode_name)
        if child is None:
            yield f"{struct.__name__}.{field.encode_name}"
        else:
            for inner in structs_in(field.type):
                yield from missing(inner, child.get("items", child))


def structs_in(annotation: Any) -> Iterator[type[msgspec.Struct]]:
    """Return the structs that a field's type names, through lists and unions."""
    is_struct = isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)
    if is_struct and annotation is not objects.NodeAmounts:  # capacity has a part of its fields
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from structs_in(argument)


@pytest.mark.parametrize("kind", KINDS, ids=KIND_IDS)
def test_columns_and_selectable_fields_are_served(kind: Kind) -> None:
    schema = object_schema(kind)
    paths = [column.path for column in kind.columns] + list(kind.selectable)

    for path in paths:
        if not path.startswith(".metadata"):
            here = schema
            for name in path.partition("[")[0].strip(".").split("."):
                here = here["properties"][name]


def test_the_crd_carries_its_names_and_columns() -> None:
    spec = crd(REQUEST)["spec"]

    assert spec["names"]["shortNames"] == ["sbr"]
    assert spec["names"]["categories"] == ["cubesched"]
    assert spec["versions"][0]["selectableFields"][0] == {"jsonPath": ".status.nodeName"}
