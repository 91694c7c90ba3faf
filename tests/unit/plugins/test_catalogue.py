from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field

from cubesched.plugins import catalogue as catalogue_module
from cubesched.plugins.args import Args
from cubesched.plugins.catalogue import Argument, catalogue
from cubesched.plugins.registry import CONSTRAINTS, FILTERS, GUARDS, SCORES


def argument(plugin: str, name: str) -> Argument:
    (entry,) = (each for each in catalogue() if each.name == plugin)
    return next(each for each in entry.arguments if each.name == name)


def test_every_plugin_of_the_table_is_in_it_once_in_the_order_of_a_decision() -> None:
    entries = list(catalogue())

    stages = [stage.name for stage in (*GUARDS, *CONSTRAINTS)]
    assert [entry.name for entry in entries] == [*stages, *FILTERS, *SCORES]
    assert {entry.kind for entry in entries} == {"guard", "constraint", "filter", "score"}


@pytest.mark.parametrize("entry", list(catalogue()), ids=lambda entry: entry.name)
def test_every_plugin_and_argument_says_what_it_is(entry: catalogue_module.PluginEntry) -> None:
    assert len(entry.summary) > 10
    assert entry.summary.endswith(".")
    assert not entry.summary.startswith("`")
    for each in entry.arguments:
        assert each.text.endswith(".")
        assert each.type
        assert each.is_required is (each.default is None)


def test_bounds_defaults_and_what_is_required_are_told() -> None:
    penalty = argument("resource_fit_score", "imbalance_penalty")
    labels = argument("node_labels", "matchLabels")

    assert (penalty.type, penalty.default, penalty.bounds) == ("number", 0.5, "0 to 100")
    assert (labels.type, labels.is_required, labels.bounds) == (
        "map of strings",
        True,
        "at least 1 entry",
    )
    assert argument("image_score", "factors").default == ["template_id"]


class Bounded(Args):
    at_least: Annotated[float, Field(ge=0.5)] = 1.0
    """A number."""
    weights: dict[str, Annotated[int, Field(ge=2)]] = Field({"a": 2})
    """Numbers."""
    names: Annotated[tuple[str, ...], Field(min_length=2)] = ("a", "b")
    """Names."""
    free: str = ""
    """Anything."""


def test_every_form_of_bounds_is_put_in_words() -> None:
    found = {each.name: each.bounds for each in catalogue_module._arguments(Bounded)}

    assert found == {
        "at_least": "at least 0.5",
        "weights": "each at least 2",
        "names": "at least 2 entries",
        "free": "",
    }
