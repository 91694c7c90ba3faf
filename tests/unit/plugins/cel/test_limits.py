"""No expression and no data can stall a decision: counted work, never a clock."""

# ruff: noqa: ISC004 - a table of messages
from __future__ import annotations

import inspect
import sys

import pytest
from tests.unit.builders import NodeFacts, a_node, a_request, a_snapshot
from tests.unit.plugins.cel.asking import forget_programs, problems, verdicts

from cubesched.core.errors import PluginError
from cubesched.core.snapshot import Snapshot
from cubesched.plugins.cel import limits
from cubesched.plugins.cel.plugins import OVER_BUDGET, expr_filter
from cubesched.plugins.cel.problems import ExpressionInvalid
from cubesched.plugins.cel.program import FILTER, compile_expression
from cubesched.plugins.cel.values import Env, OutOfBudget

TOO_DEEP = "nested too deeply; allowed are 50 operations within one another"
TOO_DEAR = "the expression costs too much: make it or its lists shorter, or split it"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x" * 4097, "1:1 the expression has 4097 characters; allowed are 4096"),
        ("1" * (1 << 20), "1:1 the expression has 1048576 characters; allowed are 4096"),
        (" " * 65_536, "1:1 the expression has 65536 characters; allowed are 4096"),
        ("", "1:1 the expression is empty"),
        (" \n// nothing", "1:1 the expression is empty"),
        ("(" * 200 + "1" + ")" * 200, "1:33 nested too deeply; allowed are 32 brackets within one"
         " another"),
        ("[" * 400, "1:33 nested too deeply; allowed are 32 brackets within one another"),
        ("!" * 1000 + "true", f"1:1001 {TOO_DEEP}"),
        ("-" * 1000 + "1 == 1", f"1:1000 {TOO_DEEP}"),
        ("+".join(["1"] * 500) + " == 1", f"1:1 {TOO_DEEP}"),
        ("true ? true : " * 250 + "true", f"1:687 {TOO_DEEP}"),
        ("node.labels" + ".a" * 1000 + " == 1", f"1:1 {TOO_DEEP}"),
        ("node.creating < 8 ?", "1:20 the expression ends too early"),
        ("node.creating < 8 8", "1:19 unexpected 8"),
        ("node.creating = 8", "1:15 unexpected =; write == to compare"),
        ("1 == 5.", "1:6 unexpected 5."),
        ("1 inx", "1:5 unexpected x"),
        ("node.id == \"a", "1:12 unexpected \"; a text that does not end here, or an escape that"
         " CEL does not have"),
        ("node.id == 'a\\d'", "1:12 unexpected '; a text that does not end here, or an escape that"
         " CEL does not have"),
        ("node.id == '\\ud800'", "1:12 \\ud800 is no character of Unicode"),
        ("1 == 9223372036854775808", "1:6 9223372036854775808 does not fit into an int of 64 bits"),
        ("1.0 == 1e400", "1:8 1e400 does not fit into a double"),
        ("ünode.healthy", "1:1 unexpected ü"),
        ("node.healthy\x00", "1:13 unexpected U+0000"),
    ],
)  # fmt: skip
def test_what_is_too_long_or_deep_or_no_expression_is_refused(text: str, problem: str) -> None:
    assert problems(text) == [problem]


@pytest.mark.parametrize("count", [400, 500])
def test_a_long_chain_of_and_is_no_deep_one(count: int) -> None:
    fleet = a_snapshot([a_node("a")])

    assert verdicts("&&".join(["true"] * count), fleet) == [True]


def test_the_recursion_limit_of_the_process_is_left_alone() -> None:
    before = sys.getrecursionlimit()
    forget_programs()

    compile_expression("node.creating < 8", FILTER)

    assert sys.getrecursionlimit() == before


def test_a_caller_that_is_deep_itself_gets_a_refusal_and_no_crash() -> None:
    forget_programs()
    text = "node.creating < 8 || " + "(" * 30 + "true" + ")" * 30

    def at_depth(calls: int) -> list[str]:
        if calls:
            return at_depth(calls - 1)
        try:
            compile_expression(text, FILTER)
        except ExpressionInvalid as error:
            return [problem.message for problem in error.problems]
        return []

    used = len(inspect.stack(0))

    assert at_depth(sys.getrecursionlimit() - used - 25) == [TOO_DEEP]
    assert at_depth(0) == []


@pytest.mark.parametrize(
    "text",
    [
        "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, node.creating != a * b))",
        " || ".join(f"node.mvm_num / {number} == 1" for number in range(1, 60)),
        " || ".join(["node.id.contains(request.template_id)"] * 4),
        "["
        + ",".join(["node.creating"] * 100)
        + "].exists(x, node.mvm_num in [x, x, x, x, x, x, x, x])",
        "size(" + " + ".join(["(node.healthy ? 'a' : 'b')"] * 20) + ") > 3",
    ],
)
def test_what_costs_too_much_is_refused(text: str) -> None:
    assert [problem.split(" ", 1)[1] for problem in problems(text)] == [TOO_DEAR]


