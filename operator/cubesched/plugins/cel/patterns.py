"""`matches`: RE2, whose time is linear in the text, measured since what is linear can be steep."""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
import re2
from numpy.typing import NDArray
from re2 import _re2

from cubesched.plugins.cel.limits import (
    MATCH_NS,
    MAX_MATCHED_CHARACTERS,
    MAX_PATTERN_CHARACTERS,
    MAX_PATTERN_SIZE,
)
from cubesched.plugins.cel.texts import OR_FAILED, Budget, Memo
from cubesched.plugins.cel.typed import Errors, Typed
from cubesched.plugins.cel.values import NO_ERROR, Env, Pair, Run, Text, either, failing

_MEMORY_BYTES: Final = 1 << 20
_BIT: Final = 8
"""Texts matched between two looks at the budget: a hostile pattern takes long for each."""
_UNANCHORED: Final = _re2.RE2.Anchor.UNANCHORED
_TOO_LONG: Final = f"text of more than {MAX_MATCHED_CHARACTERS} characters for matches"


class PatternInvalid(Exception):
    """The pattern cannot be used; `str()` says why."""


def compile_pattern(text: str) -> Any:
    """Return RE2's form of a pattern."""
    if len(text) > MAX_PATTERN_CHARACTERS:
        raise PatternInvalid(f"a pattern has {MAX_PATTERN_CHARACTERS} characters at most")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MEMORY_BYTES
    try:
        compiled = re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise PatternInvalid(f"not a regular expression of RE2: {reason}") from None
    if compiled.programsize > MAX_PATTERN_SIZE:
        raise PatternInvalid("the pattern is too large: lower its repeat counts")
    return compiled


class _Matcher:
    """Looks for a pattern anywhere in a text, and charges what that really takes."""

    def __init__(self, pattern: str) -> None:
        compiled = compile_pattern(pattern)
        # `search` itself wraps every match into objects that take four times as long.
        self._match = compiled._regexp.Match  # noqa: SLF001

    def answers(self, texts: list[str], budget: Budget) -> NDArray[Any]:
        """Return for each text whether the pattern is in it, or whether it is too long to look."""
        began = time.thread_time_ns()
        answers = np.zeros(len(texts), OR_FAILED[np.bool_])
        answers["failed"] = [len(text) > MAX_MATCHED_CHARACTERS for text in texts]
        answers["value"] = [self._is_in(text) for text in texts]
        taken_ns = time.thread_time_ns() - began
        budget.charge(max(0, taken_ns - MATCH_NS * len(texts)))
        return answers

    def _is_in(self, text: str) -> bool:
        if len(text) > MAX_MATCHED_CHARACTERS:
            return False
        data = text.encode("utf-8", "surrogatepass")
        spans = self._match(_UNANCHORED, data, 0, len(data))
        return bool(spans[0][0] >= 0)


def matches(args: tuple[Typed, ...], errors: Errors) -> Run:
    """Return whether a text holds a match of the pattern, a literal.

    Raises PatternInvalid.
    """
    subject, matcher = args[0].run, _Matcher(str(args[1].literal))
    memo = Memo(matcher.answers, OR_FAILED[np.bool_], each_ns=MATCH_NS, bit=_BIT)
    too_long = errors.number(_TOO_LONG)

    def run(env: Env) -> Pair:
        value, error = subject(env)
        if type(value) is Text:
            answers = memo.take(value.codes, value.texts, env)
            return answers["value"], either(error, failing(answers["failed"], too_long))
        env.check()
        ((found, is_long),) = matcher.answers([value], env).tolist()
        return found, either(error, too_long if is_long else NO_ERROR)

    return run
