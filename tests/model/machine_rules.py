"""Agents and machines: what runs, as opposed to what the API objects say.

An agent acts on `Bound`, and on what is reserved for it to confirm; it claims by an acknowledged
conditional write to `Starting`, starts when what really runs there plus this fits, under a name
that exists once; it stops, then writes.
What is evicted counts until its agent has stopped it and has given it back.
Between a claim and the start any time may pass, also a crash of the agent.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import product
from typing import NamedTuple

from tests.model.exploring import Rules, Step, with_part

COUNTED = frozenset({"Reserved", "Bound", "Starting", "Running", "Evicting"})
CONFIRMED = COUNTED - {"Reserved"}


class Broken(Enum):
    """A rule that a mutant drops."""

    NO_CLAIM = "the agent starts what it sees Bound, without a claim"
    STARTS_BEFORE_ACKNOWLEDGED = "the agent starts before its claim is acknowledged"
    TAKES_BACK_CLAIMED = "the operator gives up a claimed request of a silent node"
    STARTS_AGAIN_AFTER_CRASH = "a restarted agent starts again what it does not remember"
    WRITES_BEFORE_STOPPING = "the agent writes the end before the sandbox is gone"
    NO_ROOM_CHECK = "the agent starts without asking what really runs"
    EVICTS_STRAIGHT_TO_PENDING = "the operator gives up what runs, and tells the agent so"
    FORGETS_THE_EVICTED = "what is being evicted does not count any more"
    GIVES_BACK_BEFORE_STOPPING = "the agent gives back what is evicted before it is stopped"
    JUDGES_AN_INCOMPLETE_LIST = "the agent judges while its list has not shown one request yet"
    JUDGES_BY_THE_SPEC = "the agent judges by a spec that has changed, not by what was admitted"


OF_CONFIRMING_AGENTS = (
    Broken.STARTS_BEFORE_ACKNOWLEDGED,
    Broken.NO_ROOM_CHECK,
    Broken.TAKES_BACK_CLAIMED,
    Broken.JUDGES_AN_INCOMPLETE_LIST,
    Broken.JUDGES_BY_THE_SPEC,
)
"""The rules without which agents cannot confirm."""


class Sandbox(NamedTuple):
    """One request, who is about to start it, and where it really runs."""

    phase: str = "Pending"
    node: int = -1
    is_agents: bool = False
    """Its node's agent confirms it, by its claim; else anybody but the agent does."""
    is_confirmable: bool = False
    starters: frozenset[int] = frozenset()
    """Nodes whose agent may start it at any time from now on."""
    running: tuple[int, ...] = ()
    """How often it runs on each machine."""

    def left(self) -> Sandbox:
        """Return it without a place."""
        return self._replace(phase="Pending", node=-1, is_agents=False, is_confirmable=False)

    def started_by(self, node: int) -> Sandbox:
        """Return it with one more agent about to start it."""
        return self._replace(starters=self.starters | {node})

    def runs(self, node: int, times: int) -> Sandbox:
        """Return it running `times` times on `node`."""
        return self._replace(running=with_part(self.running, node, times))


World = tuple[Sandbox, ...]
Change = tuple[str, Sandbox]


