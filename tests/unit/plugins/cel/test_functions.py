"""Every operator and function on values worked out by hand, for columns and for constants alike."""

# ruff: noqa: E501 - a table of expressions
from __future__ import annotations

import math
from typing import Any

import pytest
from tests.unit.builders import a_node, a_pipeline, a_request, a_snapshot
from tests.unit.plugins.cel.asking import scores, verdicts
from tests.unit.plugins.cel.oracle import our_values

from cubesched.core.cycle import decide
from cubesched.core.decision import Placed
from cubesched.core.pipeline import WeightedScore
from cubesched.plugins.cel.celtypes import BOOL, DOUBLE, INT
from cubesched.plugins.cel.conversions import parse_double, parse_int
from cubesched.plugins.cel.plugins import expr_score
from cubesched.plugins.cel.program import compile_expression

TOP, BOTTOM = (1 << 63) - 1, -(1 << 63)
ERROR = "error"


def value(text: str, **facts: Any) -> Any:
    """Return the value on one node, or ERROR."""
    fleet = a_snapshot([a_node("n", **facts)])
    program = compile_expression(text, (BOOL, INT, DOUBLE))
    (found,) = our_values(program, fleet, a_request(labels={"k": "v"}))
    return found if isinstance(found, bool | int | float) else ERROR


