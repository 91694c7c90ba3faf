"""What to say of operators and functions that do not take what they are given."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Final

from cubesched.plugins.cel.celtypes import BOOL, DOUBLE, INT, Type
from cubesched.plugins.cel.functions import BY_NAME, MACROS, UNSUPPORTED, Function
from cubesched.plugins.cel.typed import Typed
from cubesched.plugins.spelling import did_you_mean

_SENTENCES: Final = {
    "+": "cannot add {0} and {1}",
    "-": "cannot subtract {1} from {0}",
    "*": "cannot multiply {0} by {1}",
    "/": "cannot divide {0} by {1}",
    "%": "cannot take the remainder of {0} by {1}",
    "in": "cannot look for {0} in {1}",
}


_OTHER_NAMES: Final = {
    "name": "id",
    "cpu_usage": "cpu_util",
    "address": "ip",
    "sandboxes": "mvm_num",
}


def undefined_field(name: str, of: Type, known: Collection[str]) -> str:
    """Say that there is no such field, and which was probably meant."""
    message = f"undefined field '{name}' of {of.name}"
    close = [_OTHER_NAMES[name]] if name in _OTHER_NAMES else get_close_matches(name, known, n=1)
    return f'{message}; did you mean "{close[0]}"?' if close and close[0] in known else message


def wrong_operands(function: Function, args: Sequence[Typed]) -> tuple[Typed, str]:
    """Return which operand to point at, and what to say of it."""
    names = [arg.type.name for arg in args]
    if len(args) == 1:
        return args[0], f"{function.name} wants an int or a double, found {names[0]}"
    sentence = _SENTENCES.get(function.name, "cannot compare {0} with {1}").format(*names)
    at, hint = _remedy(function, args)
    return at, f"{sentence}; {hint}" if hint else sentence


def _remedy(function: Function, args: Sequence[Typed]) -> tuple[Typed, str]:
    first, second = args
    if function.name == "%":
        return first, "it takes ints only"
    if function.name == "in":
        element = second.type.element
        if element is None or {first.type, element} != {INT, DOUBLE}:
            return first, "" if element else "write a list, or the labels of node or request"
        return first, _as_double(first) if first.type == INT else "convert with int()"
    if {first.type, second.type} == {INT, DOUBLE}:
        whole = first if first.type == INT else second
        return whole, _as_double(whole)
    return first, ""


def _as_double(whole: Typed) -> str:
    """Say how an int becomes a double, as far as that is exact."""
    if isinstance(whole.literal, int) and abs(whole.literal) < 1 << 53:
        return f"write {whole.literal}.0"
    return "convert with double()"


def wrong_arguments(function: Function, args: Sequence[Typed]) -> str:
    """Say what a function takes, and what it was given."""
    given = ", ".join(arg.type.name for arg in args)
    known = sorted({", ".join(each.name for each in one.args) for one in function.overloads})
    if function.name == "size":
        known.append("a list that is written down")
    return f"{function.name} does not take ({given}); it takes {' or '.join(known)}"


def unknown_function(name: str, *, is_method: bool) -> str:
    """Say that there is no such function, and which was probably meant."""
    if name in UNSUPPORTED or f"{name}()" in UNSUPPORTED:
        return f"{name}() is not supported"
    found = BY_NAME.get(name)
    if found is not None:
        return (
            f"{name} is a function: write {name}(a)"
            if is_method
            else f"{name} is a method: write a.{name}(b)"
        )
    if name in MACROS:
        form = "a method of a list" if name != "has" else "a function of one field"
        return f"{name} is {form}: {MACROS[name].split(':')[0]}"
    known = [each.name for each in BY_NAME.values() if _has_form(each, is_method=is_method)]
    kind = "method" if is_method else "function"
    return f"unknown {kind} '{name}'; {did_you_mean(name, known)}"


def _has_form(function: Function, *, is_method: bool) -> bool:
    return function.as_method if is_method else function.as_function


def wrong_result(found: Type, wanted: Sequence[Type]) -> str:
    """Say what an expression should return."""
    names = " or ".join(each.name for each in wanted)
    message = f"the expression returns {found.name}; wanted is {names}"
    if found == BOOL:
        return f"{message}: write ... ? 100.0 : 0.0"
    return message
