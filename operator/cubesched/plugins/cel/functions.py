"""The operators and functions: one table of their types, costs and meanings.

The checker looks them up here and the reference page is made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cubesched.plugins.cel import comparing, conversions, numbers, patterns, textops
from cubesched.plugins.cel.celtypes import BOOL, DOUBLE, INT, STRING, Type, list_of
from cubesched.plugins.cel.typed import Errors, Typed
from cubesched.plugins.cel.values import Run

Make = Callable[[tuple[Typed, ...], Errors], Run]


@dataclass(frozen=True, slots=True)
class Overload:
    """One operator or function for certain types of arguments."""

    args: tuple[Type, ...]
    result: Type
    make: Make
    cost_us: float
    """Nominal, on 5,000 nodes."""
    can_fail: bool = False
    most_columns: int = 2
    """How many of its arguments may differ from node to node."""
    literal_last: bool = False
    """Its last argument must be a literal."""
    repeated_us: float = 0.0
    """What it costs with an argument that changes from request to request, beside a column."""


@dataclass(frozen=True, slots=True)
class Function:
    """An operator, function or method with all its overloads."""

    name: str
    what: str
    overloads: tuple[Overload, ...]
    is_operator: bool = False
    as_function: bool = True
    as_method: bool = False


_TEXT_US: Final = 30.0
_REPEATED_US: Final = 700.0


def _operator(name: str, what: str, *overloads: Overload) -> Function:
    return Function(name, what, overloads, is_operator=True)


def _numeric(ints: Make, doubles: Make, ints_us: float) -> tuple[Overload, Overload]:
    return (
        Overload((INT, INT), INT, ints, ints_us, can_fail=True),
        Overload((DOUBLE, DOUBLE), DOUBLE, doubles, 10.0),
    )


def _ordering(column: Make, text: Make) -> tuple[Overload, ...]:
    return (
        *(Overload((each, each), BOOL, column, 10.0) for each in (INT, DOUBLE, BOOL)),
        _test(text),
    )


def _test(make: Make) -> Overload:
    return Overload(
        (STRING, STRING), BOOL, make, _TEXT_US, most_columns=1, repeated_us=_REPEATED_US
    )


def _equality(column: Make, text: Make) -> tuple[Overload, ...]:
    return (
        *(Overload((each, each), BOOL, column, 10.0) for each in (INT, DOUBLE, BOOL)),
        Overload((STRING, STRING), BOOL, text, 60.0),
    )


_JOIN = Overload((STRING, STRING), STRING, textops.concatenation, 1.0, most_columns=1)
_NEGATIONS = (
    Overload((INT,), INT, numbers.negate_int, 15.0, can_fail=True),
    Overload((DOUBLE,), DOUBLE, numbers.negate_double, 10.0),
)
_LISTS = tuple(
    Overload((each, list_of(each)), BOOL, comparing.MEMBER, 15.0) for each in (INT, DOUBLE, BOOL)
)
_MATCHES = Overload(
    (STRING, STRING), BOOL, patterns.matches, 2 * _TEXT_US, can_fail=True, most_columns=1,
    literal_last=True,
)  # fmt: skip

OPERATORS: Final = (
    _operator("+", "Sum; ints that leave 64 bits are an error. Of strings: one after the other; a"
              " node's string takes a literal only.",
              *_numeric(numbers.ADD_INTS, numbers.ADD_DOUBLES, 40.0), _JOIN),
    _operator("-", "Difference, or the opposite; ints as above.",
              *_numeric(numbers.SUBTRACT_INTS, numbers.SUBTRACT_DOUBLES, 40.0), *_NEGATIONS),
    _operator("*", "Product; ints as above.",
              *_numeric(numbers.MULTIPLY_INTS, numbers.MULTIPLY_DOUBLES, 60.0)),
    _operator("/", "Quotient; of ints toward zero, by 0 an error. Doubles divide into inf or NaN.",
              *_numeric(numbers.DIVIDE_INTS, numbers.DIVIDE_DOUBLES, 120.0)),
    _operator("%", "Remainder of ints, with the sign of the dividend; by 0 an error.",
              Overload((INT, INT), INT, numbers.MODULO_INTS, 120.0, can_fail=True)),
    _operator("==", "Equal, of one type; NaN equals nothing.",
              *_equality(comparing.EQUAL, textops.equal)),
    _operator("!=", "Not equal, of one type.",
              *_equality(comparing.NOT_EQUAL, textops.not_equal)),
    _operator("<", "Less, of one type; strings by Unicode code points, one of them not the node's.",
              *_ordering(comparing.LESS, textops.LESS)),
    _operator("<=", "Less or equal.", *_ordering(comparing.LESS_OR_EQUAL, textops.LESS_OR_EQUAL)),
    _operator(">", "Greater.", *_ordering(comparing.GREATER, textops.GREATER)),
    _operator(">=", "Greater or equal.",
              *_ordering(comparing.GREATER_OR_EQUAL, textops.GREATER_OR_EQUAL)),
    _operator("in", "Member of a list, or a key of labels.",
              *_LISTS, Overload((STRING, list_of(STRING)), BOOL, textops.member, _TEXT_US)),
)  # fmt: skip
FUNCTIONS: Final = (
    Function("size", "Characters of a string, elements of a list.",
             (Overload((STRING,), INT, textops.size, _TEXT_US),), as_method=True),
    Function("startsWith", "The string begins with this one.", (_test(textops.STARTS_WITH),),
             as_function=False, as_method=True),
    Function("endsWith", "The string ends with this one.", (_test(textops.ENDS_WITH),),
             as_function=False, as_method=True),
    Function("contains", "The string has this one in it.", (_test(textops.CONTAINS),),
             as_function=False, as_method=True),
    Function("matches", "The string has a match of this pattern of RE2, a literal, in it.",
             (_MATCHES,), as_method=True),
    Function("int", "An int: of a double what stands before the point, of a string what it spells;"
             " an error where no int is that.",
             (Overload((INT,), INT, conversions.same, 0.0),
              Overload((DOUBLE,), INT, conversions.int_of_double, 60.0, can_fail=True),
              Overload((STRING,), INT, conversions.INT_OF_TEXT, 80.0, can_fail=True))),
    Function("double", "A double: of an int the nearest, of a string what it spells.",
             (Overload((DOUBLE,), DOUBLE, conversions.same, 0.0),
              Overload((INT,), DOUBLE, conversions.double_of_int, 10.0),
              Overload((STRING,), DOUBLE, conversions.DOUBLE_OF_TEXT, 80.0, can_fail=True))),
    Function("string", "A string: of an int that is the same for all nodes, or of a bool.",
             (Overload((STRING,), STRING, conversions.same, 0.0),
              Overload((INT,), STRING, conversions.string_of_int, 1.0, most_columns=0))),
)  # fmt: skip
BY_OPERATOR: Final = {each.name: each for each in OPERATORS}
BY_NAME: Final = {each.name: each for each in FUNCTIONS}
MACROS: Final = {
    "has": "`has(node.labels.k)`: the label is there. `has(node.f)`: the fact is known. True for"
    " any other field.",
    "all": "`[...].all(x, test)`: true of every element of a list that is written down.",
    "exists": "`[...].exists(x, test)`: true of some element of such a list.",
}
UNSUPPORTED: Final = {
    "uint": "unsigned ints, as in `1u`",
    "bytes": 'bytes, as in `b"a"`',
    "null": "`null`",
    "map literals": 'maps that are written down, as in `{"a": 1}`',
    "message literals": "messages, as in `T{a: 1}`",
    "names that begin with a dot": "names that begin with a dot",
    "dyn": "`dyn()`",
    "type": "`type()`",
    "uint()": "`uint()`",
    "bytes()": "`bytes()`",
    "bool": "`bool()`",
    "timestamp": "`timestamp()`",
    "duration": "`duration()`",
    "map": "the macro `map()`",
    "filter": "the macro `filter()`",
    "exists_one": "the macro `exists_one()`",
}
"""What CEL has beside, and is refused by name."""