@pytest.mark.parametrize(
    ("left", "sign", "right", "expected"),
    [
        (7, "+", 8, 15),
        (TOP, "+", 1, ERROR),
        (TOP, "+", -1, TOP - 1),
        (BOTTOM, "+", -1, ERROR),
        (BOTTOM, "-", 1, ERROR),
        (0, "-", BOTTOM, ERROR),
        (-1, "-", BOTTOM, TOP),
        (3, "*", -4, -12),
        (1 << 32, "*", 1 << 31, ERROR),
        (1 << 31, "*", -(1 << 32), BOTTOM),
        (BOTTOM, "*", -1, ERROR),
        ((1 << 31) + 1, "*", (1 << 31) - 1, (1 << 62) - 1),
        (7, "/", 2, 3),
        (-7, "/", 2, -3),
        (7, "/", -2, -3),
        (-8, "/", -2, 4),
        (7, "/", 0, ERROR),
        (BOTTOM, "/", -1, ERROR),
        (BOTTOM, "/", 1, BOTTOM),
        (7, "%", 3, 1),
        (-7, "%", 3, -1),
        (7, "%", -3, 1),
        (7, "%", 0, ERROR),
        (BOTTOM, "%", -1, ERROR),
    ],
)
def test_ints_are_exact_or_an_error(left: int, sign: str, right: int, expected: Any) -> None:
    assert value(f"{left} {sign} {right}") == expected
    assert value(f"node.mvm_num {sign} {right}", sandboxes=left) == expected
    assert value(f"{left} {sign} node.mvm_num", sandboxes=right) == expected
    columns = {"sandboxes": left, "creating": right}
    assert value(f"node.mvm_num {sign} node.creating", **columns) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.0 / 0.0", math.inf),
        ("-1.0 / 0.0", -math.inf),
        ("1.0 / -0.0", -math.inf),
        ("0.0 / 0.0", math.nan),
        ("1e308 * 10.0", math.inf),
        ("double('nan') / 0.0", math.nan),
        ("-node.cpu_load", -5.0),
        ("node.cpu_load / 0.0", math.inf),
        ("(node.cpu_load - node.cpu_load) / 0.0", math.nan),
        ("0.1 + 0.2", 0.1 + 0.2),
    ],
)
def test_doubles_follow_ieee_754(text: str, expected: float) -> None:
    found = value(text, cpu_load=5.0)

    assert math.isnan(found) if math.isnan(expected) else found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.0 / 0.0 == 0.0 / 0.0", False),
        ("0.0 / 0.0 != 0.0 / 0.0", True),
        ("0.0 / 0.0 in [0.0 / 0.0, 1.0]", False),
        ("node.cpu_load - node.cpu_load == 0.0 / 0.0", False),
        ("-0.0 == 0.0", True),
        ("false < true", True),
        ('"a" < "é" && "\\uffff" < "😀"', True),
        ('node.zone < "b" && "b" > node.zone', True),
        ('"a" <= node.zone && node.zone >= "a"', True),
        ('node.zone != "b" && "b" != node.zone && node.zone == node.labels.z', True),
        ('node.zone + "-x" == "a-x" && "x-" + node.zone == "x-a"', True),
        ('node.zone + "-x" == "-x" || node.zone + "-x" == "x"', False),
        ('("p" + node.zone + "s").startsWith("pas")', True),
        ('"abc".startsWith(node.zone) && "cba".endsWith(node.zone) && "bab".contains(node.zone)', True),
        ('node.zone.startsWith("") && node.zone.endsWith("") && node.zone.contains("")', True),
        ("size('héé') == 3 && 'é'.size() == 1 && size(node.labels.u) == 2", True),
        ("size([1, 2, 3]) == 3 && [node.id].size() == 1", True),
        ("size([1 / 0]) == 1", ERROR),
        ('node.labels.u.matches("^.é$") && matches(node.zone, "[a-c]")', True),
        ('node.zone.matches("^$")', False),
        ("node.mvm_num in [1, 4, 9] && !(node.mvm_num in [1, 9])", True),
        ("node.mvm_num in [4, 1 / 0]", ERROR),
        ('node.zone in ["a", "b"] && "a" in ["x", node.zone]', True),
        ('node.zone in ["b", request.labels.k]', False),
        ('"z" in node.labels && !("y" in node.labels) && "k" in request.labels', True),
        ("has(node.labels.z) && !has(node.labels.y) && has(request.labels.k)", True),
        ("has(node.labels) && has(request.labels) && has(node.mvm_num) && has(node.cpu_load)", True),
        ("[1, 2].exists(x, x == 2) && [1, 2].all(x, x > 0)", True),
        ("[1, 0].exists(x, 2 / x == 2)", True),
        ("[0, 1].exists(x, 2 / x == 2)", True),
        ("[1, 0].all(x, 2 / x == 3)", False),
        ("[1, 0].all(x, 2 / x == 2)", ERROR),
        ("[1 / 0, 1].exists(x, x == 1)", ERROR),
        ('["a", "b"].exists(z, ["x", z].exists(y, y == node.zone))', True),
        ("[1].exists(x, [2].exists(x, x == 2))", True),
        ("(node.mvm_num > 3 ? node.zone : 'q') == 'a'", True),
        ("node.zone in (node.mvm_num > 3 ? ['b'] : ['a'])", False),
        ("string(node.mvm_num == 4) == 'true' && string(request.priority) == '0'", True),
        ("node.mvm_num / 0 == 1 || true", True),
        ("true || node.mvm_num / 0 == 1", True),
        ("node.mvm_num / 0 == 1 && false", False),
        ("node.mvm_num / 0 == 1 && node.mvm_num == 4", ERROR),
        ("node.mvm_num / 0 == 1 || node.mvm_num == 5", ERROR),
        ("node.mvm_num / 0 == 1 && node.mvm_num == 5", False),
        ("!(node.mvm_num / 0 == 1)", ERROR),
        ("node.mvm_num == 4 ? true : node.mvm_num / 0 == 1", True),
        ("node.mvm_num == 5 ? true : node.mvm_num / 0 == 1", ERROR),
        ("node.mvm_num / 0 == 1 ? true : true", ERROR),
        ("request.priority / 0 == 1 ? true : true", ERROR),
        ("has(node.labels) ? true : double('x') == 1.0", True),
        ("node.mvm_num == 4 // it's a comment", True),
        ("node.mvm_num\n==\t4", True),
        ("node.mvm_num == 0x4 && node.mvm_num-1 == 3 && -node.mvm_num == -4", True),
        (r"'\x61\u0061\U00000061\141' == 'aaaa' && r'\n' == '\\n' && '''a''' == 'a'", True),
        (r"'\a\b\f\n\r\t\v\\\?\"\'\`' == " + r"'\x07\x08\x0c\x0a\x0d\x09\x0b\x5c\x3f\x22\x27\x60'", True),
    ],
)  # fmt: skip
def test_operators_and_functions(text: str, expected: Any) -> None:
    labels = {"z": "a", "u": "éé", "topology.kubernetes.io/zone": "a"}

    assert value(text, sandboxes=4, labels=labels, cpu_load=math.inf) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12), ("+12", 12), ("-12", -12), (" \t12\n", 12), ("007", 7), ("-0", 0),
        (str(TOP), TOP), (str(TOP + 1), None), (str(BOTTOM), BOTTOM), (str(BOTTOM - 1), None),
        ("0" * 500 + "1", 1), ("9" * 4000, None), ("", None), ("-", None), ("1_0", None),
        ("0x1f", None), ("1.0", None), ("1 2", None), ("\u00a012", None), ("١٢", None),
    ],
)  # fmt: skip
def test_ints_are_read_from_text_as_cel_does(text: str, expected: int | None) -> None:
    assert parse_int(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.5", 1.5), ("+1", 1.0), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), (" 1 ", 1.0),
        ("0x1p3", 8.0), ("0x.8", 0.5), ("-0x1p9999", -math.inf), ("1e400", math.inf),
        ("inf", math.inf), ("-INFINITY", -math.inf), ("", None), ("1e", None), ("1_0", None),
        ("e5", None), ("1d", None), (".", None), ("0x", None), ("٣", None), ("nan()", None),
    ],
)  # fmt: skip
def test_doubles_are_read_from_text_as_cel_does(text: str, expected: float | None) -> None:
    assert parse_double(text) == expected


