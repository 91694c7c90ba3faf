"""What all kinds share: the base model, names of fields, conditions, problems.

Models hold spec and status, never metadata; they refuse unknown fields and wrong types.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from cubesched.api.v1alpha1.schema import extra
from cubesched.api.v1alpha1.values import Timestamp


def api_name(field: str) -> str:
    """Return the camelCase name of a field; identifiers end in ID and UID."""
    camel = to_camel(field)
    for ending in ("Uid", "Id"):
        if camel.endswith(ending):
            return camel.removesuffix(ending) + ending.upper()
    return camel


class Model(BaseModel):
    """Base of every spec and status block: frozen, camelCase outside, strict about types."""

    model_config = ConfigDict(
        alias_generator=api_name,
        allow_inf_nan=False,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        strict=True,
        use_attribute_docstrings=True,
    )


class Condition(Model):
    """One observation about the object, as `kubectl wait` and `kubectl describe` read it."""

    type: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Z][A-Za-z]*$")]
    """What is observed."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Z][A-Za-z]*$")]
    """Why, in one word for programs."""
    message: Annotated[str, Field(max_length=1024)] = ""
    """Why, in one line for people."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """The metadata.generation this observation is about; an older one says nothing of now."""
    last_transition_time: Timestamp
    """When `status` last changed."""


ConditionMap = Annotated[
    list[Condition],
    Field(max_length=16, json_schema_extra=extra(list_type="map", list_map_keys=["type"])),
]
"""Conditions that several writers keep side by side by server-side apply, one of each type."""

Problems = Annotated[
    list[Annotated[str, Field(max_length=1024)]],
    Field(max_length=51, json_schema_extra=extra(list_type="atomic")),
]
"""At most 50 lines, then one that says how many more there are."""
