"""The parts of snapshots that a server was sent lately, so that they need not be sent again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, Generic, TypeVar

from cubesched.plugins.rpc import plugin_pb2 as pb
from cubesched.plugins.rpc.fleetview import Facts, Fleet

MOST_FACTS: Final = 8
MOST_STATES: Final = 32
"""Of all clients together."""

T = TypeVar("T")
Question = pb.FilterRequest | pb.ScoreRequest


class NotHeld(Exception):
    """What a call leaves out is not here any more."""


class Held:
    """By client and version; may be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._facts: _Latest[Facts] = _Latest(MOST_FACTS)
        self._states: _Latest[pb.State] = _Latest(MOST_STATES)

    def fleet(self, question: Question) -> Fleet:
        """Return the fleet that a call is about; raises NotHeld."""
        with self._lock:
            state = self._state(question)
            return Fleet(self._facts_of(question, state), state, question.request.template_id)

    def _state(self, question: Question) -> pb.State:
        key = question.client, question.snapshot_version
        if question.HasField("state"):
            self._states.put(key, question.state)
        return self._states.get(key)

    def _facts_of(self, question: Question, state: pb.State) -> Facts:
        key = question.client, state.facts_version
        if question.HasField("facts") and key not in self._facts:
            self._facts.put(key, Facts(question.facts))
        return self._facts.get(key)


class _Latest(Generic[T]):
    """The values that were used last, so many of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[tuple[str, int], T] = OrderedDict()

    def __contains__(self, key: tuple[str, int]) -> bool:
        return key in self._values

    def put(self, key: tuple[str, int], value: T) -> None:
        self._values[key] = value
        if len(self._values) > self._most:
            self._values.popitem(last=False)

    def get(self, key: tuple[str, int]) -> T:
        if key not in self._values:
            raise NotHeld
        self._values.move_to_end(key)
        return self._values[key]
