"""The reference page of expressions, from the checker's own tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cubesched.generate.markdown import code, first_lines, table
from cubesched.plugins.cel import limits
from cubesched.plugins.cel.facts import NODE_FACTS, REQUEST_FACTS
from cubesched.plugins.cel.functions import (
    FUNCTIONS,
    MACROS,
    OPERATORS,
    UNSUPPORTED,
    Function,
    Overload,
)

_WHAT: Final = """\
What an entry of `type: expr` may say in a SchedulerProfile: a part of
[CEL](https://cel.dev), the Common Expression Language, with the meaning it has there. A filter's
expression returns a bool; a score's returns a double or an int, 0 to 100. It is checked when the
Profile is applied, and everything that is not on this page is refused then, by its name.

```yaml
apiVersion: cubesched.io/v1alpha1
kind: SchedulerProfile
metadata: {name: expressions}
spec:
  default: true
  filters:
  - {name: calm, type: expr, expr: node.creating < 8}
  - {name: zone, type: expr, expr: 'has(node.labels.zone) && node.labels.zone in ["a", "b"]'}
  scores:
  - {name: idle, type: expr, expr: "node.cpu_util < 60.0 ? 80.0 : 20.0"}
```

An expression runs over all nodes at once: a comparison takes about 5 us on 5,000 of them."""
_TYPES: Final = """\
There are `bool`, `int` (64 bits), `double`, `string`, and lists of these. An int and a double never
mix: write `60.0` beside `node.cpu_util`, or convert. Literals are spelled as in CEL: `60`, `0x3c`,
`60.0`, `6e1`, `true`, `"a"`, `'a'`, `r"\\d"`, and `\"""a\""\"` over several lines.

In YAML, an expression that has `: ` or ` #` in it, or begins with `!` or a quote, stands in quotes
of the other kind, as in the examples; or on lines of its own below `expr: >-`."""
_ERRORS: Final = """\
What has no result is an error **on that node** and no others: a label that is not there, a metric
that the node never reported, division of ints by 0, ints beyond 64 bits, `int("a")`. As in CEL,
`false && error` is false, `true || error` is true, and only the branch of `?:` that is taken
counts. Ask first whether a label is there: `has(node.labels.zone)`, or
`"x.io/zone" in node.labels` where the key has a dot or dash; `has(node.cpu_util)` asks whether a
metric is known.

An error in a filter is the business of the Profile's `failure.filter`; an error in a score on any
node that is left, and a result outside 0 to 100, of its `failure.score`. Doubles divide by 0 into
`inf` or `NaN` without an error; as scores these are failures."""


def cel_page() -> str:
    """Return the Markdown page of expressions."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from first_lines("Expressions", _WHAT)
    yield from ("", "## Facts of a node")
    yield from _facts("node", [(fact.name, fact.type.name, fact.what) for fact in NODE_FACTS])
    yield from ("", "## Facts of the request")
    yield from _facts("request", [(fact.name, fact.type.name, fact.what) for fact in REQUEST_FACTS])
    yield from ("", "## Types and literals", "", _TYPES, "", "## Operators")
    rows = [(code(each.name), _forms(each), each.what) for each in OPERATORS]
    yield from table(("operator", "takes", "what"), [*rows, *_LOGIC])
    yield from ("", "## Functions")
    yield from table(
        ("function", "takes", "what"),
        [(_spelling(each), _forms(each), each.what) for each in FUNCTIONS],
    )
    yield from ("", "## Macros")
    yield from table(("macro", "what"), [(code(name), what) for name, what in MACROS.items()])
    yield from ("", "## Errors", "", _ERRORS, "", "## Limits")
    yield from table(("what", "limit"), _LIMITS)
    yield from ("", "## What CEL has beside", "", "These are refused by name:", "")
    yield from (f"* {what}" for what in UNSUPPORTED.values())
    yield from (f"* {what}" for what in _REFUSED_FORMS)


_LOGIC: Final = (
    ("`&&`, `||`", "bool", "And, or; an error is absorbed where the other one decides."),
    ("`!`", "bool", "Not."),
    ("`?:`", "bool, and two of one type", "The first where the condition holds, else the second."),
)
_FRESH: Final = (
    f"about {limits.FRESH_NS / 1e6:g} ms of work; beyond it the call fails, and goes on from there"
    " at the next attempt"
)
_LIMITS: Final = (
    ("characters", f"{limits.MAX_CHARACTERS}"),
    ("brackets within one another", f"{limits.MAX_NESTING}"),
    ("operations within one another", f"{limits.MAX_DEPTH} (`a && b && c` counts once)"),
    ("values in a list", f"{limits.MAX_LIST}"),
    ("`exists` and `all` within one another", f"{limits.MAX_MACROS}"),
    ("cost of all operations, by the checker's table", f"{limits.MAX_COST_US:g} us on 5,000 nodes"),
    ("characters of a pattern", f"{limits.MAX_PATTERN_CHARACTERS}"),
    ("characters of a text for `matches`", f"{limits.MAX_MATCHED_CHARACTERS}; more is an error"),
    ("text never seen before, in one decision", _FRESH),
)
_REFUSED_FORMS: Final = (
    "an element of a list by its number; lists added or compared; lists in lists; empty lists",
    "`exists` and `all` of anything but a list that is written down; `size()` of labels",
    "a label by a key that differs from node to node",
    "a node's string ordered by another or searched for another (`==` works)",
    "a node's string joined with anything but a literal; a string made of a node's number",
    "a pattern for `matches` that is no literal",
    "`?:` between labels; names in backquotes",
)


def _facts(owner: str, facts: list[tuple[str, str, str]]) -> Iterator[str]:
    rows = [(code(f"{owner}.{name}"), kind, what) for name, kind, what in facts]
    yield from table(("fact", "type", "what"), rows)


def _spelling(function: Function) -> str:
    forms = []
    arity = len(function.overloads[0].args)
    if function.as_method:
        forms.append(code(f"a.{function.name}({'b' if arity == 2 else ''})"))
    if function.as_function:
        forms.append(code(f"{function.name}({'a, b' if arity == 2 else 'a'})"))
    return " or ".join(forms)


def _forms(function: Function) -> str:
    """Say what it takes and returns: `int, int` where the result is of the same type."""
    return "; ".join(_form(each) for each in function.overloads)


def _form(overload: Overload) -> str:
    args = ", ".join(each.name for each in overload.args)
    return f"({args}) -> {overload.result.name}"
