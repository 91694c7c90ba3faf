from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import kopf

from cubesched import handlers
from cubesched.handlers.operator import register

MAX_HANDLER_LINES = 15


class NoApp:
    """An app whose members are never touched while handlers are only registered."""

    connection: Any
    policy_reconciler: Any
    node_statuses: Any

    async def on_started(self) -> None: ...

    async def on_stopping(self) -> None: ...


def test_only_events_of_our_kinds_are_handled_and_the_default_registry_stays_empty() -> None:
    registry = kopf.OperatorRegistry()

    register(registry, NoApp())

    selectors = [handler.selector for handler in registry._watching.get_all_handlers()]
    assert sorted(str(s.any_name) for s in selectors if s) == [
        "sandboxnodes",
        "schedulerconfigs",
        "schedulerprofiles",
    ]
    assert not list(registry._changing.get_all_handlers())
    assert not list(registry._spawning.get_all_handlers())
    assert not list(kopf.get_default_registry()._watching.get_all_handlers())


def test_no_handler_is_longer_than_fifteen_lines() -> None:
    folder = Path(inspect.getfile(handlers)).parent
    decorated = [
        node
        for file in folder.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.AsyncFunctionDef) and _is_handler(node)
    ]

    assert len(decorated) >= 5
    for node in decorated:
        assert (node.end_lineno or 0) - node.lineno < MAX_HANDLER_LINES, node.name


def _is_handler(node: ast.AsyncFunctionDef) -> bool:
    return any("kopf.on." in ast.unparse(decorator) for decorator in node.decorator_list)
