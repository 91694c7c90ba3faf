"""The transport against a real socket: what was sent, what was lost, and what each looks like."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from cubesched.adapters.cluster.credentials import FixedToken
from cubesched.adapters.cluster.wire import AiohttpTransport, Connection
from cubesched.core.errors import ApiError, Gone, OutcomeUnknown

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def a_server(handler: Handler) -> Any:
    """Serve every path with `handler`; yields a transport that is connected to it."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    connection = Connection(
        f"http://127.0.0.1:{port}/prefix", authorization=FixedToken("Bearer abc")
    )
    try:
        async with AiohttpTransport(connection) as transport:
            yield transport
    finally:
        await runner.cleanup()


async def test_a_request_carries_identity_parameters_and_body() -> None:
    seen: dict[str, Any] = {}

    async def handler(request: web.Request) -> web.Response:
        seen.update(
            method=request.method,
            path=request.path,
            query=dict(request.query),
            body=await request.read(),
            token=request.headers["Authorization"],
            kind=request.headers["Content-Type"],
            agent=request.headers["User-Agent"],
        )
        return web.Response(status=201, body=b"{}", headers={"Retry-After": "7"})

    async with a_server(handler) as transport:
        response = await transport.request(
            "POST", "/apis/x", params={"continue": "a+b/c=="}, body=b"{}", content_type="x/y"
        )

    assert response.status == 201
    assert response.headers == {"retry-after": "7"}
    assert seen["path"] == "/prefix/apis/x"
    assert seen["query"] == {"continue": "a+b/c=="}
    assert (seen["method"], seen["body"], seen["kind"]) == ("POST", b"{}", "x/y")
    assert seen["token"] == "Bearer abc"
    assert seen["agent"].startswith("cubesched/")


async def test_impersonation_names_the_user_and_each_group() -> None:
    seen: list[Any] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(
            (request.headers["Impersonate-User"], request.headers.getall("Impersonate-Group"))
        )
        return web.Response()

    async with a_server(handler) as transport:
        user = "cubesched:node:n1"
        apart = AiohttpTransport(
            transport.connection, impersonate_user=user, impersonate_groups=["a", "b"]
        )
        async with apart, transport.acting_as(user, groups=["a", "b"]) as sharing:
            await apart.request("GET", "/")
            await sharing.request("GET", "/")

    assert seen == [("cubesched:node:n1", ["a", "b"])] * 2


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_a_connection_that_is_refused_means_that_nothing_was_sent(method: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    async with AiohttpTransport(Connection(f"http://127.0.0.1:{port}")) as transport:
        with pytest.raises(ApiError, match=f"cannot reach http://127.0.0.1:{port}") as caught:
            await transport.request(method, "/")

    assert not isinstance(caught.value, OutcomeUnknown)
    assert caught.value.status == 0


async def test_a_name_that_does_not_resolve_means_that_nothing_was_sent() -> None:
    async with AiohttpTransport(Connection("http://no-such-host.invalid")) as transport:
        with pytest.raises(ApiError, match="cannot reach") as caught:
            await transport.request("PUT", "/")

    assert not isinstance(caught.value, OutcomeUnknown)


async def test_no_answer_in_time_leaves_a_write_unknown_and_fails_a_read() -> None:
    async def handler(_request: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    async with a_server(handler) as transport:
        with pytest.raises(OutcomeUnknown):
            await transport.request("PUT", "/", body=b"{}", timeout_seconds=0.05)
        with pytest.raises(ApiError) as caught:
            await transport.request("GET", "/", timeout_seconds=0.05)

    assert not isinstance(caught.value, OutcomeUnknown)


async def test_an_answer_cut_short_leaves_a_write_unknown() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"{")
        assert request.transport is not None
        request.transport.close()
        return response

    async with a_server(handler) as transport:
        with pytest.raises(OutcomeUnknown):
            await transport.request("PUT", "/", body=b"{}")


@pytest.mark.parametrize(
    ("second_status", "expected"), [(409, OutcomeUnknown), (404, OutcomeUnknown), (200, None)]
)
async def test_a_refusal_of_what_was_sent_twice_is_no_answer(
    second_status: int, expected: type[Exception] | None
) -> None:
    sent = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal sent
        if request.method == "PUT":
            sent += 1
            if sent == 1:
                # The write lands, and the kept-alive connection breaks before the answer.
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            return web.Response(status=second_status)
        return web.Response()

    async with a_server(handler) as transport:
        await transport.request("GET", "/")
        if expected is None:
            assert (await transport.request("PUT", "/", body=b"{}")).status == 200
        else:
            with pytest.raises(expected):
                await transport.request("PUT", "/", body=b"{}")

    assert sent == 2


@asynccontextmanager
async def _watching(*chunks: bytes | float, status: int = 200, idle: float = 5.0) -> Any:
    """A server that sends these chunks, pausing where there are numbers; yields the lines."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers={"Retry-After": "3"})
        await response.prepare(request)
        for chunk in chunks:
            if isinstance(chunk, bytes):
                await response.write(chunk)
            else:
                await asyncio.sleep(chunk)
        return response

    async with (
        a_server(handler) as transport,
        transport.stream("/", params={"watch": "1"}, idle_seconds=idle) as lines,
    ):
        yield lines


async def test_a_watch_is_cut_into_lines_wherever_the_chunks_end() -> None:
    async with _watching(b"on", b"e\ntwo\n\nth", 0.01, b"ree\n") as lines:
        assert [line async for line in lines] == [b"one", b"two", b"", b"three"]


async def test_a_line_may_be_longer_than_any_buffer() -> None:
    long = b"x" * 3_000_000
    async with _watching(b"a\n" + long + b"\nb\n") as lines:
        assert [line async for line in lines] == [b"a", long, b"b"]


async def test_a_line_that_was_cut_off_is_never_handed_on() -> None:
    async with _watching(b"one\ntw") as lines:
        assert [line async for line in lines] == [b"one"]


async def test_a_silent_watch_ends_with_an_error() -> None:
    async with _watching(b"one\n", 30.0, idle=0.05) as lines:
        assert await anext(lines) == b"one"
        with pytest.raises(ApiError, match="broke"):
            await anext(lines)


async def test_a_watch_at_a_version_no_longer_served_is_gone() -> None:
    with pytest.raises(Gone):
        async with _watching(b'{"code":410,"message":"too old"}', status=410):
            pass


async def test_a_refused_watch_says_how_long_to_stay_away() -> None:
    with pytest.raises(ApiError, match="429 slow down") as caught:
        async with _watching(b'{"code":429,"message":"slow down"}', status=429):
            pass

    assert (caught.value.status, caught.value.retry_after_seconds) == (429, 3.0)


async def test_redirects_and_proxies_of_the_environment_are_not_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")

    async def handler(_request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"})

    async with a_server(handler) as transport:
        assert (await transport.request("GET", "/")).status == 302
