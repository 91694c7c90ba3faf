"""The CustomResourceDefinitions, one file a kind."""

from __future__ import annotations

from typing import Any, Final

from cubesched.api import GROUP, VERSION
from cubesched.generate.kinds import Column, Kind
from cubesched.generate.structural import Schema, filled_default, structural

_META: Final[dict[str, Schema]] = {
    "apiVersion": {"type": "string", "maxLength": 64},
    "kind": {"type": "string", "maxLength": 64},
    "metadata": {"type": "object"},
}


def crd(kind: Kind) -> dict[str, Any]:
    """Return the CustomResourceDefinition of one kind."""
    resource = kind.resource
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{GROUP}",
            "labels": {"app.kubernetes.io/name": "cubesched"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": [resource.short_name],
                "categories": ["cubesched"],
            },
            "versions": [_version(kind)],
        },
    }


def object_schema(kind: Kind) -> Schema:
    """Return the schema of a whole object of this kind."""
    status = structural(kind.status)
    if kind.is_status_defaulted:
        status["default"] = filled_default(status)
    spec = structural(kind.spec)
    if not kind.is_spec_required:
        spec["default"] = filled_default(spec)
    schema: Schema = {
        "description": kind.what,
        "type": "object",
        "properties": {**_META, "spec": spec, "status": status},
    }
    if kind.is_spec_required:
        schema["required"] = ["spec"]
    if kind.rules:
        schema["x-kubernetes-validations"] = [dict(entry) for entry in kind.rules]
    return schema


def _version(kind: Kind) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
    }
    if kind.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in kind.selectable]
    return {**version, "schema": {"openAPIV3Schema": object_schema(kind)}}


def _column(column: Column) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.what:
        entry["description"] = column.what
    if column.is_wide:
        entry["priority"] = 1
    return entry