@pytest.mark.parametrize("depth", [3, 4, 5, 8])
def test_nested_macros_are_refused(depth: int) -> None:
    listed = "[1,2,3,4,5,6,7,8,9,10]"
    text = "true"
    for level in range(depth):
        text = f"{listed}.all(x{level}, {text})"

    assert len(problems(text)) == 1


def hosts(count: int, *, start: int = 0, length: int = 0) -> list[NodeFacts]:
    return [
        a_node(f"node-{number:05}", labels={"host": f"host-{number:05}" + "x" * length})
        for number in range(start, start + count)
    ]


def spent(text: str, fleet: Snapshot) -> float:
    """Return how much of the budget for new text one evaluation takes."""
    env = Env(fleet, a_request(template_id="t"))
    allowed = env.fresh_ns
    compile_expression(text, FILTER).root.run(env)
    return allowed - env.fresh_ns


def attempts(text: str, fleet: Snapshot) -> int:
    """Return how many calls it takes until a filter answers."""
    flt = expr_filter("f", text)
    for number in range(1, 1000):
        try:
            flt.keep(fleet, a_request())
        except PluginError as error:
            if error.message != OVER_BUDGET:
                raise
        else:
            return number
    raise AssertionError("it never answers")


def test_a_text_is_looked_at_once_and_never_again() -> None:
    forget_programs()
    fleet = a_snapshot(hosts(500))
    text = 'node.labels.host.contains("-00") || node.labels.host.matches("9$")'

    first = spent(text, fleet)

    assert first > 500 * (limits.TEXT_NS + limits.MATCH_NS)
    assert spent(text, fleet) == 0


def test_new_values_cost_only_themselves() -> None:
    forget_programs()
    text = 'node.labels.host.contains("-00")'
    nodes = hosts(500)
    fleet = a_snapshot(nodes)
    spent(text, fleet)

    column = fleet.labels["host"].copy()
    for number in range(20):
        value = f"fresh-{number}"
        fleet.label_values[value] = len(fleet.label_values) + 1  # type: ignore[index]
        column[number] = fleet.label_values[value]
    fleet.labels["host"][:] = column

    assert spent(text, fleet) < limits.FRESH_START_NS + 40 * limits.TEXT_NS


def test_one_operation_on_as_many_texts_as_nodes_is_within_one_decision() -> None:
    forget_programs()
    fleet = a_snapshot(hosts(5_000))

    assert attempts('node.labels.host.startsWith("host-0")', fleet) == 1


def test_more_new_text_than_one_decision_may_read_is_read_over_several() -> None:
    forget_programs()
    fleet = a_snapshot(hosts(5_000))
    text = " || ".join(f'node.labels.host.contains("q{number}")' for number in range(10))

    assert 2 <= attempts(text, fleet) <= 10
    assert attempts(text, fleet) == 1


def test_the_budget_is_overdrawn_by_one_bit_at_most() -> None:
    forget_programs()
    fleet = a_snapshot(hosts(5_000, length=50))
    text = " || ".join(f'node.labels.host.contains("q{number}")' for number in range(20))
    env = Env(fleet, a_request())

    with pytest.raises(OutOfBudget):
        compile_expression(text, FILTER).root.run(env)

    assert -256 * (limits.TEXT_NS + 80) - limits.FRESH_START_NS < env.fresh_ns < 0


def test_long_labels_count_by_their_length() -> None:
    forget_programs()
    short, long = a_snapshot(hosts(10)), a_snapshot(hosts(10, length=100_000))

    assert spent('node.labels.host.contains("q")', long) > 500 * 10
    assert spent('node.labels.host.contains("q")', short) < 100_000


def test_long_texts_are_looked_at_in_smaller_bits() -> None:
    forget_programs()
    fleet = a_snapshot(hosts(300, length=60_000))
    env = Env(fleet, a_request())

    with pytest.raises(OutOfBudget):
        compile_expression('node.labels.host.contains("q")', FILTER).root.run(env)

    assert env.fresh_ns > -200_000
    assert attempts('node.labels.host.contains("q")', fleet) > 3


def test_a_hostile_pattern_is_paid_for_by_the_time_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_programs()
    ticks = iter(range(0, 10**12, 400_000))  # every look at the clock: 0.4 ms later
    monkeypatch.setattr("time.thread_time_ns", lambda: next(ticks))
    fleet = a_snapshot(hosts(200))

    assert attempts('node.labels.host.matches("(a|b)*a(a|b){12}")', fleet) > 2


def test_text_too_long_to_match_is_an_error_on_that_node() -> None:
    nodes = [*hosts(1), a_node("z", labels={"host": "x" * 1025})]
    too_long = "text of more than 1024 characters for matches"

    assert verdicts('node.labels.host.matches("host")', a_snapshot(nodes)) == [True, too_long]
    assert verdicts(
        'request.template_id.matches("host")',
        a_snapshot(nodes),
        a_request(template_id="x" * 1025),
    ) == [too_long, too_long]


@pytest.mark.parametrize(
    "pattern", ["(a{1,100}){1,100}", "(" * 20 + "a" + "{2}){2}" * 10, "a" * 300, "(?:a{500}){3}"]
)
def test_a_pattern_that_grows_too_large_is_refused(pattern: str) -> None:
    assert len(problems(f'node.id.matches("{pattern}")')) == 1
