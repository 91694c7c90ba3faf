"""Plugin servers that are wrong in every way, one socket each: `python faulty.py DIRECTORY`.

They end with their standard input. A call of the plugin `count` tells how many others came before.
"""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc

from cubesched.plugins.rpc import plugin_pb2 as pb
from cubesched.plugins.rpc.wire import SERVICE

Answer = Callable[["Call"], bytes]
FOREIGN: Final = 7
ENDED = threading.Event()


@dataclass
class Call:
    """One question, and a sound answer: all but the last row stay, and score 10, 20, 30 ..."""

    kind: str
    asked: Any
    context: grpc.ServicerContext
    rows: list[int] = field(init=False)

    def __post_init__(self) -> None:
        raw = self.asked.rows
        self.rows = list(struct.unpack(f"<{len(raw) // 4}I", raw))

    def reply(
        self,
        rows: list[int] | None = None,
        values: bytes | None = None,
        *,
        version: int | None = None,
        **more: Any,
    ) -> bytes:
        """Return the answer but for what is given."""
        rows = self.rows if rows is None else rows
        values = self.values(rows) if values is None else values
        found = self.asked.snapshot_version if version is None else version
        packed = struct.pack(f"<{len(rows)}I", *rows)
        if self.kind == "Filter":
            return pb.FilterReply(
                snapshot_version=found, rows=packed, keep=values
            ).SerializeToString()
        return pb.ScoreReply(
            snapshot_version=found, rows=packed, scores=values, **more
        ).SerializeToString()

    def values(self, rows: list[int]) -> bytes:
        """Return what is sound for these rows."""
        if self.kind == "Filter":
            return bytes(row != self.rows[-1] for row in rows)
        return struct.pack(f"<{len(rows)}d", *(10.0 * (row + 1) for row in rows))

    def one_score(self, score: float) -> bytes:
        """Return scores of which the second is this one."""
        scores = [score if place == 1 else 10.0 for place in range(len(self.rows))]
        return self.reply(values=struct.pack(f"<{len(scores)}d", *scores))


def _hang(call: Call) -> bytes:
    ENDED.wait(30)
    return call.reply()


def _whole(call: Call) -> bytes:
    """Answer only who sends everything."""
    if not (call.asked.HasField("facts") and call.asked.HasField("state")):
        call.context.abort(grpc.StatusCode.FAILED_PRECONDITION, "what was left out is gone")
    return call.reply()


ANSWERS: Final[dict[str, Answer]] = {
    "sound": Call.reply,
    "whole": _whole,
    "hang": _hang,
    "error": lambda call: call.context.abort(grpc.StatusCode.UNKNOWN, "KeyError: 'zone'\n" * 99),
    "garbage": lambda _: b"\xff\xff\xff\xff",
    "nothing": lambda _: b"",
    "empty": lambda call: call.reply([]),
    "missing": lambda call: call.reply(call.rows[1:]),
    "duplicate": lambda call: call.reply([*call.rows, call.rows[0]]),
    "instead": lambda call: call.reply([call.rows[0], *call.rows[:-1]]),
    "foreign": lambda call: call.reply([*call.rows[:-1], FOREIGN]),
    "unasked": lambda call: call.reply([*call.rows[:-1], call.rows[-1] + 1]),
    "older": lambda call: call.reply(version=call.asked.snapshot_version - 1),
    "short": lambda call: call.reply(values=call.values(call.rows[1:])),
    "ragged": lambda call: pb.FilterReply(
        snapshot_version=call.asked.snapshot_version, rows=b"\0\0\0"
    ).SerializeToString(),
    "backwards": lambda call: call.reply(call.rows[::-1]),
    "two": lambda call: call.reply(values=b"\2" * len(call.rows)),
    "nan": lambda call: call.one_score(float("nan")),
    "inf": lambda call: call.one_score(float("inf")),
    "negative": lambda call: call.one_score(-1.0),
    "above": lambda call: call.one_score(100.1),
    "not-applicable": lambda call: pb.ScoreReply(
        snapshot_version=call.asked.snapshot_version, not_applicable=True
    ).SerializeToString(),
    "both": lambda call: call.reply(not_applicable=True),
}
ALL = [pb.CAPABILITY_FILTER, pb.CAPABILITY_SCORE]
HANDS: Final[dict[str, dict[str, Any]]] = {
    "whole": {"capabilities": [*ALL, pb.CAPABILITY_SNAPSHOT_REFERENCES]},
    "small": {"max_message_bytes": 0},
    "filters-only": {"capabilities": [pb.CAPABILITY_FILTER]},
    "named": {"filters": ["zones", "racks"]},
    "later": {"protocol_version": 2},
    "nameless": {"name": ""},
}
DEFAULT_LIMITS: Final = ("small", "liar")
"""Servers that take 4 MiB; `liar` says that it takes more."""
SLOW_TO_GREET: Final = "mute"
NO_SERVICE: Final = "other"
GARBLED: Final = "garbled"
NAMES: Final = (*ANSWERS, *(HANDS.keys() - ANSWERS), "liar", SLOW_TO_GREET, NO_SERVICE, GARBLED)


class Wrong(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """The service, wrong in one way."""

    def __init__(self, name: str) -> None:
        self.name, self.calls = name, 0
        self.kinds: dict[str, Any] = {"Filter": pb.FilterRequest, "Score": pb.ScoreRequest}

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Find the method."""
        method = details.method.removeprefix(f"/{SERVICE}/")
        if self.name == NO_SERVICE:
            return None
        if method == "Handshake":
            return grpc.unary_unary_rpc_method_handler(self._greet)
        return grpc.unary_unary_rpc_method_handler(
            lambda message, context: self._answer(method, message, context)
        )

    def _greet(self, _: bytes, __: grpc.ServicerContext) -> bytes:
        if self.name == SLOW_TO_GREET:
            ENDED.wait(30)
        if self.name == GARBLED:
            return b"\xff"
        reply: dict[str, Any] = {
            "protocol_version": 1,
            "name": self.name,
            "capabilities": ALL,
            "max_message_bytes": 64 << 20,
        }
        return pb.HandshakeReply(**(reply | HANDS.get(self.name, {}))).SerializeToString()

    def _answer(self, kind: str, message: bytes, context: grpc.ServicerContext) -> bytes:
        asked = self.kinds[kind].FromString(message)
        if asked.plugin == "count":
            context.abort(grpc.StatusCode.UNKNOWN, f"{self.calls} calls")
        self.calls += 1
        return ANSWERS.get(self.name, Call.reply)(Call(kind, asked, context))


def main(directory: str) -> None:
    """Serve until the standard input ends."""
    servers = []
    for name in NAMES:
        large = () if name in DEFAULT_LIMITS else (("grpc.max_receive_message_length", 64 << 20),)
        server = grpc.server(ThreadPoolExecutor(64 if name == "hang" else 2), options=large)
        server.add_generic_rpc_handlers((Wrong(name),))
        server.add_insecure_port(f"unix:{Path(directory, name)}.sock")
        server.start()
        servers.append(server)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    ENDED.set()
    for server in servers:
        server.stop(0)


if __name__ == "__main__":
    main(sys.argv[1])
