"""Breadth-first search over every state that a small protocol can reach.

Schedules of any length are inside. The search is complete when it ends, and the first violation it
meets is one of the shortest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)
Step = tuple[str, State]


@dataclass(frozen=True, slots=True)
class Rules(Generic[State]):
    """A protocol: where it starts, what may happen next, and what must never be."""

    start: State
    steps: Callable[[State], Iterator[Step[State]]]
    violation: Callable[[State], str]
    """What is wrong with a state; empty when nothing is."""


@dataclass(frozen=True, slots=True)
class Explored:
    """How far the search came and, if it failed, how."""

    states: int
    transitions: int
    violation: str = ""
    schedule: tuple[str, ...] = ()

    def summary(self) -> str:
        """Return one line."""
        found = f"{self.states} states, {self.transitions} transitions"
        if not self.violation:
            return f"{found}: holds"
        return f"{found}: found after {len(self.schedule)} steps: {self.violation}"


def explore(rules: Rules[State]) -> Explored:
    """Visit every reachable state; stop at the first that must not be."""
    came_from: dict[State, tuple[State, str] | None] = {rules.start: None}
    waiting = deque([rules.start])
    transitions = 0
    while waiting:
        state = waiting.popleft()
        for label, following in rules.steps(state):
            transitions += 1
            if following in came_from:
                continue
            came_from[following] = (state, label)
            wrong = rules.violation(following)
            if wrong:
                path = tuple(_schedule(came_from, following))
                return Explored(len(came_from), transitions, wrong, path)
            waiting.append(following)
    return Explored(len(came_from), transitions)


def _schedule(came_from: dict[State, tuple[State, str] | None], end: State) -> list[str]:
    labels: list[str] = []
    step = came_from[end]
    while step is not None:
        before, label = step
        labels.append(label)
        step = came_from[before]
    return labels[::-1]


Part = TypeVar("Part")


def with_part(whole: tuple[Part, ...], index: int, part: Part) -> tuple[Part, ...]:
    """Return `whole` with one part replaced."""
    return (*whole[:index], part, *whole[index + 1 :])
