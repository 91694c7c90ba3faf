"""Answers of the relay on an in-memory API server: fresh, exact, or refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from tests.model.apiserver import ADMIN, ApiServer
from tests.model.http import Http, a_request
from tests.model.virtualtime import run_virtual, running_loop
from tests.unit.agent.worlds import placed

from cubesched.adapters.cluster.listwatch import ListWatch
from cubesched.api import NODES, REQUESTS
from cubesched.relay.asking import ListAsked, WatchAsked
from cubesched.relay.fanout import Fanout
from cubesched.relay.freshness import PATIENCE_SECONDS, Freshness
from cubesched.relay.refusals import Refusal
from cubesched.relay.service import Service
from cubesched.relay.window import Window


class Relay:
    """A relay's core on an in-memory server, its stream running until `stall`."""

    def __init__(self) -> None:
        self.server = ApiServer(rng=Random(1))
        self.admin = Http(self.server.client(ADMIN))
        self.nodes = Http(self.server.client(ADMIN), NODES)
        transport = self.server.client("viewer")
        self.fanout = Fanout(Window(most_bytes=1 << 20))
        self.service = Service(self.fanout, Freshness(transport, REQUESTS.path(), self.fanout))
        self.list_watch = ListWatch(
            transport, REQUESTS.path(), self.fanout, rng=lambda: 0.5, watch_seconds=(3, 4)
        )
        self.following = asyncio.create_task(self.list_watch.run())

    async def stall(self) -> None:
        """Stop the stream, so that the relay knows less and less."""
        self.following.cancel()
        await asyncio.gather(self.following, return_exceptions=True)

    def go_on(self) -> None:
        self.following = asyncio.create_task(self.list_watch.run())

    async def bind(self, name: str, node: str) -> None:
        _, created = await self.admin.create(a_request(name))
        await self.admin.put_status(created, placed("Bound", node=node))

    async def something_else(self) -> int:
        """Write an object of another kind; return the server's version then."""
        await self.nodes.create({"metadata": {"name": f"n{self.server.store.revision}"}})
        return self.server.store.revision

    async def list_of(self, node: str = "n1", version: int | None = None) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.service.list(ListAsked(node, version)))
        return found

    async def watch(self, version: int, node: str = "n1") -> list[tuple[str, int]]:
        watch = await self.service.watch(WatchAsked(node, version, True, 60))
        await asyncio.sleep(0.1)
        lines = [json.loads(line) for line in (await watch.take(wait_seconds=0)).splitlines()]
        return [(e["type"], int(e["object"]["metadata"]["resourceVersion"])) for e in lines]


def with_relay(test: Callable[[Relay], Awaitable[None]]) -> None:
    async def main() -> None:
        relay = Relay()
        await relay.fanout.reached(0)
        await test(relay)
        await relay.stall()

    run_virtual(main)


def names(page: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in page["items"]]


def version_of(page: dict[str, Any]) -> int:
    return int(page["metadata"]["resourceVersion"])


def test_a_list_shows_what_was_written_before_it_was_asked() -> None:
    async def test(relay: Relay) -> None:
        for number in range(20):
            await relay.bind(f"q{number:02}", "n1")
            written = relay.server.store.revision
            page = await relay.list_of()
            assert names(page)[-1] == f"q{number:02}"
            assert version_of(page) >= written

    with_relay(test)


def test_a_list_waits_for_the_next_bookmark_where_only_other_kinds_change() -> None:
    async def test(relay: Relay) -> None:
        relay.server.bookmark_seconds = 3.0
        await relay.bind("q", "n1")
        written = await relay.something_else()
        began = running_loop().time()

        page = await relay.list_of()

        assert version_of(page) >= written
        assert 0.0 < running_loop().time() - began < PATIENCE_SECONDS

    with_relay(test)


