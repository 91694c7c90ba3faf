"""How models say in the CRD what JSON schema cannot: CEL rules, Kubernetes extensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Rule = Mapping[str, str]


def rule(expression: str, message: str, *, at: str = "") -> Rule:
    """Return one CEL rule of the schema; `at` names the field that the error belongs to."""
    entry = {"rule": expression, "message": message}
    return {**entry, "fieldPath": at} if at else entry


def extra(*rules: Rule, **extensions: object) -> dict[str, Any]:
    """Return schema extensions: CEL rules, and `list_type="map"` for x-kubernetes-list-type."""
    schema: dict[str, Any] = {
        f"x-kubernetes-{name.replace('_', '-')}": value for name, value in extensions.items()
    }
    if rules:
        schema["x-kubernetes-validations"] = [dict(entry) for entry in rules]
    return schema


def cel_text(pattern: str) -> str:
    """Return a regular expression as a CEL string literal."""
    escaped = pattern.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SHORT_KEYS: Final = extra(rule("self.all(k, size(k) <= 63)", "names have at most 63 characters"))

ATOMIC: Final = extra(map_type="atomic")
"""One owner writes the block whole: it costs one entry in managedFields, not one a field."""
