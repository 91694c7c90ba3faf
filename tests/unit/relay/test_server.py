"""The relay over real HTTP, on loopback: what an agent's own list-watch makes of it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.unit.adapters.scripted import ScriptedTransport
from tests.unit.relay.truth import stored

from cubesched.adapters.cluster.connection import AiohttpTransport, Connection
from cubesched.adapters.cluster.kubeconfig import tls_context
from cubesched.adapters.cluster.listwatch import ListWatch
from cubesched.api import REQUESTS
from cubesched.core.errors import ApiError, UsageError
from cubesched.local.pki import Authority, Credential, write_private
from cubesched.relay import server as server_module
from cubesched.relay.asking import WatchAsked
from cubesched.relay.door import Door
from cubesched.relay.fanout import Fanout
from cubesched.relay.freshness import Freshness
from cubesched.relay.server import RelayServer
from cubesched.relay.service import Service
from cubesched.relay.tls import Tls, TlsFiles
from cubesched.relay.watches import MOST_PENDING_BYTES
from cubesched.relay.window import Window

PATH = REQUESTS.path()


@dataclass
class Relay:
    """A listening relay whose stream is fed by hand."""

    upstream: ScriptedTransport = field(default_factory=lambda: ScriptedTransport(newest=10))
    fanout: Fanout = field(default_factory=lambda: Fanout(Window(most_bytes=1 << 30)))
    counted: list[tuple[str, int]] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    server: RelayServer = field(init=False)
    door: Door = field(default_factory=lambda: Door(is_open=True))

    def __post_init__(self) -> None:
        self.server = RelayServer(
            Service(self.fanout, Freshness(self.upstream, PATH, self.fanout)),
            self.fanout,
            self.door,
            rng=Random(1),
            count=lambda verb, code: self.counted.append((verb, code)),
            lost=lambda: self.lost.append(1),
        )

    def take_list(self, *objects: bytes, version: int = 10) -> None:
        self.fanout.reset()
        for raw in objects:
            self.fanout.seen(raw)
        self.fanout.complete(version)
        self.upstream.newest = version

    async def until_watched(self, number: int = 1) -> None:
        async with asyncio.timeout(3):
            while self.fanout.number_of_watches != number:  # noqa: ASYNC110 - nobody tells us
                await asyncio.sleep(0.005)


@asynccontextmanager
async def listening(relay: Relay, tls: ssl.SSLContext | None = None) -> AsyncIterator[Connection]:
    await relay.server.start(host="127.0.0.1", port=0, tls=tls)
    scheme = "http" if tls is None else "https"
    try:
        yield Connection(f"{scheme}://127.0.0.1:{relay.server.port}")
    finally:
        await relay.server.stop()


@dataclass
class Sink:
    """What an agent's list-watch was told."""

    held: dict[str, int] = field(default_factory=dict)
    diary: list[str] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def reset(self) -> None:
        self._note("reset")

    def seen(self, raw: bytes) -> None:
        self._note("seen " + json.loads(raw)["metadata"]["name"])

    def complete(self, version: int) -> None:
        self._note(f"complete {version}")

    def event(self, kind: str, raw: bytes, version: int) -> None:
        self._note(f"{kind} {json.loads(raw)['metadata']['name']} {version}")

    def progress(self, version: int) -> None:
        self._note(f"progress {version}")

    def _note(self, what: str) -> None:
        self.diary.append(what)
        self.news.set()

    async def until(self, what: str) -> None:
        async with asyncio.timeout(5):
            while what not in self.diary:
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def followed(connection: Connection, node: str = "n1") -> AsyncIterator[Sink]:
    """Run an agent's own list-watch against the relay."""
    sink = Sink()
    async with AiohttpTransport(connection) as transport:
        watch = ListWatch(
            transport, PATH, sink, rng=lambda: 0.0, field_selector=f"status.nodeName={node}"
        )
        following = asyncio.create_task(watch.run())
        try:
            yield sink
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def get(
    connection: Connection, path: str = PATH, method: str = "GET", **params: str
) -> tuple[int, dict[str, Any]]:
    async with AiohttpTransport(connection) as transport:
        answer = await transport.request(method, path, params=params)
    body: dict[str, Any] = json.loads(answer.body)
    return answer.status, body


SELECTED: Mapping[str, str] = {"fieldSelector": "status.nodeName=n1"}


async def test_an_agents_list_watch_follows_its_node_through_the_relay() -> None:
    relay = Relay()
    relay.take_list(stored("old", "n1"), stored("other", "n2"))
    async with listening(relay) as connection, followed(connection) as agent:
        await agent.until("complete 10")
        await relay.until_watched()
        relay.fanout.event("MODIFIED", stored("new", "n1", version=11), 11)
        relay.fanout.event("MODIFIED", stored("other", "n3", version=12), 12)
        relay.fanout.event("MODIFIED", stored("new", "n2", version=13), 13)
        await agent.until("DELETED new 13")

        assert agent.diary == [
            *("reset", "seen old", "complete 10"),
            *("ADDED new 11", "DELETED new 13"),
        ]
    assert relay.counted[:3] == [("list", 200), ("watch", 200), ("probe", 200)]


