"""What every built-in plugin's arguments have in common: frozen, typed, unknown names refused."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import ErrorDetails

from cubesched.core.pipeline import Filter, Score
from cubesched.plugins.spelling import did_you_mean


class Args(BaseModel):
    """Arguments of one plugin, as a Profile spells them under `args`."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True
    )


class FilterArgs(Args, ABC):
    """Arguments of a filter."""

    @abstractmethod
    def build(self) -> Filter:
        """Return the filter that these arguments describe."""


class ScoreArgs(Args, ABC):
    """Arguments of a score."""

    @abstractmethod
    def build(self) -> Score:
        """Return the score that these arguments describe."""


Weight = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
"""0 to 1000000; 0 switches a factor off."""


def _as_weights(value: object) -> object:
    """Turn a list of names into weights of 1 each."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list of names, or a map from name to weight")
    names = [name for name in value if isinstance(name, str)]
    if len(names) < len(value):
        raise ValueError("a list of factors holds names only")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"listed more than once: {', '.join(twice)}")
    return dict.fromkeys(names, 1.0)


Factors = Annotated[Mapping[str, Weight], BeforeValidator(_as_weights)]
"""Names of factors, each with weight 1, or a map from name to weight."""


class FactorArgs(ScoreArgs, ABC):
    """Arguments of a score that rates by chosen factors."""

    known: ClassVar[tuple[str, ...]]
    """Every factor it has, under every spelling."""
    factors: Factors
    """What is rated: a list of names, or a map from name to weight."""


def only_known(known: Mapping[str, object]) -> AfterValidator:
    """Return a validator that refuses factors outside `known`, naming the closest one."""

    def check(factors: Mapping[str, float]) -> Mapping[str, float]:
        problems = [
            f'unknown factor "{name}"; {did_you_mean(name, known)}'
            for name in factors
            if name not in known
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return factors

    return AfterValidator(check)


_PREFIXES: Final = ("Value error, ", "Assertion failed, ")


def problem(error: ErrorDetails, model: type[Args]) -> tuple[str, str]:
    """Return (path, message) for one of pydantic's errors, in the words of a Profile."""
    path = "args" + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]
    )
    if error["type"] == "extra_forbidden":
        known = [field.alias or name for name, field in model.model_fields.items()]
        return path, f"unknown argument; {did_you_mean(str(error['loc'][-1]), known)}"
    message = error["msg"]
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    return path, message
