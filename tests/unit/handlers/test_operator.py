from __future__ import annotations

import ast
import asyncio
import inspect
from pathlib import Path
from typing import Any

import kopf
import msgspec
from tests.model.virtualtime import run_virtual

from cubesched import handlers
from cubesched.adapters.cluster.backoff import Backoff
from cubesched.adapters.cluster.transport import Response
from cubesched.core.errors import ApiError
from cubesched.handlers.operator import register, wait_for_kinds

MAX_HANDLER_LINES = 15


class Discovery:
    """Answers what kinds are served, one answer after the other."""

    def __init__(self, *answers: Response | ApiError) -> None:
        self.answers = list(answers)
        self.times: list[float] = []

    async def request(self, method: str, path: str, **_: Any) -> Response:
        """Give the next answer."""
        assert (method, path) == ("GET", "/apis/cubesched.io/v1alpha1")
        self.times.append(asyncio.get_running_loop().time())
        answer = self.answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    def stream(self, *_: Any, **__: Any) -> Any:
        """Nobody here watches."""
        raise AssertionError


def serving(*plurals: str) -> Response:
    resources = [{"name": name} for plural in plurals for name in (plural, f"{plural}/status")]
    return Response(200, msgspec.json.encode({"resources": resources}))


def test_kopf_starts_only_when_all_kinds_are_served() -> None:
    most = ("schedulerprofiles", "schedulerconfigs", "sandboxnodes")

    async def main() -> Discovery:
        server = Discovery(
            ApiError("cannot reach it"),
            Response(404, b""),
            serving(*most),
            serving(*most, "sandboxrequests"),
        )
        await wait_for_kinds(server, Backoff(lambda: 1.0))
        return server

    server = run_virtual(main)

    assert server.answers == []
    assert len(server.times) == 4


class NoApp:
    """An app whose members are never touched while handlers are only registered."""

    connection: Any
    policy_reconciler: Any
    node_verdicts: Any

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