async def test_the_end_of_the_relays_prefix_makes_agents_list_again() -> None:
    relay = Relay()
    relay.take_list(stored("a", "n1"))
    async with listening(relay) as connection, followed(connection) as agent:
        await relay.until_watched()
        relay.take_list(stored("b", "n1"), version=20)
        await agent.until("complete 20")

        assert agent.diary[3:] == ["reset", "reset", "seen b", "complete 20"]


async def test_an_expired_position_is_answered_as_the_api_server_does() -> None:
    relay = Relay()
    relay.take_list(version=10)
    async with listening(relay) as connection:
        status, line = await get(connection, **SELECTED, watch="1", resourceVersion="9")

    assert status == 200
    assert line["type"] == "ERROR"
    assert (line["object"]["code"], line["object"]["reason"]) == (410, "Expired")
    assert relay.counted == [("watch", 410)]


@pytest.mark.parametrize(
    ("method", "path", "params", "code"),
    [
        ("GET", PATH, {}, 400),
        ("GET", "/apis/cubesched.io/v1alpha1/sandboxnodes", {}, 404),
        ("GET", f"{PATH}/x", {}, 404),
        ("GET", "/", {}, 404),
        ("POST", PATH, {}, 405),
        ("DELETE", PATH, SELECTED, 405),
        ("GET", PATH, {**SELECTED, "labelSelector": "a"}, 400),
    ],
)
async def test_everything_else_is_refused_with_a_status(
    method: str, path: str, params: dict[str, str], code: int
) -> None:
    relay = Relay()
    relay.take_list()
    async with listening(relay) as connection:
        status, body = await get(connection, path, method, **params)

    assert status == code == body["code"]
    assert body["kind"] == "Status"
    assert body["message"]


async def test_a_watch_ends_when_its_time_is_up_with_a_bookmark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "asked_of", lambda _: WatchAsked("n1", 10, True, 0))
    relay = Relay()
    relay.take_list()
    async with listening(relay) as connection:
        status, line = await get(connection)

        assert (status, line["type"]) == (200, "BOOKMARK")
        assert relay.fanout.number_of_watches == 0


async def test_a_client_that_goes_away_takes_its_watch_with_it() -> None:
    relay = Relay()
    relay.take_list()
    async with listening(relay) as connection:
        async with followed(connection):
            await relay.until_watched(1)
        await relay.until_watched(0)