def test_hostile_digits_are_read_in_time_that_grows_with_their_number() -> None:
    # One that tries every way to divide the digits would take hours.
    assert parse_double("1" * 1_000_000 + "x") is None
    assert parse_double("0x" + "f" * 1_000_000 + "y") is None
    assert parse_int("1" * 1_000_000 + "x") is None


def test_nan_is_read_from_text() -> None:
    found = parse_double("NaN")

    assert found is not None
    assert math.isnan(found)


@pytest.mark.parametrize("text", ["12", "x", "9223372036854775808", "1.5", "nan", ""])
def test_text_of_a_label_converts_as_a_literal_does(text: str) -> None:
    for function in ("int", "double"):
        literal = value(f'{function}("{text}")')
        label = value(f"{function}(node.labels.t)", labels={"t": text})
        assert label == literal or math.isnan(label) is math.isnan(literal) is True


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1.9, 1), (-1.9, -1), (math.nan, ERROR), (math.inf, ERROR), (1e30, ERROR),
        (9223372036854774784.0, 9223372036854774784), (9223372036854775807.0, ERROR),
        (-9223372036854775808.0, ERROR),
    ],
)  # fmt: skip
def test_doubles_become_ints_within_their_range(number: float, expected: Any) -> None:
    assert value("int(node.cpu_load * 1.0)", cpu_load=number) == expected
    assert value("double(node.mvm_num)", sandboxes=TOP) == 9.223372036854776e18


def test_partial_labels_fail_only_where_they_are_missing() -> None:
    fleet = a_snapshot([a_node("a", labels={"zone": "a", "x.io/gen": "2"}), a_node("b")])
    missing = "no such key: zone"

    assert verdicts('node.labels["zone"] == "a"', fleet) == [True, missing]
    assert verdicts('node.labels["zone"] == "a" || true', fleet) == [True, True]
    assert verdicts('false && node.labels["zone"] == "a"', fleet) == [False, False]
    assert verdicts('has(node.labels.zone) && node.labels.zone == "a"', fleet) == [True, False]
    gen = '"x.io/gen" in node.labels && node.labels["x.io/gen"] == "2"'
    assert verdicts(gen, fleet) == [True, False]


def test_a_label_that_no_node_carries_is_missing_everywhere() -> None:
    fleet = a_snapshot([a_node("a"), a_node("b")])

    assert verdicts('node.labels.nope == ""', fleet) == ["no such key: nope"] * 2
    assert verdicts('node.labels[request.instance_type] == ""', fleet) == ["no such key"] * 2


def test_an_empty_label_is_there() -> None:
    fleet = a_snapshot([a_node("a", labels={"gpu": ""}), a_node("b", labels={"x": "1"})])

    assert verdicts('has(node.labels.gpu) && node.labels.gpu == ""', fleet) == [True, False]
    assert verdicts('node.zone == "" && node.ip == ""', fleet) == [True, True]
    assert verdicts("node.labels.gpu == node.zone || true", fleet) == [True, True]


@pytest.mark.parametrize(
    ("text", "is_failure"),
    [
        ("0.0 / 0.0", True),
        ("1.0 / 0.0", True),
        ("-1.0 / 0.0", True),
        ('double("nan")', True),
        ("1 / 0", True),
        ("9223372036854775807 + 1", True),
        ("int(1e30)", True),
        ("100.0000001", True),
        ("-0.0001", True),
        ("-0.0", False),
        ("100", False),
    ],
)
def test_a_score_that_is_no_score_takes_the_failure_policy(text: str, is_failure: bool) -> None:
    fleet = a_snapshot([a_node("a"), a_node("b")])
    pipeline = a_pipeline(WeightedScore(expr_score("s", text), 1.0, 7.0))

    decision = decide(fleet, a_request(), pipeline)

    assert isinstance(decision, Placed)
    assert [fault.plugin for fault in decision.faults] == ["s"] * is_failure
    assert (decision.score == 7.0) == is_failure


def test_scores_of_a_guide_work() -> None:
    fleet = a_snapshot([a_node("a", cpu_util_percent=10.0), a_node("b", cpu_util_percent=60.0)])

    assert scores("node.cpu_util < 60.0 ? 80.0 : 20.0", fleet) == [80.0, 20.0]