class Machines(NamedTuple):
    """The protocol for requests of given sizes on equal nodes with one agent each."""

    sizes: tuple[int, ...]
    nodes: int
    capacity: int
    broken: Broken | None = None
    agents: tuple[bool, ...] = (False,)
    """Whether a reservation is the agent's to confirm; both where replicas differ."""

    def rules(self) -> Rules[World]:
        """Return it for the search."""
        start = tuple(Sandbox(running=(0,) * self.nodes) for _ in self.sizes)
        return Rules(start, self._steps, self._violation)

    def _fits(self, world: World, index: int, node: int) -> bool:
        forgets = self.broken is Broken.FORGETS_THE_EVICTED
        counted = COUNTED - {"Evicting"} if forgets else COUNTED
        others = (
            size
            for number, (size, sandbox) in enumerate(zip(self.sizes, world, strict=True))
            if number != index and sandbox.node == node and sandbox.phase in counted
        )
        return sum(others) + self.sizes[index] <= self.capacity

    def _may_pass(self, world: World, index: int, node: int) -> bool:
        """Tell whether some evaluator says yes."""
        if self._fits(world, index, node):
            return True
        if self.broken is Broken.JUDGES_BY_THE_SPEC:
            return world[index].is_agents
        if self.broken is not Broken.JUDGES_AN_INCOMPLETE_LIST or not world[index].is_agents:
            return False
        unseen = (with_part(world, other, Sandbox()) for other in range(len(world)))
        return any(self._fits(rest, index, node) for rest in unseen if rest[index] is world[index])

    def _on_machine(self, world: World, node: int) -> int:
        pairs = zip(self.sizes, world, strict=True)
        return sum(size * sandbox.running[node] for size, sandbox in pairs)

    def _steps(self, world: World) -> Iterator[Step[World]]:
        for index, sandbox in enumerate(world):
            changes = (
                *self._of_operator(world, index, sandbox),
                *self._of_agent(world, index, sandbox),
                *self._of_user(sandbox),
            )
            for label, changed in changes:
                yield f"q{index} {label}", with_part(world, index, changed)

    def _of_operator(self, world: World, index: int, sandbox: Sandbox) -> Iterator[Change]:
        match sandbox.phase:
            case "Pending":
                for node, is_agents in product(range(self.nodes), self.agents):
                    reserved = sandbox._replace(phase="Reserved", node=node, is_agents=is_agents)
                    whom = f"n{node}'s agent" if is_agents else f"n{node}"
                    yield f"is reserved on {whom}", reserved
            case "Reserved":
                if not sandbox.is_confirmable and self._may_pass(world, index, sandbox.node):
                    yield "is judged: fits", self._judged(sandbox)
                if sandbox.is_confirmable and not sandbox.is_agents:
                    bound = sandbox._replace(phase="Bound", is_confirmable=False)
                    yield f"is bound to n{sandbox.node}", bound
                yield "is undone", sandbox.left()
            case "Bound":
                yield f"is given up, n{sandbox.node} being silent", sandbox.left()
            case "Starting" if self.broken is Broken.TAKES_BACK_CLAIMED:
                yield f"is given up though claimed, n{sandbox.node} being silent", sandbox.left()
            case "Running" if self.broken is Broken.EVICTS_STRAIGHT_TO_PENDING:
                yield f"is taken off n{sandbox.node} while it runs", sandbox.left()
            case "Running":
                yield f"is to leave n{sandbox.node}", sandbox._replace(phase="Evicting")
            case _:
                pass

    def _judged(self, sandbox: Sandbox) -> Sandbox:
        return sandbox._replace(is_confirmable=True)

    def _of_agent(self, world: World, index: int, sandbox: Sandbox) -> Iterator[Change]:
        node = sandbox.node
        is_confirmed_here = sandbox.is_agents and sandbox.is_confirmable
        if sandbox.phase == "Bound" or (sandbox.phase == "Reserved" and is_confirmed_here):
            yield from self._claims(sandbox, node)
        for starter in sorted(sandbox.starters):
            room = self._on_machine(world, starter) + self.sizes[index] <= self.capacity
            if room or self.broken is Broken.NO_ROOM_CHECK:
                yield f"is started by n{starter}", self._started(sandbox, starter)
        if sandbox.phase in {"Running", "Evicting"}:
            yield from self._ends(sandbox, node)
        if sandbox.phase in {"Pending", "Deleted"}:
            for machine, times in enumerate(sandbox.running):
                if times:
                    yield f"is removed by n{machine} as an orphan", sandbox.runs(machine, 0)

    def _ends(self, sandbox: Sandbox, node: int) -> Iterator[Change]:
        yield f"is stopped on n{node}, then written", sandbox.runs(node, 0).left()
        if sandbox.phase == "Evicting":
            if self.broken is Broken.GIVES_BACK_BEFORE_STOPPING:
                yield f"is given back by n{node} before it is stopped", sandbox.left()
            return
        if self.broken is Broken.WRITES_BEFORE_STOPPING:
            yield "is written Succeeded before it is stopped", sandbox.left()
        if self.broken is Broken.STARTS_AGAIN_AFTER_CRASH and sandbox.running[node] == 1:
            yield f"is started again by n{node} after a crash", sandbox.runs(node, 2)

    def _claims(self, sandbox: Sandbox, node: int) -> Iterator[Change]:
        if self.broken is Broken.NO_CLAIM:
            yield f"is seen Bound by n{node}", sandbox.started_by(node)
            return
        claimed = sandbox._replace(phase="Starting", is_confirmable=False)
        yield f"is claimed by n{node}, acknowledged", claimed.started_by(node)
        if self.broken is Broken.STARTS_BEFORE_ACKNOWLEDGED:
            yield f"is being claimed by n{node}, which does not wait", sandbox.started_by(node)

    def _started(self, sandbox: Sandbox, node: int) -> Sandbox:
        rest = sandbox._replace(starters=sandbox.starters - {node})
        if sandbox.running[node]:
            return rest
        is_claim = sandbox.node == node and (
            sandbox.phase == "Starting"
            or (sandbox.phase == "Bound" and self.broken is Broken.NO_CLAIM)
        )
        started = rest.runs(node, 1)
        return started._replace(phase="Running") if is_claim else started

    def _of_user(self, sandbox: Sandbox) -> Iterator[Change]:
        if sandbox.phase in CONFIRMED:
            gone = sandbox._replace(phase="Deleted", node=-1, is_confirmable=False)
            yield "is deleted by its user", gone

    def _violation(self, world: World) -> str:
        for node in range(self.nodes):
            confirmed = sum(
                size
                for size, sandbox in zip(self.sizes, world, strict=True)
                if sandbox.node == node and sandbox.phase in CONFIRMED
            )
            running = self._on_machine(world, node)
            if max(confirmed, running) > self.capacity:
                return f"n{node}: {confirmed} confirmed, {running} running, of {self.capacity}"
        for index, sandbox in enumerate(world):
            if sum(sandbox.running) > 1:
                return f"q{index} runs {sum(sandbox.running)} times"
        return ""
