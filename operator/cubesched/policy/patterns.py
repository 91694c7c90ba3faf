"""Instance-type patterns: RE2's guarantee (time linear in the text) with Python's parser.

Python's own matcher backtracks, so `(a+)+b` would stall every decision. Patterns are parsed by
Python, refused where RE2 has no such construct, and matched by an automaton whose states are
built as texts need them. Matching is anchored at both ends.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

ops: Any = import_module("re._constants")
parser: Any = import_module("re._parser")

MAX_STATES = 2_000
"""Bounds what one pattern may expand to: `(a{30}){30}` is refused."""
MAX_CACHED_STEPS = 4_096
_ASCII = 128

CharTest = Callable[[str], bool]


class PatternInvalid(Exception):
    """The pattern is not RE2; `str()` says where and why."""


_CATEGORIES: dict[Any, CharTest] = {
    ops.CATEGORY_DIGIT: lambda c: c in "0123456789",
    ops.CATEGORY_NOT_DIGIT: lambda c: c not in "0123456789",
    ops.CATEGORY_SPACE: lambda c: c in "\t\n\f\r ",
    ops.CATEGORY_NOT_SPACE: lambda c: c not in "\t\n\f\r ",
    ops.CATEGORY_WORD: lambda c: c == "_" or (ord(c) < _ASCII and c.isalnum()),
    ops.CATEGORY_NOT_WORD: lambda c: c != "_" and not (ord(c) < _ASCII and c.isalnum()),
}
_REFUSED = {
    ops.GROUPREF: "backreferences",
    ops.GROUPREF_EXISTS: "conditional groups",
    ops.ASSERT: "lookarounds",
    ops.ASSERT_NOT: "lookarounds",
    ops.ATOMIC_GROUP: "atomic groups",
    ops.POSSESSIVE_REPEAT: "possessive repeats",
}
_AT_START = (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING)
_AT_END = (ops.AT_END, ops.AT_END_STRING)


@dataclass(slots=True)
class _State:
    """One state: either consumes a character by `test`, or passes on for free to `free`."""

    test: CharTest | None = None
    target: int = -1
    free: list[int] = field(default_factory=list)
    only_at: str = ""
    """`start` or `end`: the free step is taken only there."""


class _Builder:
    """Turns Python's parse tree into states, from the end of the pattern backwards."""

    def __init__(self, flags: int) -> None:
        self.states: list[_State] = [_State()]
        self.flags = flags

    def sequence(self, items: Iterable[tuple[Any, Any]], then: int, flags: int) -> int:
        for op, argument in reversed(list(items)):
            then = self.item(op, argument, then, flags)
        return then

    def item(self, op: Any, argument: Any, then: int, flags: int) -> int:
        if op in _REFUSED:
            raise PatternInvalid(f"{_REFUSED[op]} are not part of RE2")
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            return self.repeat(argument, then, flags)
        if op is ops.SUBPATTERN:
            _, added, removed, inner = argument
            return self.sequence(inner, then, (flags | added) & ~removed)
        if op is ops.BRANCH:
            return self.add(_State(free=[self.sequence(b, then, flags) for b in argument[1]]))
        if op is ops.AT:
            return self.add(_State(free=[then], only_at=_position(argument)))
        return self.add(_State(test=_char_test(op, argument, flags), target=then))

    def repeat(self, argument: Any, then: int, flags: int) -> int:
        least, most, inner = argument
        if most is ops.MAXREPEAT:
            loop = self.add(_State(free=[then]))
            self.states[loop].free.insert(0, self.sequence(inner, loop, flags))
            then = loop
        else:
            end = then
            for _ in range(most - least):
                then = self.add(_State(free=[self.sequence(inner, then, flags), end]))
        for _ in range(least):
            then = self.sequence(inner, then, flags)
        return then

    def add(self, state: _State) -> int:
        if len(self.states) >= MAX_STATES:
            raise PatternInvalid("the pattern is too large: lower its repeat counts")
        self.states.append(state)
        return len(self.states) - 1


def _position(where: Any) -> str:
    if where in _AT_START:
        return "start"
    if where in _AT_END:
        return "end"
    raise PatternInvalid("word boundaries are not supported: the whole instance type is matched")


def _char_test(op: Any, argument: Any, flags: int) -> CharTest:
    if op is ops.LITERAL:
        return _folded(chr(argument).__eq__, flags)
    if op is ops.NOT_LITERAL:
        test = _folded(chr(argument).__eq__, flags)
        return lambda c: not test(c)
    if op is ops.ANY:
        return (lambda _: True) if flags & re.DOTALL else "\n".__ne__
    if op is ops.IN:
        return _set_test(argument, flags)
    raise PatternInvalid(f"unsupported construct {str(op).lower()}")


def _set_test(items: list[tuple[Any, Any]], flags: int) -> CharTest:
    negated = items[0][0] is ops.NEGATE
    tests = [_member_test(op, argument, flags) for op, argument in items[negated:]]
    return lambda c: negated != any(test(c) for test in tests)


def _member_test(op: Any, argument: Any, flags: int) -> CharTest:
    if op is ops.LITERAL:
        return _folded(chr(argument).__eq__, flags)
    if op is ops.RANGE:
        low, high = chr(argument[0]), chr(argument[1])
        return _folded(lambda c: low <= c <= high, flags)
    return _CATEGORIES[argument]


def _folded(test: CharTest, flags: int) -> CharTest:
    if flags & re.IGNORECASE:
        return lambda c: test(c.lower()) or test(c.upper())
    return test


class Pattern:
    """A compiled pattern; `fullmatch` takes time linear in the text, whatever the pattern."""

    __slots__ = ("_entry", "_start", "_states", "_steps", "pattern")

    def __init__(self, text: str, states: list[_State], start: int) -> None:
        self.pattern = text
        self._states = states
        self._steps: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._entry = start
        self._start = self._reach([start], at=("start",))

    def fullmatch(self, text: str) -> bool:
        """Tell whether the whole text matches."""
        current = self._start
        for char in text:
            current = self._step(current, char)
            if not current:
                return False
        if not text:
            return 0 in self._reach([self._entry], at=("start", "end"))
        return 0 in self._reach(current, at=("end",))

    def _step(self, current: frozenset[int], char: str) -> frozenset[int]:
        key = (current, char)
        found = self._steps.get(key)
        if found is None:
            if len(self._steps) >= MAX_CACHED_STEPS:
                self._steps.clear()
            states = (self._states[index] for index in current)
            found = self._reach([s.target for s in states if s.test and s.test(char)])
            self._steps[key] = found
        return found

    def _reach(self, origins: Iterable[int], *, at: tuple[str, ...] = ()) -> frozenset[int]:
        seen: set[int] = set()
        waiting = list(origins)
        while waiting:
            index = waiting.pop()
            if index in seen:
                continue
            seen.add(index)
            state = self._states[index]
            if not state.only_at or state.only_at in at:
                waiting += state.free
        return frozenset(seen)


def compile_pattern(text: str) -> Pattern:
    """Compile an anchored pattern; raises PatternInvalid with the reason and the position."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parser.parse(text)
        builder = _Builder(tree.state.flags)
        start = builder.sequence(tree, 0, tree.state.flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternInvalid(f"not a regular expression: {error}") from error
    return Pattern(text, builder.states, start)
