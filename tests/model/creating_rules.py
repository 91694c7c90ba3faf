"""Creates in flight on one roomy node: Reserved, Bound and Starting count, Running does not."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from tests.model.exploring import Rules, Step, with_part


class Broken(Enum):
    """A rule that a mutant drops."""

    COUNTS_BOUND_ONLY = "a reservation is not a create in flight yet"
    COUNT_IS_REPORTED = "the count is what the node last reported, not the ledger's"
    RESTARTS_IN_PLACE = "the agent restarts a running sandbox without a new reservation"


class Create(NamedTuple):
    """One request on the node."""

    phase: str = "Pending"
    is_confirmable: bool = False


class World(NamedTuple):
    """All requests, and what the node last reported."""

    requests: tuple[Create, ...]
    reported: int = 0


class Creating(NamedTuple):
    """The protocol for a number of requests and a limit."""

    requests: int
    limit: int
    broken: Broken | None = None

    def rules(self) -> Rules[World]:
        """Return it for the search."""
        start = World(tuple(Create() for _ in range(self.requests)))
        return Rules(start, self._steps, self._violation)

    def _fits(self, world: World, index: int) -> bool:
        if self.broken is Broken.COUNT_IS_REPORTED:
            return world.reported < self.limit
        counted = {"Bound", "Starting"}
        if self.broken is not Broken.COUNTS_BOUND_ONLY:
            counted.add("Reserved")
        others = (
            request
            for number, request in enumerate(world.requests)
            if number != index and request.phase in counted
        )
        return sum(1 for _ in others) < self.limit

    def _steps(self, world: World) -> Iterator[Step[World]]:
        for index, request in enumerate(world.requests):
            for label, changed in self._of_request(world, index, request):
                requests = with_part(world.requests, index, changed)
                yield f"q{index} {label}", world._replace(requests=requests)
        if self.broken is Broken.COUNT_IS_REPORTED:
            yield "the node reports", world._replace(reported=_in_flight(world))

    def _of_request(
        self, world: World, index: int, request: Create
    ) -> Iterator[tuple[str, Create]]:
        match request.phase:
            case "Pending":
                yield "is reserved", Create("Reserved")
            case "Reserved":
                if not request.is_confirmable and self._fits(world, index):
                    yield "is judged: below the limit", Create("Reserved", True)
                if request.is_confirmable:
                    yield "is confirmed", Create("Bound")
                yield "is undone", Create()
            case "Bound":
                yield "is claimed by the agent", Create("Starting")
                yield "is given up or refused", Create()
            case "Starting":
                yield "runs", Create("Running")
                yield "is refused", Create()
            case _:
                yield "finishes", Create()
                if self.broken is Broken.RESTARTS_IN_PLACE:
                    yield "is restarted in place", Create("Starting")

    def _violation(self, world: World) -> str:
        flying = _in_flight(world)
        return f"{flying} creates in flight, limit {self.limit}" if flying > self.limit else ""


def _in_flight(world: World) -> int:
    return sum(request.phase in {"Bound", "Starting"} for request in world.requests)
