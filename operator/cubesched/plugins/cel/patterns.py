"""`matches`: RE2, whose time is linear in the text, measured since what is linear can be steep."""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
import re2
from re2 import _re2

from cubesched.plugins.cel.limits import (
    MATCH_NS,
    MAX_MATCHED_CHARACTERS,
    MAX_PATTERN_CHARACTERS,
    MAX_PATTERN_SIZE,
)
from cubesched.plugins.cel.texts import Memo, Spends
from cubesched.plugins.cel.typed import Errors, Typed
from cubesched.plugins.cel.values import Env, Pair, Run, Text, either, failing

_MEMORY_BYTES: Final = 1 << 20
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
    """Looks for a pattern anywhere in a text, and counts the time that takes."""

    def __init__(self, pattern: str) -> None:
        compiled = compile_pattern(pattern)
        # `search` itself wraps every match into objects that take four times as long.
        self._match = compiled._regexp.Match  # noqa: SLF001

    def __call__(self, text: str, budget: Spends) -> bool:
        budget.spend(MATCH_NS)
        if len(text) > MAX_MATCHED_CHARACTERS:
            return False
        data = text.encode("utf-8", "surrogatepass")
        began = time.perf_counter_ns()
        found = self._match(_re2.RE2.Anchor.UNANCHORED, data, 0, len(data))
        budget.spend(max(0, time.perf_counter_ns() - began - MATCH_NS))
        return bool(found[0][0] >= 0)


def _is_too_long(text: str, _: Spends) -> bool:
    return len(text) > MAX_MATCHED_CHARACTERS


def matches(args: tuple[Typed, ...], errors: Errors) -> Run:
    """Return whether a text holds a match of the pattern, a literal.

    Raises PatternInvalid.
    """
    subject, matcher = args[0].run, _Matcher(str(args[1].literal))
    memo, long_memo = Memo(matcher, np.bool_), Memo(_is_too_long, np.bool_)
    too_long = errors.number(_TOO_LONG)

    def run(env: Env) -> Pair:
        value, error = subject(env)
        if type(value) is Text:
            long = long_memo.take(value.codes, value.texts, env)
            found = memo.take(value.codes, value.texts, env)
            return found, either(error, failing(long, too_long))
        if len(value) > MAX_MATCHED_CHARACTERS:
            return False, either(error, too_long)
        return matcher(value, env), error

    return run
