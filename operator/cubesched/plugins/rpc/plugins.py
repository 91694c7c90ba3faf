"""Filters and scores of other processes as the pipeline asks them."""

from __future__ import annotations

from typing_extensions import override

from cubesched.core.errors import PluginArgsInvalid
from cubesched.core.pipeline import NotApplicable, WaitingFilter, WaitingScore
from cubesched.core.request import Request
from cubesched.core.snapshot import Bools, Floats, Ints, Snapshot
from cubesched.plugins.listing import Listing, Surroundings
from cubesched.plugins.python.host import Limits
from cubesched.plugins.rpc.answers import Asked
from cubesched.plugins.rpc.host import RpcHost
from cubesched.plugins.rpc.line import Line
from cubesched.plugins.rpc.offer import Kind
from cubesched.plugins.rpc.sockets import Socket, why_not


class RpcFilter(WaitingFilter):
    """A filter behind a socket."""

    host: RpcHost

    def __init__(self, line: Line) -> None:
        self.name, self.host, self._line = line.name, line.host, line

    @override
    async def keep(self, fleet: Snapshot, request: Request, rows: Ints) -> Bools:
        """Ask the server about all rows at once."""
        asked = Asked(self.name, fleet, rows)
        return await self._line.ask(asked, request, asked.mask)


class RpcScore(WaitingScore):
    """A score behind a socket."""

    host: RpcHost

    def __init__(self, line: Line) -> None:
        self.name, self.host, self._line = line.name, line.host, line

    @override
    async def score(self, fleet: Snapshot, request: Request, rows: Ints) -> Floats | NotApplicable:
        """Ask the server about all rows at once."""
        asked = Asked(self.name, fleet, rows)
        return await self._line.ask(asked, request, asked.scores)


def build_filter(listing: Listing, around: Surroundings) -> RpcFilter:
    """Return the filter; raise PluginArgsInvalid when its socket's path cannot be right."""
    return RpcFilter(_line("filter", listing, around))


def build_score(listing: Listing, around: Surroundings) -> RpcScore:
    """Return the score; raise PluginArgsInvalid when its socket's path cannot be right."""
    return RpcScore(_line("score", listing, around))


def _line(kind: Kind, listing: Listing, around: Surroundings) -> Line:
    if problem := why_not(listing.socket_path, around.plugin_directory):
        raise PluginArgsInvalid((("socketPath", problem),))
    socket = Socket.of(listing.socket_path, around.plugin_directory)
    host = around.hosts.host(("grpc", socket), lambda: RpcHost(socket, around.encoder))
    return host.line(kind, listing.name, Limits.of(listing))
