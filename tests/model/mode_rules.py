"""Modes of confirmation that change while requests come and go, on one node.

A replica runs one revision of the policy, shows a revision in its Lease, and remembers what it last
read of all Leases. Under `none` it binds directly, by whatever it has seen; else anybody confirms
what fits beside everything that counts, directly bound or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from tests.model.exploring import Rules, Step, with_part


class Broken(Enum):
    """A rule that a mutant drops."""

    ADOPTS_ALONE = "a replica binds directly before all Leases show the revision that says so"
    SHOWS_TOO_EARLY = "a Lease shows a revision before its replica runs it"
    BINDS_UNMARKED = "a direct binding does not say that nobody confirmed it"


class Replica(NamedTuple):
    """One replica; revisions are positions in the sequence of modes."""

    runs: int = 0
    shows: int = 0
    saw: tuple[int, ...] = ()
    """What each Lease showed when this replica last looked."""


class Request(NamedTuple):
    """One request on the one node."""

    phase: str = "Pending"
    is_direct: bool = False
    is_confirmable: bool = False
    """An exact yes-verdict for this reservation is under way."""
    is_being_bound: bool = False
    """A direct binding is under way that was made from this version."""


class World(NamedTuple):
    """Everything at one moment."""

    asked: int
    """The revision that the server holds."""
    replicas: tuple[Replica, ...]
    requests: tuple[Request, ...]
    overlap: str = ""
    """A direct binding was decided while another replica still ran an earlier revision."""


class Modes(NamedTuple):
    """The protocol for a sequence of modes, `True` for `none`."""

    sizes: tuple[int, ...]
    capacity: int
    replicas: int = 2
    modes: tuple[bool, ...] = (False, True, False)
    broken: Broken | None = None

    def rules(self) -> Rules[World]:
        """Return it for the search."""
        replica = Replica(saw=(0,) * self.replicas)
        start = World(0, (replica,) * self.replicas, (Request(),) * len(self.sizes))
        return Rules(start, self._steps, self._violation)

    def _fits(self, world: World, index: int) -> bool:
        others = (
            size
            for number, size in enumerate(self.sizes)
            if number != index and world.requests[number].phase != "Pending"
        )
        return sum(others) + self.sizes[index] <= self.capacity

    def _steps(self, world: World) -> Iterator[Step[World]]:
        if world.asked + 1 < len(self.modes):
            yield "another mode is asked for", world._replace(asked=world.asked + 1)
        for number, replica in enumerate(world.replicas):
            for label, changed in self._of_replica(world, replica):
                replicas = with_part(world.replicas, number, changed)
                yield f"r{number} {label}", world._replace(replicas=replicas)
        for index, request in enumerate(world.requests):
            for label, after in self._of_request(world, index, request):
                requests = with_part(world.requests, index, after)
                yield f"q{index} {label}", world._replace(requests=requests)
            yield from self._direct_decisions(world, index, request)

    def _of_replica(self, world: World, replica: Replica) -> Iterator[tuple[str, Replica]]:
        if replica.runs < world.asked:
            yield "runs the next revision", replica._replace(runs=replica.runs + 1)
        newest = world.asked if self.broken is Broken.SHOWS_TOO_EARLY else replica.runs
        if replica.shows < newest:
            yield "renews its Lease", replica._replace(shows=newest)
        saw = tuple(other.shows for other in world.replicas)
        if replica.saw != saw:
            yield "reads all Leases", replica._replace(saw=saw)

    def _binds_directly(self, replica: Replica) -> bool:
        all_run = set(replica.saw) == {replica.runs}
        return self.modes[replica.runs] and (all_run or self.broken is Broken.ADOPTS_ALONE)

    def _direct_decisions(
        self, world: World, index: int, request: Request
    ) -> Iterator[Step[World]]:
        """A direct binding is decided by what was seen at any time: it may fit or not."""
        if request.phase != "Pending" or request.is_being_bound:
            return
        requests = with_part(world.requests, index, request._replace(is_being_bound=True))
        for number, replica in enumerate(world.replicas):
            if self._binds_directly(replica):
                late = [r for r in world.replicas if r.runs < replica.runs]
                text = f"r{number} binds directly while another runs an earlier revision"
                after = world._replace(requests=requests, overlap=text if late else world.overlap)
                yield f"q{index} is to be bound directly by r{number}", after

    def _of_request(
        self, world: World, index: int, request: Request
    ) -> Iterator[tuple[str, Request]]:
        if request.phase == "Pending":
            yield "is reserved", Request("Reserved")
            if request.is_being_bound:
                is_marked = self.broken is not Broken.BINDS_UNMARKED
                yield "is bound directly", Request("Bound", is_direct=is_marked)
        elif request.phase == "Reserved":
            if not request.is_confirmable and self._fits(world, index):
                yield "is judged: fits", request._replace(is_confirmable=True)
            if request.is_confirmable:
                yield "is confirmed", Request("Bound")
            yield "is undone", Request()
        else:
            yield "finishes", Request()

    def _violation(self, world: World) -> str:
        """What was confirmed fits at any time, so all of it does once nothing direct is left."""
        confirmed = sum(
            size
            for size, request in zip(self.sizes, world.requests, strict=True)
            if request.phase == "Bound" and not request.is_direct
        )
        if confirmed > self.capacity:
            return f"{confirmed} confirmed of {self.capacity}"
        return world.overlap
