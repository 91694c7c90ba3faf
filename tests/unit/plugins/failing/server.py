"""A plugin server that is wrong as its requests tell it to be: python server.py SOCKET."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np

from cubesched.plugins.rpc import plugin_pb2 as pb

SERVICE = "cubesched.schedulerplugin.v1.SchedulerPlugin"
NUMBERS = {"NAN": float("nan"), "NEGATIVE": -1.0, "ABOVE": 100.1, "INF": float("inf")}


def shake_hands(_request: bytes, _context: grpc.ServicerContext) -> bytes:
    reply = pb.HandshakeReply(
        protocol_version=1,
        name="wrong",
        capabilities=[pb.CAPABILITY_FILTER, pb.CAPABILITY_SCORE],
    )
    return bytes(reply.SerializeToString())


def filter_nodes(message: bytes, context: grpc.ServicerContext) -> bytes:
    request = pb.FilterRequest.FromString(message)
    fault = request.request.labels["fault"]
    fail_or_hang(fault, context)
    version, rows = answered_about(request, fault)
    if fault == "NOT_APPLICABLE":
        return not_applicable(version)
    if fault in NUMBERS:  # doubles where flags belong
        keep = np.where(rows == 1, NUMBERS[fault], 50.0).tobytes()
    else:
        keep = (rows < 3).astype("u1").tobytes()
    reply = pb.FilterReply(snapshot_version=version, rows=rows.tobytes(), keep=keep)
    return bytes(reply.SerializeToString())


def score_nodes(message: bytes, context: grpc.ServicerContext) -> bytes:
    request = pb.ScoreRequest.FromString(message)
    fault = request.request.labels["fault"]
    fail_or_hang(fault, context)
    version, rows = answered_about(request, fault)
    if fault == "NOT_APPLICABLE":
        return not_applicable(version)
    scores = np.where(rows == 1, NUMBERS.get(fault, 40.0), 50.0)
    reply = pb.ScoreReply(snapshot_version=version, rows=rows.tobytes(), scores=scores.tobytes())
    return bytes(reply.SerializeToString())


def fail_or_hang(fault: str, context: grpc.ServicerContext) -> None:
    if fault == "ON_A_NODE":
        raise KeyError("n2")
    if fault == "ON_THE_CALL":
        context.abort(grpc.StatusCode.INTERNAL, "the inventory is away")
    while fault == "TIMEOUT" and context.is_active():
        time.sleep(0.01)


def answered_about(request: Any, fault: str) -> tuple[int, np.ndarray[Any, Any]]:
    """Return the version and the rows that the answer is about."""
    rows = np.frombuffer(request.rows, "<u4")
    wrong = {
        "EMPTY": rows[:0],
        "MISSING": rows[:-1],
        "DUPLICATE": np.append(rows, rows[1]),
        "FOREIGN": np.append(rows[:-1], 9),
    }
    version = request.snapshot_version - (fault == "WRONG_VERSION")
    return version, wrong.get(fault, rows).astype("<u4")


def not_applicable(version: int) -> bytes:
    reply = pb.ScoreReply(snapshot_version=version, not_applicable=True)
    return bytes(reply.SerializeToString())


def serve(socket: str) -> None:
    server = grpc.server(ThreadPoolExecutor(8))
    methods: dict[str, Callable[[bytes, grpc.ServicerContext], bytes]] = {
        "Handshake": shake_hands,
        "Filter": filter_nodes,
        "Score": score_nodes,
    }
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(answer) for name, answer in methods.items()
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    server.wait_for_termination()


if __name__ == "__main__":
    serve(sys.argv[1])
