"""Node agents behind a relay, on an in-memory API server: what outages do to them, and do not."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random

import pytest
from tests.model.apiserver import ADMIN, ApiServer
from tests.model.http import Http, a_request
from tests.model.virtualtime import run_virtual
from tests.unit.agent.worlds import placed

from cubesched.adapters.cluster.answers import error_of
from cubesched.adapters.cluster.lines import split_lines
from cubesched.adapters.cluster.listwatch import ListWatch
from cubesched.adapters.cluster.transport import Response
from cubesched.agent.simulated import Behaviour
from cubesched.agent.simulation import Machines, Simulation, node_user
from cubesched.api import REQUESTS
from cubesched.core.errors import ApiError
from cubesched.fleet.metrics_layout import decode_all
from cubesched.relay.asking import ListAsked, WatchAsked, asked_of
from cubesched.relay.fanout import Fanout
from cubesched.relay.freshness import Freshness
from cubesched.relay.refusals import Refusal
from cubesched.relay.service import Service
from cubesched.relay.window import Window


class Relay:
    """A relay without HTTP: a Transport for its agents, on a stream that the test may hold up."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.start()

    def start(self) -> None:
        """Begin anew, with nothing remembered."""
        self.is_up = True
        viewer = self._server.client("viewer")
        self.fanout = Fanout(Window(most_bytes=1 << 20))
        self._service = Service(self.fanout, Freshness(viewer, REQUESTS.path(), self.fanout))
        self._watch = ListWatch(
            viewer, REQUESTS.path(), self.fanout, rng=lambda: 0.5, watch_seconds=(3, 4)
        )
        self.go_on()

    def go_on(self) -> None:
        self._following = asyncio.create_task(self._watch.run())

    async def hold(self) -> None:
        """Learn nothing more for now."""
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)

    async def kill(self) -> None:
        await self.hold()
        self.is_up = False
        self.fanout.end_all()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_seconds: float = 15.0,
    ) -> Response:
        """Answer a list or a probe."""
        assert (method, path) == ("GET", REQUESTS.path())
        await self._reach()
        asked = asked_of(params or {})
        try:
            if isinstance(asked, ListAsked):
                return Response(200, await self._service.list(asked))
            return Response(200, await self._service.probe())
        except Refusal as refusal:
            return Response(refusal.code, refusal.body)

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Mapping[str, str], idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Answer a watch."""
        await self._reach()
        asked = asked_of(params)
        assert isinstance(asked, WatchAsked)
        try:
            watch = await self._service.watch(asked)
        except Refusal as refusal:
            raise error_of(Response(refusal.code, refusal.body), "watch") from refusal

        async def chunk() -> bytes:
            while not watch.is_over:
                if lines := await watch.take(wait_seconds=5):
                    return lines
                self.fanout.remind(watch)
            return b""

        try:
            yield split_lines(chunk)
        finally:
            self.fanout.close(watch)

    async def _reach(self) -> None:
        await asyncio.sleep(0.001)
        if not self.is_up:
            raise ApiError("cannot reach the relay: connection refused")


class Fleet:
    """Three simulated nodes that list and watch at a relay, and write to the API server."""

    def __init__(self) -> None:
        self.server = ApiServer(rng=Random(1))
        self.admin = Http(self.server.client(ADMIN))
        self.relay = Relay(self.server)
        self.reports: dict[str, bytes] = {}
        self.stop = asyncio.Event()
        self.ready = asyncio.Event()
        self.simulation = Simulation(
            Machines(count=3),
            Behaviour(),
            transport_as=lambda node: self.server.client(node_user(node)),
            relay_as=lambda _node: self.relay,
            metrics=self,
        )

    async def publish(self, reports: Mapping[str, bytes]) -> None:
        self.reports |= reports

    async def run(self) -> None:
        await self.simulation.run(self.stop, ready=self.ready.set)

    async def bind(self, *names: str) -> None:
        for number, name in enumerate(names):
            _, created = await self.admin.create(a_request(name))
            await self.admin.put_status(created, placed("Bound", node=f"node-00{number % 3}"))

    async def phase(self, name: str) -> str:
        _, found = await self.admin.get(name)
        return str(found["status"]["phase"])

    def applied(self) -> set[int]:
        table = decode_all({k.encode(): v for k, v in self.reports.items()}).table
        return {int(version) for version in table["applied_version"]}


def with_fleet(test: Callable[[Fleet], Awaitable[None]]) -> None:
    async def main() -> None:
        fleet = Fleet()
        running = asyncio.create_task(fleet.run())
        await fleet.ready.wait()
        await test(fleet)
        fleet.stop.set()
        await running
        await fleet.relay.hold()

    run_virtual(main)


def test_agents_run_what_is_bound_to_them_and_write_to_the_api_server() -> None:
    async def test(fleet: Fleet) -> None:
        await fleet.bind("a", "b", "c", "d")
        await asyncio.sleep(3)

        assert [await fleet.phase(name) for name in "abcd"] == ["Running"] * 4
        watched = Counter(watch._target.kind.plural for watch in fleet.server.watches)
        assert watched["sandboxrequests"] == 1

    with_fleet(test)


def test_a_relay_that_is_away_stops_what_is_new_and_nothing_that_runs() -> None:
    async def test(fleet: Fleet) -> None:
        await fleet.bind("a")
        await asyncio.sleep(3)
        await fleet.relay.kill()
        before = fleet.applied()
        await fleet.bind("b")
        await asyncio.sleep(60)

        assert (await fleet.phase("a"), await fleet.phase("b")) == ("Running", "Bound")
        assert fleet.applied() == before
        fleet.relay.start()
        await asyncio.sleep(20)
        assert (await fleet.phase("a"), await fleet.phase("b")) == ("Running", "Running")
        assert min(fleet.applied()) > max(before)

    with_fleet(test)


@pytest.mark.parametrize("down_seconds", [0.0, 30.0])
def test_a_restart_of_the_api_server_is_survived(down_seconds: float) -> None:
    async def test(fleet: Fleet) -> None:
        await fleet.bind("a")
        await asyncio.sleep(3)
        fleet.server.restart(down_seconds=down_seconds)
        await asyncio.sleep(down_seconds + 20)
        await fleet.bind("b")
        await asyncio.sleep(10)

        assert (await fleet.phase("a"), await fleet.phase("b")) == ("Running", "Running")

    with_fleet(test)


def test_an_agent_that_starts_is_not_shown_the_past_by_a_relay_that_is_behind() -> None:
    """Listed as of an earlier time, its own claims would be missing, and what runs be removed."""

    async def test(fleet: Fleet) -> None:
        await fleet.relay.hold()
        # What an agent had claimed and started just before it went away, unseen by the relay.
        _, created = await fleet.admin.create(a_request("a"))
        node = fleet.simulation.nodes[0].agent
        await fleet.admin.put_status(created, placed("Running", node=node.node))
        listing = asyncio.create_task(
            fleet.relay.request("GET", REQUESTS.path(), params=selected(node.node))
        )
        await asyncio.sleep(1)
        assert not listing.done()
        fleet.relay.go_on()

        answer = await listing

        assert answer.status == 200
        assert b'"name":"a"' in answer.body

    with_fleet(test)


def selected(node: str) -> dict[str, str]:
    return {"fieldSelector": f"status.nodeName={node}", "limit": "500"}


def test_a_restored_server_starts_all_agents_over() -> None:
    async def test(fleet: Fleet) -> None:
        await fleet.bind("kept")
        await asyncio.sleep(3)
        backup = fleet.server.store.revision
        await fleet.bind("lost")
        await asyncio.sleep(3)
        assert await fleet.phase("lost") == "Running"

        fleet.server.restore(backup)
        await asyncio.sleep(20)

        held = await fleet.simulation.nodes[0].agent.runtime.running()
        assert len(held) == 1
        assert await fleet.phase("kept") == "Running"
        assert max(fleet.applied()) >= backup
        await fleet.bind("after")
        await asyncio.sleep(10)
        assert await fleet.phase("after") == "Running"

    with_fleet(test)
