"""The types that the checker knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    """A type of CEL by its name, as in `list(string)`."""

    name: str
    element: Type | None = None


BOOL: Final = Type("bool")
INT: Final = Type("int")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
LABELS: Final = Type("map(string, string)")
NODE: Final = Type("node")
REQUEST: Final = Type("request")
SCALARS: Final = (BOOL, INT, DOUBLE, STRING)
DUMMIES: Final[dict[Type, bool | int | float | str]] = {
    BOOL: False, INT: 0, DOUBLE: 0.0, STRING: "",
}  # fmt: skip
"""What stands in the place of a value that is an error."""
_BY_PYTHON: Final[dict[type, Type]] = {bool: BOOL, int: INT, float: DOUBLE, str: STRING}


def list_of(element: Type) -> Type:
    """Return the type of a list."""
    return Type(f"list({element.name})", element)


def type_of(value: object) -> Type:
    """Return the type of a literal's value."""
    return _BY_PYTHON[type(value)]
