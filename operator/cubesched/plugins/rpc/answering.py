"""A server's answers: what an author's functions return, checked and put into messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import grpc
import numpy as np
from numpy.typing import NDArray

from cubesched.core.pipeline import NotApplicable
from cubesched.core.snapshot import Bools, Floats, Ints
from cubesched.plugins.python.requestview import Request
from cubesched.plugins.python.told import told
from cubesched.plugins.rpc import columns
from cubesched.plugins.rpc import plugin_pb2 as pb
from cubesched.plugins.rpc.fleetview import Fleet
from cubesched.plugins.rpc.held import Held, NotHeld, Question
from cubesched.plugins.rpc.wire import ENCODING, MAX_MESSAGE_BYTES, PROTOCOL_VERSION

_LOG = logging.getLogger(__name__)
FilterFunction = Callable[[Fleet, Request], Bools]
ScoreFunction = Callable[[Fleet, Request], Floats | Ints | NotApplicable]
FunctionT = TypeVar("FunctionT", FilterFunction, ScoreFunction)


class Refused(Exception):
    """A call cannot be answered; `code` is gRPC's."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Answering:
    """The three methods of the service. They run in any thread."""

    def __init__(
        self,
        name: str,
        filters: Mapping[str, FilterFunction],
        scores: Mapping[str, ScoreFunction],
    ) -> None:
        self._name, self._filters, self._scores = name, filters, scores
        self._held = Held()

    def handshake(self, _: pb.HandshakeRequest, __: grpc.ServicerContext) -> pb.HandshakeReply:
        """Say who answers and what it can do."""
        capabilities = [pb.CAPABILITY_SNAPSHOT_REFERENCES]
        if self._filters:
            capabilities.append(pb.CAPABILITY_FILTER)
        if self._scores:
            capabilities.append(pb.CAPABILITY_SCORE)
        return pb.HandshakeReply(
            protocol_version=PROTOCOL_VERSION,
            name=self._name,
            capabilities=capabilities,
            filters=_names(self._filters),
            scores=_names(self._scores),
            max_message_bytes=MAX_MESSAGE_BYTES,
        )

    def filter(self, asked: pb.FilterRequest, context: grpc.ServicerContext) -> pb.FilterReply:
        """Ask the filter."""
        try:
            function = _function(self._filters, "filter", asked.plugin)
            fleet = self._fleet(asked)
            mask = _column(function(fleet, _request(asked.request)), len(fleet), "b")
        except Exception as error:  # anybody's code
            _abort(context, error)
        keep = mask[_rows(asked)].astype(columns.FLAGS)
        return pb.FilterReply(
            snapshot_version=asked.snapshot_version, rows=asked.rows, keep=keep.tobytes()
        )

    def score(self, asked: pb.ScoreRequest, context: grpc.ServicerContext) -> pb.ScoreReply:
        """Ask the score."""
        try:
            function = _function(self._scores, "score", asked.plugin)
            fleet = self._fleet(asked)
            answer = function(fleet, _request(asked.request))
            if isinstance(answer, NotApplicable):
                return pb.ScoreReply(snapshot_version=asked.snapshot_version, not_applicable=True)
            column = _column(answer, len(fleet), "fiu")
        except Exception as error:  # anybody's code
            _abort(context, error)
        scores = column[_rows(asked)].astype(columns.DOUBLES)
        return pb.ScoreReply(
            snapshot_version=asked.snapshot_version, rows=asked.rows, scores=scores.tobytes()
        )

    def _fleet(self, asked: Question) -> Fleet:
        if asked.HasField("state") and asked.state.encoding != ENCODING:
            message = f"cannot read encoding {asked.state.encoding}, only {ENCODING}"
            raise Refused(grpc.StatusCode.UNIMPLEMENTED, message)
        try:
            return self._held.fleet(asked)
        except NotHeld:
            message = f"snapshot {asked.snapshot_version} is not held any more"
            raise Refused(grpc.StatusCode.FAILED_PRECONDITION, message) from None


def _names(functions: Mapping[str, Any]) -> list[str]:
    return [] if "" in functions else sorted(functions)


def _function(functions: Mapping[str, FunctionT], kind: str, name: str) -> FunctionT:
    function = functions.get(name) or functions.get("")
    if function is None:
        raise Refused(grpc.StatusCode.NOT_FOUND, f"there is no {kind} {name!r} here")
    return function


def _request(message: pb.Request) -> Request:
    return Request(
        instance_type=message.instance_type,
        template_id=message.template_id,
        cpu_millis=message.cpu_millis,
        memory_bytes=message.memory_bytes,
        system_disk_size=message.system_disk_size,
        priority=message.priority,
        labels=MappingProxyType(dict(message.labels)),
    )


def _rows(asked: Question) -> NDArray[np.uint32]:
    return np.frombuffer(asked.rows, columns.CODES)


def _column(answer: object, size: int, kinds: str) -> NDArray[Any]:
    """Return an author's column, if it is one; `kinds` are NumPy's letters for its type."""
    if not isinstance(answer, np.ndarray):
        raise TypeError(f"returned {type(answer).__name__}, not a NumPy array")
    if answer.shape != (size,):
        raise TypeError(f"returned an array of shape {answer.shape} for {size} nodes")
    if answer.dtype.kind not in kinds:
        raise TypeError(f"returned {answer.dtype}, not {'bools' if kinds == 'b' else 'numbers'}")
    return answer


def _abort(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    """End the call with an error that the operator shows to people."""
    if isinstance(error, Refused):
        context.abort(error.code, str(error))
    _LOG.error("a call failed", exc_info=error)
    context.abort(grpc.StatusCode.UNKNOWN, told(error))
    raise error  # abort does not return
