"""Pause and resume on one node: what is counted, what is confirmed, and what its machine holds.

A paused request counts less than it was admitted with, from the write by which its agent says so,
and that comes after the machine has let go. Resuming is a reservation, counted in full, with a
verdict of its own; the agent lets the sandbox run only after that, and if the machine has the room.
As in `placement_rules`, a verdict may be given by anybody and lands any time later, or never.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from tests.model.exploring import Rules, Step, with_part

FULL, LESS, NONE = "full", "less", "none"
IN_FULL = frozenset({"Reserved", "Bound", "Running", "Resuming", "To resume"})


class Broken(Enum):
    """A rule that a mutant drops."""

    RESUME_KEEPS_ID = "a resume keeps the reservation's id, so an old verdict may confirm it"
    RESUME_COUNTS_LESS = "what is reserved to be resumed counts as while it is paused"
    NO_RESERVATION = "the agent resumes what is paused when its machine has the room"
    WRITES_BEFORE_LETTING_GO = "Paused is written before the machine has let go"
    NO_ENTITLEMENT = "the agent hands on what a pause has freed before that is written"
    NO_ROOM_CHECK = "the agent resumes without asking what really runs"


class Sandbox(NamedTuple):
    """One request, and what its machine holds of it."""

    phase: str = "Pending"
    is_confirmable: bool = False
    """A yes-verdict for its current reservation, by id, is under way."""
    held: str = NONE

    def to(self, phase: str, *, held: str = "", kept: bool = False) -> Sandbox:
        """Return it in another phase; a verdict is kept only by mistake."""
        return Sandbox(phase, kept and self.is_confirmable, held or self.held)


Sandboxes = tuple[Sandbox, ...]
Change = tuple[str, Sandbox]


class Pausing(NamedTuple):
    """The protocol for requests of given sizes, which keep `less` each while they are paused."""

    sizes: tuple[int, ...]
    less: int
    capacity: int
    broken: Broken | None = None

    def rules(self) -> Rules[Sandboxes]:
        """Return it for the search."""
        start = tuple(Sandbox() for _ in self.sizes)
        return Rules(start, self._steps, self._violation)

    def _counted(self, index: int, sandbox: Sandbox) -> int:
        if sandbox.phase == "Resuming" and self.broken is Broken.RESUME_COUNTS_LESS:
            return self.less
        if sandbox.phase in IN_FULL:
            return self.sizes[index]
        return self.less if sandbox.phase == "Paused" else 0

    def _fits(self, state: Sandboxes) -> bool:
        """Tell whether all that counts fits; whoever is judged is among it."""
        return sum(self._counted(i, sandbox) for i, sandbox in enumerate(state)) <= self.capacity

    def _on_machine(self, state: Sandboxes) -> int:
        takes = {NONE: 0, LESS: self.less}
        return sum(takes.get(s.held, self.sizes[i]) for i, s in enumerate(state))

    def _machine_has_room(self, state: Sandboxes, index: int) -> bool:
        """Tell whether the agent finds room for all of one beside what it holds of the others.

        What runs holds all it may take, also when it is just being paused: it may run on.
        """
        held = 0
        for other, sandbox in enumerate(state):
            if other == index or sandbox.held == NONE:
                continue
            is_entitled = sandbox.phase == "Running" and self.broken is not Broken.NO_ENTITLEMENT
            takes = FULL if is_entitled else LESS if sandbox.phase == "Paused" else sandbox.held
            held += self.sizes[other] if takes == FULL else self.less
        return held + self.sizes[index] <= self.capacity

    def _steps(self, state: Sandboxes) -> Iterator[Step[Sandboxes]]:
        for index, sandbox in enumerate(state):
            changes = (
                *self._of_operator(state, sandbox),
                *self._of_agent(state, index, sandbox),
                *self._of_end(sandbox),
            )
            for label, changed in changes:
                yield f"q{index} {label}", with_part(state, index, changed)

    def _of_operator(self, state: Sandboxes, sandbox: Sandbox) -> Iterator[Change]:
        stays = self.broken is Broken.RESUME_KEEPS_ID
        if sandbox.phase == "Pending" and sandbox.held == NONE:
            yield "is reserved", Sandbox("Reserved")
        elif sandbox.phase == "Paused":
            yield "is reserved to be resumed", sandbox.to("Resuming", kept=stays)
        elif sandbox.phase in {"Reserved", "Resuming"}:
            is_new = sandbox.phase == "Reserved"
            if not sandbox.is_confirmable and self._fits(state):
                yield "is judged: fits", sandbox._replace(is_confirmable=True)
            if sandbox.is_confirmable:
                yield "is confirmed", sandbox.to("Bound" if is_new else "To resume", kept=stays)
            yield "is undone", sandbox.to("Pending" if is_new else "Paused", kept=stays)
        elif sandbox.phase == "Bound":
            yield "is given up", sandbox.to("Pending")
        elif sandbox.phase == "To resume":
            yield "is given up", sandbox.to("Paused", kept=stays)

    def _of_agent(self, state: Sandboxes, index: int, sandbox: Sandbox) -> Iterator[Change]:
        stays = self.broken is Broken.RESUME_KEEPS_ID
        has_room = self._machine_has_room(state, index)
        match sandbox.phase:
            case "Bound" if has_room:
                yield "is started", sandbox.to("Running", held=FULL, kept=stays)
            case "Running" if sandbox.held == FULL:
                yield "is let go of in part", sandbox._replace(held=LESS)
                if self.broken is Broken.WRITES_BEFORE_LETTING_GO:
                    yield "is written Paused", sandbox.to("Paused")
            case "Running":
                yield "is written Paused", sandbox.to("Paused", kept=stays)
                yield "is to run on after all", sandbox._replace(held=FULL)
            case "Paused":
                yield "is let go of in part", sandbox._replace(held=LESS)
                if has_room and self.broken is Broken.NO_RESERVATION:
                    yield "is resumed", sandbox.to("Running", held=FULL)
            case "To resume" if has_room or self.broken is Broken.NO_ROOM_CHECK:
                yield "is resumed", sandbox.to("Running", held=FULL, kept=stays)
            case _:
                pass

    def _of_end(self, sandbox: Sandbox) -> Iterator[Change]:
        if sandbox.phase in {"Running", "Paused"}:
            yield "ends, and is written so", Sandbox()
        if sandbox.held != NONE:
            if sandbox.phase == "Pending":
                yield "is removed, since no request names it", Sandbox()
            else:
                yield "is deleted by its user", Sandbox(held=sandbox.held)

    def _violation(self, state: Sandboxes) -> str:
        confirmed = sum(
            self.less if sandbox.phase in {"Paused", "Resuming"} else self.sizes[index]
            for index, sandbox in enumerate(state)
            if sandbox.phase not in {"Pending", "Reserved"}
        )
        running = self._on_machine(state)
        if max(confirmed, running) > self.capacity:
            return f"{confirmed} confirmed, {running} on the machine, of {self.capacity}"
        return ""
