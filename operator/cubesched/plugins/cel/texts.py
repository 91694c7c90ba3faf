"""Texts by their codes, and what is worked out once for each of them.

Labels, addresses and instance types are interned by the fleet, which gives out codes and never
takes one back; names are interned here. A `Memo` keeps the answer of one operation for every text
that it has met, so that an operation on a column is one gather.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from cubesched.core.snapshot import Codes

_KEPT: Final = 4
"""Fleets whose texts are remembered: there is one, and a few in tests."""
_MOST_NAMES: Final = 4
"""Names remembered, in times of those there are; then forgotten all at once."""


class Spends(Protocol):
    """Where work on texts is counted."""

    def spend(self, nanoseconds: float) -> None:
        """Count work; raises when it was too much already."""
        ...


class Texts(ABC):
    """Texts by code; code 0 is the empty text."""

    @property
    @abstractmethod
    def size(self) -> int:
        """One more than the highest code."""

    @abstractmethod
    def at(self, code: int) -> str:
        """Return the text of a code."""

    @abstractmethod
    def codes_of(self, text: str) -> tuple[int, ...]:
        """Return the codes that stand for the text: none, one, or two for the empty one."""


class Interned(Texts):
    """Texts that the fleet has interned, from 1 on in the order of the mapping."""

    def __init__(self, source: Mapping[str, int]) -> None:
        self.source = cast("dict[str, int]", source)
        self._seen = 0
        self._values: list[str] = [""]

    @property
    @override
    def size(self) -> int:
        return len(self.source) + 1

    @override
    def at(self, code: int) -> str:
        if len(self.source) > self._seen:
            self._catch_up()
        return self._values[code]

    @override
    def codes_of(self, text: str) -> tuple[int, ...]:
        code = self.source.get(text)
        if not text:
            return (0, code) if code else (0,)
        return () if code is None else (code,)

    @property
    def is_stale(self) -> bool:
        """Tell whether the mapping was emptied: codes may mean something else now."""
        return len(self.source) < self._seen

    def _catch_up(self) -> None:
        fresh, self._seen = len(self.source) - self._seen, len(self.source)
        newest = reversed(self.source.items())
        if fresh == self._seen and next(newest)[1] == fresh:
            self._values += self.source  # a first look at many, in their order
            return
        self._values += [""] * fresh
        for text, code in islice(reversed(self.source.items()), fresh):
            self._values[code] = text


class Names(Texts):
    """The names of nodes, by codes that stay when rows move."""

    def __init__(self) -> None:
        self._values: list[str] = [""]
        self._code_of: dict[str, int] = {"": 0}
        self._names: Sequence[str] = []
        self._codes: Codes = np.zeros(0, np.int32)

    @property
    @override
    def size(self) -> int:
        return len(self._values)

    @override
    def at(self, code: int) -> str:
        return self._values[code]

    @override
    def codes_of(self, text: str) -> tuple[int, ...]:
        code = self._code_of.get(text)
        return () if code is None else (code,)

    def is_full(self, names: Sequence[str]) -> bool:
        """Tell whether most of what is remembered is gone."""
        return len(self._values) > _MOST_NAMES * (len(names) + 1_000)

    def codes(self, names: Sequence[str]) -> Codes:
        """Return the code of each name; cheap while they are the same."""
        if self._names != names:
            self._names = list(names)
            codes = [self._code(name) for name in names]
            self._codes = np.array(codes, np.int32)
        return self._codes

    def _code(self, name: str) -> int:
        code = self._code_of.setdefault(name, len(self._values))
        if code == len(self._values):
            self._values.append(name)
        return code


class Extended(Texts):
    """The texts of another column with something before and after each."""

    def __init__(self, inner: Texts, before: str, after: str) -> None:
        self.inner, self.before, self.after = inner, before, after

    @property
    @override
    def size(self) -> int:
        return self.inner.size

    @override
    def at(self, code: int) -> str:
        return f"{self.before}{self.inner.at(code)}{self.after}"

    @override
    def codes_of(self, text: str) -> tuple[int, ...]:
        added = len(self.before) + len(self.after)
        if len(text) < added or not (text.startswith(self.before) and text.endswith(self.after)):
            return ()
        return self.inner.codes_of(text[len(self.before) : len(text) - len(self.after)])


class Vocabulary:
    """The texts of the fleets that expressions have been asked about lately."""

    def __init__(self) -> None:
        self._interned: dict[int, Interned] = {}
        self._names = Names()

    def interned(self, source: Mapping[str, int]) -> Interned:
        """Return the texts of one of the fleet's mappings."""
        found = self._interned.get(id(source))
        if found is None or found.source is not source or found.is_stale:
            found = self._interned[id(source)] = Interned(source)
            while len(self._interned) > _KEPT:
                del self._interned[next(iter(self._interned))]
        return found

    def names(self, names: Sequence[str]) -> tuple[Codes, Names]:
        """Return the names of nodes as codes."""
        if self._names.is_full(names):
            self._names = Names()
        return self._names.codes(names), self._names


VOCABULARY: Final = Vocabulary()
"""A cache: without it, expressions give the same answers, later. One event loop uses it."""


class Memo:
    """The answers of one operation, by the code of the text it is asked about."""

    __slots__ = ("_answer", "_answers", "_dtype", "_known", "_texts")

    def __init__(self, answer: Callable[[str, Spends], Any], dtype: type[np.generic]) -> None:
        """`answer` works one out and counts what it costs."""
        self._answer = answer
        self._dtype = dtype
        self._texts: Texts | None = None
        self._answers: NDArray[Any] = np.zeros(0, dtype)
        self._known: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def take(self, codes: Codes, texts: Texts, budget: Spends) -> NDArray[Any]:
        """Return one answer a row; works out those that are new."""
        if self._texts is not texts or self._known.size < texts.size:
            self._make_room(texts)
        known = self._known.take(codes)
        if not known.all():
            for code in np.unique(codes[~known]).tolist():
                self._answers[code] = self._answer(texts.at(code), budget)
                self._known[code] = True
        return self._answers.take(codes)

    def _make_room(self, texts: Texts) -> None:
        if self._texts is not texts:
            self._texts = texts
            self._answers, self._known = np.zeros(0, self._dtype), np.zeros(0, np.bool_)
        more = max(2 * self._known.size, texts.size) - self._known.size
        self._answers = np.concatenate([self._answers, np.zeros(more, self._dtype)])
        self._known = np.concatenate([self._known, np.zeros(more, np.bool_)])
