"""The aiohttp transport: one API server, one identity, every wait with a deadline.

It tells apart what certainly was not sent from what may have landed: a connection that could not
be made is an ApiError, a lost answer to anything but a GET is an OutcomeUnknown. aiohttp sends a
PUT again when a kept-alive connection breaks under it, so a refusal of the second sending may
answer our own first one: that is an OutcomeUnknown as well.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

import aiohttp

from cubesched.adapters.cluster.answers import error_of
from cubesched.adapters.cluster.credentials import Authorization, FixedToken
from cubesched.adapters.cluster.lines import split_lines
from cubesched.adapters.cluster.transport import Response
from cubesched.adapters.version import program_version
from cubesched.core.errors import ApiError, OutcomeUnknown

CONNECT_SECONDS: Final = 5.0
KEEPALIVE_SECONDS: Final = 60.0
NEVER_SENT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""What aiohttp raises before the first byte of a request: refused, no such host, bad certificate,
no answer to the attempt to connect.
"""

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the API server is and how to prove who we are."""

    server: str
    """URL without a trailing slash."""
    tls: ssl.SSLContext | None = None
    authorization: Authorization = field(default_factory=lambda: FixedToken(None))
    server_hostname: str | None = None
    """The name that the certificate must hold, when it is not the URL's."""
    proxy: str | None = None

    def new_session(
        self, headers: Headers = (), *, sharing: aiohttp.ClientSession | None = None
    ) -> aiohttp.ClientSession:
        """Open a session that authorizes each request by itself; whoever asked closes it.

        With `sharing` it uses the connections of that session, which must outlive it.
        """
        return aiohttp.ClientSession(
            connector=self._new_connector() if sharing is None else sharing.connector,
            connector_owner=sharing is None,
            middlewares=(self.authorize,),
            headers=[("User-Agent", f"cubesched/{program_version()}"), *headers],
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=self.proxy,
            trust_env=False,
        )

    def _new_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(
            ssl=True if self.tls is None else self.tls,
            limit=0,
            keepalive_timeout=KEEPALIVE_SECONDS,
        )

    async def authorize(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Set what each request needs just before it is sent, the second time too."""
        value = await self.authorization()
        if value is not None:
            request.headers["Authorization"] = value
        if self.server_hostname is not None:
            request.server_hostname = self.server_hostname
        return await handler(request)


class _Sendings:
    """Counts how often aiohttp put one request on the wire."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        self.count += 1
        return await handler(request)


class AiohttpTransport:
    """Implements `Transport` for a real server; opens its session at the first request."""

    def __init__(
        self,
        connection: Connection,
        *,
        impersonate_user: str | None = None,
        impersonate_groups: Sequence[str] = (),
    ) -> None:
        self.connection = connection
        headers: list[tuple[str, str]] = []
        if impersonate_user is not None:
            headers.append(("Impersonate-User", impersonate_user))
            headers += [("Impersonate-Group", group) for group in impersonate_groups]
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None
        self._open_shared: Callable[[], aiohttp.ClientSession] | None = None

    def acting_as(self, user: str, *, groups: Sequence[str]) -> AiohttpTransport:
        """Return a transport that impersonates `user` over this one's connections.

        Hundreds of users need no connections of their own; this one must outlive them all.
        """
        other = AiohttpTransport(self.connection, impersonate_user=user, impersonate_groups=groups)
        other._open_shared = self.open_session
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def open_session(self) -> aiohttp.ClientSession:
        """Return the session in use, opened at the first call."""
        if self._session is None:
            sharing = None if self._open_shared is None else self._open_shared()
            self._session = self.connection.new_session(self._headers, sharing=sharing)
        return self._session

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
        """Send one request and return the answer, whatever its status."""
        sendings = _Sendings()
        try:
            response = await self._exchange(
                sendings, method, path, params, body, content_type, timeout_seconds
            )
        except NEVER_SENT as error:
            if sendings.count > 1:
                raise self._lost(method, error) from error
            raise ApiError(f"cannot reach {self.connection.server}: {_text(error)}") from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._lost(method, error) from error
        if method != "GET" and sendings.count > 1 and 400 <= response.status < 500:
            raise OutcomeUnknown(f"{method} was sent twice and answered {response.status}")
        return response

    async def _exchange(
        self,
        sendings: _Sendings,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
        timeout_seconds: float,
    ) -> Response:
        async with self.open_session().request(
            method,
            self.connection.server + path,
            params=params,
            data=body,
            headers=None if body is None else {"Content-Type": content_type},
            timeout=aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=CONNECT_SECONDS),
            middlewares=(self.connection.authorize, sendings),
            allow_redirects=False,
        ) as answer:
            return Response(answer.status, await answer.read(), _headers_of(answer))

    def _lost(self, method: str, error: Exception) -> ApiError:
        """Return the error for a request that may have been acted on."""
        text = f"no answer from {self.connection.server} to a {method}: {_text(error)}"
        return ApiError(text) if method == "GET" else OutcomeUnknown(text)

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Mapping[str, str], idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch; iterate over its lines, without the line break."""
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=idle_seconds
        )
        try:
            answer = await self.open_session().get(
                self.connection.server + path,
                params=params,
                timeout=timeout,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _broken(path, error) from error
        async with answer, aclosing(_lines(answer, path)) as lines:
            if answer.status != 200:
                raise await _refused(answer, path)
            yield lines


async def _lines(answer: aiohttp.ClientResponse, path: str) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a watch; whatever breaks it becomes an ApiError."""
    try:
        async with aclosing(split_lines(answer.content.readany)) as lines:
            async for line in lines:
                yield line
    except (aiohttp.ClientError, TimeoutError) as error:
        raise _broken(path, error) from error


async def _refused(answer: aiohttp.ClientResponse, path: str) -> ApiError:
    try:
        body = await answer.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        return _broken(path, error)
    return error_of(Response(answer.status, body, _headers_of(answer)), f"GET {path}")


def _broken(path: str, error: Exception) -> ApiError:
    return ApiError(f"stream of {path} broke: {_text(error)}")


def _headers_of(answer: aiohttp.ClientResponse) -> dict[str, str]:
    """Keep the one header that anybody reads."""
    value = answer.headers.get("Retry-After")
    return {} if value is None else {"retry-after": value}


def _text(error: Exception) -> str:
    """Return one line for an error; some of aiohttp's have no text of their own."""
    return " ".join(str(error).split()) or type(error).__name__