async def test_a_slow_client_is_cut_off_where_it_stands() -> None:
    relay = Relay()
    relay.take_list()
    padding = {"pad": "x" * (MOST_PENDING_BYTES // 2)}
    params = {**SELECTED, "watch": "1", "resourceVersion": "10"}
    async with (
        listening(relay) as connection,
        AiohttpTransport(connection) as transport,
        transport.stream(PATH, params=params, idle_seconds=5) as lines,
    ):
        version = 10
        while relay.fanout.number_of_watches:
            version += 1
            raw = stored("q", "n1", version=version, labels=padding)
            relay.fanout.event("MODIFIED", raw, version)
            await asyncio.sleep(0)
            assert version < 200, "nobody cuts off a client that reads nothing"
        with pytest.raises(ApiError, match="broke"):
            await _read_to_the_end(lines)


async def _read_to_the_end(lines: AsyncIterator[bytes]) -> None:
    async for _ in lines:
        pass


async def test_a_client_that_takes_nothing_for_long_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "WRITE_SECONDS", 0.02)
    relay = Relay()
    large = {"pad": "x" * (8 << 20)}
    relay.take_list()
    relay.fanout.event("ADDED", stored("q", "n1", version=11, labels=large), 11)
    reader, writer = await _open_raw(relay, SELECTED, version=10)
    await relay.until_watched(1)
    await relay.until_watched(0)

    assert relay.lost == [1]
    with suppress(ConnectionResetError):
        assert not (await reader.read()).endswith(b"0\r\n\r\n"), "ended as if it were whole"
    writer.close()
    await relay.server.stop()


async def _open_raw(
    relay: Relay, params: Mapping[str, str], *, version: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a watch and never read from it."""
    await relay.server.start(host="127.0.0.1", port=0, tls=None)
    reader, writer = await asyncio.open_connection("127.0.0.1", relay.server.port, limit=1024)
    selector = params["fieldSelector"]
    query = f"fieldSelector={selector}&watch=1&resourceVersion={version}"
    writer.write(f"GET {PATH}?{query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return reader, writer


async def test_stopping_ends_all_watches_in_good_order() -> None:
    relay = Relay()
    relay.take_list()
    async with listening(relay) as connection, AiohttpTransport(connection) as transport:
        params = {**SELECTED, "watch": "1", "resourceVersion": "10"}
        async with transport.stream(PATH, params=params, idle_seconds=5) as lines:
            stopping = asyncio.create_task(relay.server.stop())
            assert [line async for line in lines] == []
        await stopping


async def test_a_taken_port_is_one_line_that_names_it() -> None:
    relay, other = Relay(), Relay()
    async with listening(relay):
        with pytest.raises(UsageError, match=f"127.0.0.1:{relay.server.port} for agents"):
            await other.server.start(host="127.0.0.1", port=relay.server.port, tls=None)


# With TLS


@dataclass
class Pki:
    """A cluster's authority, and files as a relay and its agents have them."""

    directory: Path
    authority: Authority = field(default_factory=Authority)

    def files(self) -> TlsFiles:
        served = self.authority.issue_server("relay")
        return TlsFiles(
            write_private(self.directory / "relay.crt", served.certificate),
            write_private(self.directory / "relay.key", served.key),
            write_private(self.directory / "ca.crt", self.authority.certificate),
        )

    def client(self, user: str, *groups: str, authority: Authority | None = None) -> ssl.SSLContext:
        credential: Credential = (authority or self.authority).issue_client(user, list(groups))
        context = tls_context(str(self.directory / "ca.crt"))
        context.load_cert_chain(
            write_private(self.directory / "client.crt", credential.certificate),
            write_private(self.directory / "client.key", credential.key),
        )
        return context


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


@asynccontextmanager
async def guarded(pki: Pki, *, impersonators: str = "") -> AsyncIterator[str]:
    """A relay with TLS; yields its URL."""
    relay = Relay(door=Door(impersonators=impersonators))
    relay.take_list(stored("mine", "n1"), stored("theirs", "n2"))
    async with listening(relay, Tls(pki.files()).context) as connection:
        yield connection.server


async def test_a_nodes_certificate_opens_that_nodes_list_and_watch_only(pki: Pki) -> None:
    async with guarded(pki) as url:
        own = Connection(url, tls=pki.client("cubesched:node:n1", "cubesched:nodes"))
        status, page = await get(own, **SELECTED)
        assert [item["metadata"]["name"] for item in page["items"]] == ["mine"]
        assert status == 200
        assert (await get(own, limit="1"))[1]["items"] == []

        for more in ({}, {"watch": "1", "resourceVersion": "10"}):
            status, body = await get(own, fieldSelector="status.nodeName=n2", **more)
            assert (status, body["reason"]) == (403, "Forbidden")
            assert "own node only" in body["message"]


async def test_who_shows_no_certificate_is_told_so(pki: Pki) -> None:
    async with guarded(pki) as url:
        stranger = Connection(url, tls=tls_context(str(pki.directory / "ca.crt")))
        status, body = await get(stranger, **SELECTED)

        assert (status, body["reason"]) == (401, "Unauthorized")


async def test_a_certificate_of_another_authority_is_not_even_heard(pki: Pki) -> None:
    async with guarded(pki) as url:
        forged = pki.client("cubesched:node:n1", "cubesched:nodes", authority=Authority())
        with pytest.raises(ApiError):
            await get(Connection(url, tls=forged), **SELECTED)


async def test_impersonation_is_for_the_named_group_only(pki: Pki) -> None:
    async with guarded(pki, impersonators="simulators") as url:
        context = pki.client("sim", "simulators")
        for user, status in (("cubesched:node:n1", 200), ("cubesched:node:n2", 403)):
            async with AiohttpTransport(
                Connection(url, tls=context),
                impersonate_user=user,
                impersonate_groups=["cubesched:nodes"],
            ) as transport:
                answer = await transport.request("GET", PATH, params=SELECTED)
                assert answer.status == status


async def test_a_renewed_certificate_serves_new_connections(pki: Pki) -> None:
    tls = Tls(files := pki.files())
    assert not tls.reload_if_changed()

    renewed = Pki(pki.directory, Authority()).authority.issue_server("relay")
    write_private(files.certificate, renewed.certificate)
    with pytest.raises(UsageError, match="--tls-cert"):
        tls.reload_if_changed()
    write_private(files.key, renewed.key)

    assert tls.reload_if_changed()
    assert not tls.reload_if_changed()


@pytest.mark.parametrize("broken", ["relay.crt", "relay.key", "ca.crt"])
def test_an_unusable_file_is_named(pki: Pki, broken: str) -> None:
    files = pki.files()
    (pki.directory / broken).write_text("nonsense")

    with pytest.raises(UsageError, match=broken):
        Tls(files)
    (pki.directory / broken).unlink()
    with pytest.raises(UsageError, match=broken):
        Tls(files)
