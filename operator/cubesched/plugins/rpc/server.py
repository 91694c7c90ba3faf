"""What the author of a plugin in another process imports: a server of filters and scores.

    from cubesched.plugins.rpc.server import Fleet, Request, Server

    server = Server("example")

    @server.filter()
    def few_creates(fleet: Fleet, request: Request):
        return fleet.creating < 8

    @server.score()
    def idle(fleet: Fleet, request: Request):
        return 100.0 - fleet.cpu_util

    server.run("/run/cube/example.sock")

A filter returns one bool a node, a score 0..100 a node or `NOT_APPLICABLE`, both as NumPy arrays
over the whole fleet. Calls come from several threads at once.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import grpc

from cubesched.core.pipeline import NOT_APPLICABLE, NotApplicable
from cubesched.plugins.python.requestview import Request
from cubesched.plugins.rpc import plugin_pb2 as pb
from cubesched.plugins.rpc.answering import Answering, FilterFunction, ScoreFunction
from cubesched.plugins.rpc.fleetview import Fleet
from cubesched.plugins.rpc.listening import CannotListen, Taken, take
from cubesched.plugins.rpc.wire import LIMITS, SERVICE

__all__ = ["NOT_APPLICABLE", "CannotListen", "Fleet", "NotApplicable", "Request", "Server"]

_LOG = logging.getLogger(__name__)
THREADS: Final = 8
PARTING_SECONDS: Final = 5.0
"""How long calls under way may go on when the server stops."""


class Server:
    """Serves what is registered with it at one socket. `name` is for people: logs and health."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._filters: dict[str, FilterFunction] = {}
        self._scores: dict[str, ScoreFunction] = {}
        self._server: grpc.Server | None = None
        self._taken: Taken | None = None

    def filter(self, name: str = "") -> Callable[[FilterFunction], FilterFunction]:
        """Register a filter under the name by which Profiles list it; without one, under all."""
        return _registering("filter", self._filters, name)

    def score(self, name: str = "") -> Callable[[ScoreFunction], ScoreFunction]:
        """Register a score under the name by which Profiles list it; without one, under all."""
        return _registering("score", self._scores, name)

    def run(self, path: str | Path) -> None:
        """Serve until SIGTERM or SIGINT, then let calls end and remove the socket.

        Called in the main thread; exits with a message when the path cannot be taken.
        """
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        try:
            self.start(path)
        except CannotListen as error:
            sys.exit(f"{self.name}: {error}")
        _LOG.info("%s listens at %s", self.name, path)
        stopping.wait()
        self.stop()

    def start(self, path: str | Path) -> None:
        """Listen at a path, in the background; raises CannotListen when it cannot be taken."""
        answering = Answering(self.name, self._filters, self._scores)
        server = grpc.server(ThreadPoolExecutor(THREADS, "plugin"), options=LIMITS)
        server.add_generic_rpc_handlers((_handlers(answering),))

        def listen(binding: Path) -> None:
            try:
                server.add_insecure_port("unix:" + quote(str(binding)))
            except RuntimeError as error:
                raise CannotListen(f"{path}: cannot bind a socket there") from error
            server.start()

        self._taken, self._server = take(path, listen), server

    def stop(self) -> None:
        """Give the path back, let calls under way end, and take no more."""
        if self._taken is not None:
            self._taken.give_back()
        if self._server is not None:
            self._server.stop(PARTING_SECONDS).wait()
        self._taken = self._server = None


def _registering(kind: str, registered: dict[str, Any], name: str) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        if name in registered:
            raise ValueError(f"{kind} {name!r} is registered twice")
        registered[name] = function
        return function

    return register


def _handlers(answering: Answering) -> grpc.GenericRpcHandler:
    methods: Mapping[str, tuple[Any, type[Any], type[Any]]] = {
        "Handshake": (answering.handshake, pb.HandshakeRequest, pb.HandshakeReply),
        "Filter": (answering.filter, pb.FilterRequest, pb.FilterReply),
        "Score": (answering.score, pb.ScoreRequest, pb.ScoreReply),
    }
    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            name: grpc.unary_unary_rpc_method_handler(
                answer, asked.FromString, reply.SerializeToString
            )
            for name, (answer, asked, reply) in methods.items()
        },
    )
