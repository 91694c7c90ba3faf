"""Reserve and confirm, as small rules that can be searched to the end.

An evaluation at an exact prefix equals an evaluation of the server's state at the moment the
server stood there, with a write that lands any time later, or never. So one request is its phase,
its node, and whether a yes-verdict for its *current* reservation id is under way. Lag, crashes,
paused writers, new lists, take-overs and lost writes are all inside; a no-verdict is an undo,
which may land at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from tests.model.exploring import Rules, Step, with_part


class Broken(Enum):
    """A rule of the protocol that a mutant drops."""

    COUNTS_BOUND_ONLY = "reserved requests do not count until they are bound"
    CONFIRMS_WITHOUT_ID = "a confirmation lands on whatever reservation it meets"
    MOVE_KEEPS_ID = "the direct move to another node keeps the reservation's id"
    JUDGES_BEFORE_MEETING = "the writer judges what it knew when it wrote, not at the meeting point"
    INEXACT_PREFIX = "an evaluation may not know of one request (skipped, or lost between pages)"


class Request(NamedTuple):
    """One SandboxRequest."""

    phase: str = "Pending"
    node: int = -1
    is_confirmable: bool = False
    """A yes-verdict for this reservation is under way."""


Requests = tuple[Request, ...]


class Placement(NamedTuple):
    """The protocol for requests of given sizes on equal nodes."""

    sizes: tuple[int, ...]
    nodes: int
    capacity: int
    broken: Broken | None = None

    def rules(self) -> Rules[Requests]:
        """Return it for the search."""
        start = tuple(Request() for _ in self.sizes)
        return Rules(start, self._steps, self._violation)

    def _fits(self, state: Requests, index: int, node: int) -> bool:
        counted = {"Bound"} if self.broken is Broken.COUNTS_BOUND_ONLY else {"Reserved", "Bound"}
        others = (
            size
            for number, (size, request) in enumerate(zip(self.sizes, state, strict=True))
            if number != index and request.node == node and request.phase in counted
        )
        return sum(others) + self.sizes[index] <= self.capacity

    def _may_pass(self, state: Requests, index: int, node: int) -> bool:
        """Tell whether some evaluator says yes."""
        if self._fits(state, index, node):
            return True
        if self.broken is not Broken.INEXACT_PREFIX:
            return False
        return any(
            self._fits(with_part(state, unseen, Request()), index, node)
            for unseen in range(len(state))
            if unseen != index
        )

    def _steps(self, state: Requests) -> Iterator[Step[Requests]]:
        for index, request in enumerate(state):
            for label, changed in self._of_request(state, index, request):
                yield f"q{index} {label}", with_part(state, index, changed)

    def _of_request(
        self, state: Requests, index: int, request: Request
    ) -> Iterator[tuple[str, Request]]:
        kept = request.is_confirmable and self.broken is Broken.CONFIRMS_WITHOUT_ID
        if request.phase == "Pending":
            for node in range(self.nodes):
                yield f"is reserved on n{node}", Request("Reserved", node, kept)
                if self.broken is Broken.JUDGES_BEFORE_MEETING:
                    yield from self._judged_early(state, index, node)
        elif request.phase == "Reserved":
            node = request.node
            if not request.is_confirmable and self._may_pass(state, index, node):
                yield f"is judged on n{node}: fits", request._replace(is_confirmable=True)
            if request.is_confirmable:
                stays = self.broken is Broken.CONFIRMS_WITHOUT_ID
                yield f"is confirmed on n{node}", Request("Bound", node, stays)
            yield from self._moves(request)
            yield "is undone", Request(is_confirmable=kept)
        elif request.phase == "Planned":
            yield "has its reservation written", Request("Reserved", request.node, True)
        else:
            yield "finishes or is given up", Request(is_confirmable=kept)

    def _judged_early(
        self, state: Requests, index: int, node: int
    ) -> Iterator[tuple[str, Request]]:
        if self._fits(state, index, node):
            yield f"is judged for n{node} before its reservation stands", Request("Planned", node)

    def _moves(self, request: Request) -> Iterator[tuple[str, Request]]:
        keeps = self.broken in {Broken.MOVE_KEEPS_ID, Broken.CONFIRMS_WITHOUT_ID}
        for node in range(self.nodes):
            if node != request.node:
                verdict = request.is_confirmable and keeps
                yield f"moves straight to n{node}", Request("Reserved", node, verdict)

    def _violation(self, state: Requests) -> str:
        for node in range(self.nodes):
            used = sum(
                size
                for size, request in zip(self.sizes, state, strict=True)
                if request.phase == "Bound" and request.node == node
            )
            if used > self.capacity:
                return f"n{node} holds {used} of {self.capacity}"
        return ""
