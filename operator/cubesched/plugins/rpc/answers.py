"""What plugin servers answer, checked: every row once, no other, each with a value.

Rows are part of the answer, so that a plugin that mixes them up is caught and not believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray

from cubesched.core.errors import PluginContractBreach
from cubesched.core.pipeline import NOT_APPLICABLE, NotApplicable
from cubesched.core.snapshot import Bools, Floats, Ints, Snapshot
from cubesched.plugins.rpc import columns
from cubesched.plugins.rpc.plugin_pb2 import FilterReply, ScoreReply

ReplyT = TypeVar("ReplyT", bound=Message)


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked: a plugin, about these rows of a fleet."""

    plugin: str
    fleet: Snapshot
    rows: Ints

    def mask(self, answer: bytes) -> Bools:
        """Return one bool for each of `rows`; raises PluginContractBreach."""
        reply = self._parsed(FilterReply, answer)
        self._check_version(reply.snapshot_version)
        flags = self._in_order(reply.rows, reply.keep, columns.FLAGS)
        if flags.max(initial=0) > 1:
            row = int(np.argmax(flags > 1))
            raise self._breach(f"kept {self._node(self.rows[row])} by {flags[row]}, not 0 or 1")
        return flags.astype(np.bool_)

    def scores(self, answer: bytes) -> Floats | NotApplicable:
        """Return one score for each of `rows`; raises PluginContractBreach."""
        reply = self._parsed(ScoreReply, answer)
        self._check_version(reply.snapshot_version)
        if reply.not_applicable:
            if reply.rows or reply.scores:
                raise self._breach("answered scores and that they do not apply")
            return NOT_APPLICABLE
        scores: Floats = self._in_order(reply.rows, reply.scores, columns.DOUBLES)
        wrong = np.flatnonzero(~((scores >= 0.0) & (scores <= 100.0)))
        if wrong.size:
            first = wrong.item(0)
            node = self._node(self.rows[first])
            raise self._breach(f"score {scores[first]:g} of {node} is not within 0-100")
        return scores

    def _parsed(self, kind: type[ReplyT], answer: bytes) -> ReplyT:
        try:
            return kind.FromString(answer)
        except DecodeError as error:
            raise self._breach(
                f"answered {len(answer)} bytes that are no {kind.__name__}"
            ) from error

    def _check_version(self, version: int) -> None:
        if version != self.fleet.version:
            raise self._breach(
                f"answered from snapshot version {version}, asked on {self.fleet.version}"
            )

    def _in_order(self, rows: bytes, values: bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the values in the order of the rows asked about."""
        answered = self._column("rows", rows, columns.CODES)
        column = self._column("values", values, dtype)
        if answered.size != column.size:
            raise self._breach(f"answered {column.size} values for {answered.size} rows")
        if np.array_equal(answered, self.rows):
            return column
        order = np.argsort(answered, kind="stable")
        if not np.array_equal(answered[order], self.rows):
            raise self._breach(self._what_is_wrong(answered))
        return column[order]

    def _column(self, what: str, column: bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
        if len(column) % dtype.itemsize:
            raise self._breach(
                f"answered {len(column)} bytes of {what}, {dtype.itemsize} bytes each"
            )
        return np.frombuffer(column, dtype)

    def _what_is_wrong(self, answered: NDArray[Any]) -> str:
        """Name a row that was made up, repeated or left out."""
        foreign = np.setdiff1d(answered, self.rows)
        if foreign.size:
            return f"answered about {self._node(foreign[0])}, which it was not asked about"
        rows, times = np.unique(answered, return_counts=True)
        if times.max(initial=0) > 1:
            return f"answered {times.max()} times about {self._node(rows[times.argmax()])}"
        missing = np.setdiff1d(self.rows, answered)
        more = f" and {missing.size - 1} more" if missing.size > 1 else ""
        return f"did not answer about {self._node(missing[0])}{more}"

    def _node(self, row: int | np.integer[Any]) -> str:
        return self.fleet.names[int(row)] if row < len(self.fleet) else f"row {row}"

    def _breach(self, message: str) -> PluginContractBreach:
        return PluginContractBreach(self.plugin, message)
