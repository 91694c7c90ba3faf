"""Policy records: a bounded number, the newest first, and no write that changes nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.unit.adapters.scripted import a_refusal

from cubesched.adapters.cluster.revisions import KEPT, LABELS, RevisionStore
from cubesched.adapters.cluster.transport import Response
from cubesched.core.errors import ApiError

PATH = "/apis/apps/v1/namespaces/cubesched-system/controllerrevisions"


@dataclass
class Server:
    """Stores ControllerRevisions as the API server does: of a stored one `data` never changes."""

    stored: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    refuse_writes: int = 0

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Any = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        **_: Any,
    ) -> Response:
        name = path.removeprefix(PATH).lstrip("/")
        if method == "GET":
            assert params["labelSelector"] == ",".join(f"{k}={v}" for k, v in LABELS.items())
            return Response(200, json.dumps({"items": list(self.stored.values())}).encode())
        self.writes.append(method)
        if self.refuse_writes:
            return a_refusal(self.refuse_writes)
        return self._write(method, name, json.loads(body or b"{}"), content_type)

    def _write(self, method: str, name: str, body: dict[str, Any], content_type: str) -> Response:
        if method == "POST":
            name = body["metadata"]["name"]
            if name in self.stored:
                return a_refusal(409)
            self.stored[name] = body
        elif name not in self.stored:
            return a_refusal(404)
        elif method == "PATCH":
            assert content_type == "application/merge-patch+json"
            assert set(body) == {"revision"}
            self.stored[name].update(body)
        else:
            del self.stored[name]
        return Response(200, b"{}")

    def stream(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("records are not watched")


def a_store() -> tuple[RevisionStore, Server]:
    server = Server()
    return RevisionStore(server, "cubesched-system"), server


async def names(store: RevisionStore) -> list[str]:
    return [name for name, _ in await store.newest_first()]


async def test_records_come_back_with_the_newest_first() -> None:
    store, server = a_store()
    for number in range(3):
        await store.keep(f"r{number}", {"number": number})

    assert await store.newest_first() == [(f"r{n}", {"number": n}) for n in (2, 1, 0)]
    assert {each["kind"] for each in server.stored.values()} == {"ControllerRevision"}


async def test_keeping_the_newest_once_more_writes_nothing() -> None:
    store, server = a_store()
    await store.keep("r0", {})
    server.writes.clear()

    await store.keep("r0", {})

    assert server.writes == []


async def test_content_that_is_back_becomes_the_newest_in_one_write() -> None:
    store, server = a_store()
    await store.keep("r0", {"number": 0})
    await store.keep("r1", {"number": 1})
    server.writes.clear()

    await store.keep("r0", {"number": 0})

    assert await store.newest_first() == [("r0", {"number": 0}), ("r1", {"number": 1})]
    assert server.writes == ["PATCH"]


async def test_a_few_are_kept_and_the_oldest_go() -> None:
    store, _ = a_store()
    for number in range(KEPT + 3):
        await store.keep(f"r{number}", {})

    assert await names(store) == [f"r{n}" for n in range(KEPT + 2, 2, -1)]


async def test_one_that_another_replica_wrote_first_is_kept_as_well() -> None:
    store, server = a_store()
    await store.keep("r0", {})

    async def behind(*args: Any, **kwargs: Any) -> Response:
        if args[0] == "GET":
            return Response(200, b'{"items": []}')
        return await Server.request(server, *args, **kwargs)

    server.request = behind  # type: ignore[method-assign]
    await store.keep("r0", {})

    assert server.writes == ["POST", "POST"]


async def test_a_refused_write_is_told() -> None:
    store, server = a_store()
    server.refuse_writes = 403

    with pytest.raises(ApiError, match="keeping the policy record r0"):
        await store.keep("r0", {})


async def test_what_is_no_json_object_is_handed_over_as_it_is() -> None:
    store, server = a_store()
    server.stored = {"odd": {"metadata": {"name": "odd"}, "revision": 3}}

    assert await store.newest_first() == [("odd", None)]


async def test_what_is_nested_beyond_all_measure_is_told_and_ends_nothing() -> None:
    store, server = a_store()
    deep = b'{"items": [{"data": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}]}"

    async def answer(*_: Any, **__: Any) -> Response:
        return Response(200, deep)

    server.request = answer  # type: ignore[method-assign]

    with pytest.raises(ApiError, match="nested too deeply"):
        await store.newest_first()
