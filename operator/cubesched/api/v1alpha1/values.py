"""Value types that people write as text: quantities, durations, label keys, names.

Each carries its rule twice, as CEL for the API server and as Python for `lint` and the policy
compiler, built from the same grammar and the same bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from cubesched.api import duration, quantity
from cubesched.api.v1alpha1.schema import cel_text, extra, rule

LABEL_KEY: Final = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LABEL_VALUE: Final = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
LABEL_KEY_MAX: Final = 317
"""253 for the prefix, the slash, and 63 for the name."""

_CPU_MAX: Final = "1M"
"""A million cores: far above any machine, and small enough that sums cannot overflow."""
_BYTES_MAX: Final = "1P"


@dataclass(frozen=True, slots=True)
class QuantityBetween:
    """The rule of one quantity; `least` and `most` are quantities, integers are whole units."""

    least: str
    most: str
    what: str
    """The range in words, with examples."""
    is_millis: bool = False
    round_up: bool = False

    def amount(self, value: float | str) -> int:
        """Return the exact amount in millis or units, rounded as decisions will round it."""
        parse = quantity.parse_millis if self.is_millis else quantity.parse_units
        return parse(value, round_up=self.round_up)

    def check(self, value: Any) -> int | str:
        """Return the value as written, or refuse it as the server does."""
        if not self.amount(self.least) <= self.amount(value) <= self.amount(self.most):
            raise ValueError(f"{value!r} is out of range: must be a quantity {self.what}")
        checked: int | str = value
        return checked

    def rule(self) -> str:
        """Return the CEL rule: one grammar and the bounds."""
        least = quantity.parse_units(self.least, round_up=True)
        most = quantity.parse_units(self.most, round_up=False)
        grammar = cel_text(quantity.GRAMMAR)
        return (
            f"type(self) == int ? self >= {least} && self <= {most}"
            f" : self.matches({grammar}) && isQuantity(self)"
            f" && quantity(self).compareTo(quantity('{self.least}')) >= 0"
            f" && quantity(self).compareTo(quantity('{self.most}')) <= 0"
        )

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {
            "maxLength": quantity.MAX_CHARS,
            **extra(rule(self.rule(), f"must be a quantity {self.what}"), int_or_string=True),
        }


@dataclass(frozen=True, slots=True)
class DurationBetween:
    """The rule of one duration; both bounds are allowed."""

    least: str
    most: str

    @property
    def what(self) -> str:
        """The range in words."""
        return f"must be a duration from {self.least} to {self.most}, as in 90s or 1h30m"

    def check(self, value: str) -> str:
        """Return the value as written, or refuse it as the server does."""
        low, high = duration.parse_nanos(self.least), duration.parse_nanos(self.most)
        if not low <= duration.parse_nanos(value) <= high:
            raise ValueError(f"{value!r} is out of range: {self.what}")
        return value

    def rule(self) -> str:
        """Return the CEL rule: one grammar and the bounds."""
        return (
            f"self.matches({cel_text(duration.GRAMMAR)})"
            f" && duration(self) >= duration('{self.least}')"
            f" && duration(self) <= duration('{self.most}')"
        )

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        extensions = extra(rule(self.rule(), self.what))
        return {**handler(schema), "maxLength": duration.MAX_CHARS, **extensions}


CpuAsked = Annotated[
    int | str,
    QuantityBetween(
        least="1n",
        most=_CPU_MAX,
        what='above 0 and up to 1M cores, as in 2, 500m or "0.5" (quote a fraction)',
        is_millis=True,
        round_up=True,
    ),
]
"""Cores a request asks for; rounded up to whole millicores, never 0."""

CpuHeld = Annotated[
    int | str,
    QuantityBetween(
        least="1m",
        most=_CPU_MAX,
        what='from 1m to 1M cores, as in 64, 500m or "0.5" (quote a fraction)',
        is_millis=True,
    ),
]
"""Cores a node holds; rounded down to whole millicores, never 0."""

BytesAsked = Annotated[
    int | str,
    QuantityBetween(
        least="1n",
        most=_BYTES_MAX,
        what="above 0 and up to 1P bytes, as in 4Gi, 512Mi or 1073741824",
        round_up=True,
    ),
]
"""Bytes a request asks for; rounded up, never 0."""

BytesHeld = Annotated[
    int | str,
    QuantityBetween(
        least="1", most=_BYTES_MAX, what="from 1 byte to 1P, as in 256Gi or 1073741824"
    ),
]
"""Bytes a node holds; rounded down, never 0."""

BytesOrNone = Annotated[
    int | str,
    QuantityBetween(
        least="0", most=_BYTES_MAX, what="from 0 to 1P bytes, as in 10Gi or 0", round_up=True
    ),
]
"""Bytes, where 0 means none."""


def _each_once(entries: list[str]) -> list[str]:
    """Refuse what the server refuses in a list of type set."""
    if twice := sorted({entry for entry in entries if entries.count(entry) > 1}):
        raise ValueError(f"lists {', '.join(twice)} more than once")
    return entries


EACH_ONCE: Final = AfterValidator(_each_once)
"""For lists of type set; after the Field that bounds their length."""

LabelKey = Annotated[str, Field(min_length=1, max_length=LABEL_KEY_MAX, pattern=LABEL_KEY)]
"""A label key as Kubernetes spells it, with or without a prefix."""

LabelValue = Annotated[str, Field(max_length=63, pattern=LABEL_VALUE)]
"""A label value as Kubernetes spells it; may be empty."""

ObjectName = Annotated[
    str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
]
"""The name of an object."""

InstanceType = Annotated[
    str,
    Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"),
]
"""The kind of sandbox runtime, spelled like a label value."""

TemplateID = Annotated[
    str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9][-A-Za-z0-9._:/@+]*$")
]
"""The name of a sandbox template."""

ImageName = Annotated[
    str, Field(min_length=1, max_length=512, pattern=r"^[A-Za-z0-9][-A-Za-z0-9._:/@+]*$")
]
"""The reference of an image, compared as it is spelled."""

PluginName = Annotated[str, Field(min_length=1, max_length=63)]
"""The name of a plugin or of a factor."""

FactorWeight = Annotated[float, Field(ge=0, le=1_000_000)]
"""What a factor weighs; 0 switches it off."""

Timestamp = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]
"""A time in RFC 3339, UTC."""

Labels = Annotated[
    dict[LabelKey, LabelValue],
    Field(
        max_length=32,
        json_schema_extra=extra(
            rule(
                f"self.all(k, size(k) <= {LABEL_KEY_MAX} && k.matches({cel_text(LABEL_KEY)}))",
                "every key must be a label key, as in workload or topology.kubernetes.io/zone",
            ),
            map_type="atomic",
        ),
    ),
]
"""Label keys with the value each must have."""
