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
from numpy.typing import DTypeLike, NDArray
from typing_extensions import override

from cubesched.core.snapshot import Codes
from cubesched.plugins.cel.limits import FRESH_START_NS, TEXT_NS

_KEPT: Final = 4
"""Fleets whose texts are remembered: there is one, and a few in tests."""
_NAME_NS: Final = 200
_BIT: Final = 256
"""Texts looked at between two looks at the budget; one alone may be longer than the next."""
_BIT_LETTERS: Final = 100_000
_MOST_NAMES: Final = 4
"""Names remembered, in times of those there are; then forgotten all at once."""


class Budget(Protocol):
    """Where work on texts is counted."""

    def check(self) -> None:
        """Raise when it was too much already."""
        ...

    def charge(self, nanoseconds: float) -> None:
        """Count work, in nominal nanoseconds."""
        ...


OR_FAILED: Final = {
    kind: np.dtype([("value", kind), ("failed", np.bool_)])
    for kind in (np.bool_, np.int64, np.float64)
}
"""Answers that may be an error."""
Answer = Callable[[list[str], Budget], Sequence[Any] | NDArray[Any]]
"""Returns one answer for each text."""


class Texts(ABC):
    """Texts by code; code 0 is the empty text."""

    @property
    @abstractmethod
    def size(self) -> int:
        """One more than the highest code."""

    @abstractmethod
    def among(self, codes: list[int]) -> list[str]:
        """Return the texts of some codes."""

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
    def among(self, codes: list[int]) -> list[str]:
        if len(self.source) > self._seen:
            self._catch_up()
        values = self._values
        return [values[code] for code in codes]

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
        self._names: list[str] = []
        self._codes: Codes = np.zeros(0, np.int32)

    @property
    @override
    def size(self) -> int:
        return len(self._values)

    @override
    def among(self, codes: list[int]) -> list[str]:
        values = self._values
        return [values[code] for code in codes]

    @override
    def codes_of(self, text: str) -> tuple[int, ...]:
        code = self._code_of.get(text)
        return () if code is None else (code,)

    def is_full(self, names: Sequence[str]) -> bool:
        """Tell whether most of what is remembered is gone."""
        return len(self._values) > _MOST_NAMES * (len(names) + 1_000)

    def codes(self, names: Sequence[str], budget: Budget) -> Codes:
        """Return the code of each name; cheap while they are the same."""
        fresh = names if isinstance(names, list) else list(names)
        if self._names != fresh:
            budget.charge(_NAME_NS * len(names))
            self._names = fresh.copy()
            for name in names:
                if name not in self._code_of:
                    self._code_of[name] = len(self._values)
                    self._values.append(name)
            self._codes = np.array([self._code_of[name] for name in names], np.int32)
        return self._codes


class Extended(Texts):
    """The texts of another column with something before and after each."""

    def __init__(self, inner: Texts, before: str, after: str) -> None:
        self.inner, self.before, self.after = inner, before, after

    @property
    @override
    def size(self) -> int:
        return self.inner.size

    @override
    def among(self, codes: list[int]) -> list[str]:
        return [f"{self.before}{text}{self.after}" for text in self.inner.among(codes)]

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

    def names(self, names: Sequence[str], budget: Budget) -> tuple[Codes, Names]:
        """Return the names of nodes as codes."""
        if self._names.is_full(names):
            self._names = Names()
        return self._names.codes(names, budget), self._names


VOCABULARY: Final = Vocabulary()
"""A cache: without it, expressions give the same answers, later. One event loop uses it."""


class Memo:
    """The answers of one operation, by the code of the text it is asked about."""

    __slots__ = ("_answer", "_answers", "_bit", "_dtype", "_each_ns", "_known", "_texts")

    def __init__(
        self, answer: Answer, dtype: DTypeLike, *, each_ns: int = TEXT_NS, bit: int = _BIT
    ) -> None:
        """`answer` works out `bit` at a time, `each_ns` apiece beside what it charges itself."""
        self._answer = answer
        self._each_ns, self._bit = each_ns, bit
        self._dtype = np.dtype(dtype)
        self._texts: Texts | None = None
        self._answers: NDArray[Any] = np.zeros(0, self._dtype)
        self._known: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def take(self, codes: Codes, texts: Texts, budget: Budget) -> NDArray[Any]:
        """Return one answer a row; works out those that are new."""
        if self._texts is not texts or self._known.size < texts.size:
            self._make_room(texts)
        known = self._known.take(codes)
        if not known.all():
            self._learn(self._fresh(codes), texts, budget)
        return self._answers.take(codes)

    def _fresh(self, codes: Codes) -> NDArray[np.intp]:
        asked = np.zeros(self._known.size, np.bool_)
        asked[codes] = True
        return np.flatnonzero(asked & ~self._known)

    def _learn(self, codes: NDArray[np.intp], texts: Texts, budget: Budget) -> None:
        """Answer bit by bit, so that what was worked out stays when the budget runs out."""
        budget.charge(FRESH_START_NS)
        start, most = 0, self._bit
        while start < codes.size:
            budget.check()
            bit = codes[start : start + most]
            asked = texts.among(bit.tolist())
            letters = sum(map(len, asked))
            if letters > _BIT_LETTERS and len(asked) > 1:
                most = len(asked) // 2
                continue
            budget.charge(self._each_ns * len(asked) + letters)
            self._answers[bit] = self._answer(asked, budget)
            self._known[bit] = True
            start += len(asked)

    def _make_room(self, texts: Texts) -> None:
        if self._texts is not texts:
            self._texts = texts
            self._answers, self._known = np.zeros(0, self._dtype), np.zeros(0, np.bool_)
        more = max(2 * self._known.size, texts.size) - self._known.size
        self._answers = np.concatenate([self._answers, np.zeros(more, self._dtype)])
        self._known = np.concatenate([self._known, np.zeros(more, np.bool_)])
