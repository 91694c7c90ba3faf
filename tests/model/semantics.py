"""What the scheduler relies on in an API server, as scenarios over any Transport.

They run against the in-memory server and against a real one: what holds on both makes the
in-memory one a model. Each scenario names its objects by its own prefix; `clean_up` after each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import ModuleType

from tests.model import reading_semantics, writing_semantics
from tests.model.http import Http

Scenario = Callable[[Http, str], Awaitable[None]]


def _scenarios(module: ModuleType) -> list[Scenario]:
    return [
        value
        for value in vars(module).values()
        if getattr(value, "__module__", "") == module.__name__
        and getattr(value, "__annotations__", {}).get("http") == "Http"
    ]


SCENARIOS = (*_scenarios(reading_semantics), *_scenarios(writing_semantics))


async def clean_up(http: Http) -> None:
    """Delete every SandboxRequest."""
    _, page = await http.list()
    for item in page["items"]:
        await http.delete(item["metadata"]["name"])
