"""The reference page of expressions has everything that the checker knows."""

from __future__ import annotations

import re

from cubesched.generate.cel import cel_page
from cubesched.plugins.cel.facts import NODE_FACTS, REQUEST_FACTS
from cubesched.plugins.cel.functions import FUNCTIONS, MACROS, OPERATORS, UNSUPPORTED
from cubesched.plugins.cel.program import FILTER, SCORE, compile_expression


def test_every_fact_operator_function_and_macro_is_on_the_page() -> None:
    page = cel_page()

    for fact in NODE_FACTS:
        assert f"| `node.{fact.name}` | {fact.type.name} | " in page
    for each in REQUEST_FACTS:
        assert f"| `request.{each.name}` | {each.type.name} | " in page
    for name in (*(each.name for each in OPERATORS), *MACROS):
        assert f"| `{name}` |" in page
    for function in FUNCTIONS:
        assert re.search(rf"`(a\.)?{function.name}\(", page)
    for what in UNSUPPORTED.values():
        assert f"* {what}\n" in page


def test_the_examples_of_the_page_compile() -> None:
    entries = re.findall(r"type: expr, expr: ([^}\n]*)\}", cel_page())

    assert len(entries) == 3
    for entry in entries[:2]:
        compile_expression(entry.strip("'"), FILTER)
    compile_expression(entries[2].strip('"'), SCORE)