def test_a_stream_that_stalls_answers_with_a_refusal_and_not_with_the_past() -> None:
    async def test(relay: Relay) -> None:
        await relay.bind("q", "n1")
        await relay.list_of()
        await relay.stall()
        await relay.bind("later", "n1")

        with pytest.raises(Refusal, match="Too large resource version") as refused:
            await relay.list_of()

        assert refused.value.code == 504
        assert refused.value.retry_after_seconds == 1

    with_relay(test)


def test_a_server_that_does_not_answer_is_said_so() -> None:
    async def test(relay: Relay) -> None:
        await relay.bind("q", "n1")
        relay.server.restart(down_seconds=60)

        for ask in (relay.list_of(), relay.service.probe()):
            with pytest.raises(Refusal, match="no answer from the API server") as refused:
                await ask
            assert refused.value.code == 503

    with_relay(test)


def test_a_list_of_any_version_is_answered_from_what_is_known() -> None:
    async def test(relay: Relay) -> None:
        await relay.bind("q", "n1")
        known = version_of(await relay.list_of())
        await relay.stall()
        await relay.bind("later", "n1")

        assert names(await relay.list_of(version=0)) == ["q"]
        assert names(await relay.list_of(version=known)) == ["q"]

    with_relay(test)


def test_the_probe_tells_the_servers_version_and_not_ours() -> None:
    async def test(relay: Relay) -> None:
        await relay.stall()
        written = await relay.something_else()

        page = json.loads(await relay.service.probe())

        assert (version_of(page), page["items"]) == (written, [])

    with_relay(test)


def test_a_thousand_lists_at_once_take_two_probes() -> None:
    async def test(relay: Relay) -> None:
        await relay.bind("q", "n1")
        before = relay.server.fired["request"]

        pages = await asyncio.gather(*(relay.list_of() for _ in range(1000)))

        assert {tuple(names(page)) for page in pages} == {("q",)}
        assert relay.server.fired["request"] - before <= 2

    with_relay(test)


def test_a_watch_ahead_of_the_stream_waits_for_it_and_misses_nothing() -> None:
    async def test(relay: Relay) -> None:
        await relay.stall()
        await relay.bind("before", "n1")
        ahead = relay.server.store.revision
        opening = asyncio.create_task(relay.watch(ahead))
        await asyncio.sleep(0.5)
        assert not opening.done()
        await relay.bind("after", "n1")
        relay.go_on()

        lines = await opening

        assert [kind for kind, _ in lines] == ["ADDED"]
        assert lines[0][1] > ahead

    with_relay(test)


def test_a_watch_that_the_stream_does_not_reach_is_refused_in_time() -> None:
    async def test(relay: Relay) -> None:
        await relay.stall()
        await relay.bind("q", "n1")
        began = running_loop().time()

        with pytest.raises(Refusal) as refused:
            await relay.watch(relay.server.store.revision)

        assert refused.value.code == 504
        assert running_loop().time() - began < PATIENCE_SECONDS + 1

    with_relay(test)


def test_a_watch_ahead_of_the_server_itself_is_expired_at_once() -> None:
    async def test(relay: Relay) -> None:
        began = running_loop().time()

        with pytest.raises(Refusal, match="restored") as refused:
            await relay.watch(relay.server.store.revision + 1)

        assert refused.value.code == 410
        assert running_loop().time() - began < 1

    with_relay(test)


def test_a_list_on_a_restored_server_waits_for_the_relays_own_new_list() -> None:
    async def test(relay: Relay) -> None:
        await relay.bind("kept", "n1")
        backup = relay.server.store.revision
        await relay.bind("lost", "n1")
        await relay.list_of()
        await relay.stall()
        relay.server.restore(backup)

        with pytest.raises(Refusal, match="went backwards") as refused:
            await relay.list_of()
        assert refused.value.code == 503
        relay.go_on()
        await asyncio.sleep(1)
        page = await relay.list_of()
        assert names(page) == ["kept"]
        assert version_of(page) == backup

    with_relay(test)
