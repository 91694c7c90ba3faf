"""What the checker refuses: where, in which words, with which hint."""

# ruff: noqa: E501, ISC004 - a table of messages
from __future__ import annotations

import pytest
from tests.unit.plugins.cel.asking import problems

from cubesched.plugins.cel.functions import UNSUPPORTED
from cubesched.plugins.cel.limits import MAX_LIST


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("node.nope < 1", "1:6 undefined field 'nope' of node"),
        ("node.creatin < 1", "1:6 undefined field 'creatin' of node; did you mean \"creating\"?"),
        ('node.name == "a"', "1:6 undefined field 'name' of node; did you mean \"id\"?"),
        ("has(node.nope)", "1:10 undefined field 'nope' of node"),
        (
            "request.cpu_milli > 5",
            "1:9 undefined field 'cpu_milli' of request; did you mean \"cpu_millis\"?",
        ),
        ("nope < 1", "1:1 undeclared name 'nope'; did you mean \"node\"?"),
        ("node", "1:1 node is no value of its own: write node.FIELD"),
        ("node.cpu_util < 60", "1:17 cannot compare double with int; write 60.0"),
        ("60 > node.cpu_util", "1:1 cannot compare int with double; write 60.0"),
        (
            "node.cpu_util < node.creating",
            "1:22 cannot compare double with int; convert with double()",
        ),
        ("node.cpu_util + 1 < 2.0", "1:17 cannot add double and int; write 1.0"),
        ("node.cpu_util % 2.0 < 2.0", "1:6 cannot take the remainder of double by double; it takes"
         " ints only"),
        ("true + false == 1", "1:1 cannot add bool and bool"),
        ("-node.id == node.id", "1:7 - wants an int or a double, found string"),
        ("node.creating && true", "1:6 && wants bool, found int"),
        ("!node.creating", "1:7 ! wants bool, found int"),
        ("1 ? true : false", "1:1 ? wants bool before it, found int"),
        ('(true ? 80 : "x") == 80', "1:14 branches of ?: differ: int and string"),
        ("request.labels.team > 3", "1:16 cannot compare string with int"),
        ('node.labels == "a"', "1:6 cannot compare map(string, string) with string"),
        ("size(node.name) == 1", "1:11 undefined field 'name' of node; did you mean \"id\"?"),
        ("size(node.creating) == 1", "1:1 size does not take (int); it takes string or a list that"
         " is written down"),
        ('node.id.startswith("z")', "1:9 unknown method 'startswith'; did you mean"
         ' "startsWith"?'),
        ('startsWith(node.id, "z")', "1:1 startsWith is a method: write a.startsWith(b)"),
        ("node.creating.int() == 1", "1:15 int is a function: write int(a)"),
        ("exists(node.id)", "1:1 exists is a method of a list: `[...].exists(x, test)`"),
        ("ceil(1.5) == 2.0", "1:1 unknown function 'ceil'; known are double, int, matches, size,"
         " string"),
        ('node.id.matches("(")', "1:17 not a regular expression of RE2: missing ): ("),
        ("node.id.matches(node.zone)", "1:22 matches takes a pattern that is written down"),
        ('node.id.matches(request.template_id)', "1:25 matches takes a pattern that is written"
         " down"),
        ("node.id.matches('(a{1000}){1000}')", None),
        ("node.creating", "1:6 the expression returns int; wanted is bool"),
        ("1", "1:1 the expression returns int; wanted is bool"),
        ("has(node)", "1:1 has() takes one field, as in has(node.labels.zone)"),
        ("node.id.x == 1", "1:9 string has no fields, so no 'x'"),
        ("has(node.id.x)", "1:13 string has no fields"),
        ('node.id["x"] == "y"', "1:9 string has no keys"),
        ('node.labels[1] == "y"', "1:13 keys of labels are strings, found int"),
        ('node.labels[node.id] == "y"', "1:18 a key that differs from node to node: not supported"),
        ("node.creating in [1.0]", "1:6 cannot look for int in list(double); convert with double()"),
        ("1 in [1.0]", "1:1 cannot look for int in list(double); write 1.0"),
        ('"a" in node.id', "1:1 cannot look for string in string; write a list, or the labels of"
         " node or request"),
        ("1 in [1, 2.0]", "1:10 a list holds values of one type, found int and double"),
        ("[1, 2].exists(x, x)", "1:18 exists() wants bool, found int"),
        ("[1, 2].exists(node, node == 1)", "1:15 node has a meaning already"),
        ("[1, 2].exists(x)", "1:8 write [...].exists(x, test), where x is a name of your own"),
        ("node.labels.exists(k, true)", "1:13 exists() of map(string, string): only of a list that"
         " is written down"),
        ("(true || node.healthy ? node.labels : request.labels).a == 'x'", None),
        ("node.id < node.zone", "1:16 < of two strings of the node: not supported"),
        ("node.id + node.zone == 'a'", "1:16 + of two strings of the node: not supported"),
        ("node.id + request.template_id == 'a'", "1:6 a string of the node takes only a literal"
         " before or after it"),
        ("string(node.creating) == 'a'", "1:13 string() of an int of the node: not supported"),
        ("string(1.5) == 'a'", "1:1 string does not take (double); it takes int or string"),
        ("node.labels.as == 'a'", '1:13 as is a reserved word; a label of that name is'
         ' labels["as"]'),
        ("in('a')", "1:1 in is a reserved word; a label of that name is labels[\"in\"]"),
    ],
)  # fmt: skip
def test_each_error_has_its_place_and_a_hint(text: str, problem: str | None) -> None:
    found = problems(text)

    assert len(found) == 1
    if problem is not None:
        assert found == [problem]


def test_a_score_that_returns_a_bool_is_told_how_to_mend_it() -> None:
    assert problems("node.healthy", score=True) == [
        "1:6 the expression returns bool; wanted is double or int: write ... ? 100.0 : 0.0"
    ]
    assert problems('"a"', score=True) == [
        "1:1 the expression returns string; wanted is double or int"
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1u == 1u", "uint"),
        ('b"a" == b"a"', "bytes"),
        ("null == null", "null"),
        ('{"a": 1}.a == 1', "map literals"),
        ("T{a: 1} == 1", None),
        (".node.healthy", "names that begin with a dot"),
        ("dyn(1) == 1", None),
        ("type(1) == int", None),
        ("uint(1) == 1", None),
        ('bytes("a") == "a"', None),
        ('bool("true")', None),
        ('timestamp("x") == 1', None),
        ('duration("1s") == 1', None),
        ("[1].map(x, x) == [1]", "map"),
        ("[1].filter(x, true) == [1]", "filter"),
        ("[1].exists_one(x, true)", "exists_one"),
        ("[1, 2][0] == 1", None),
        ("[] == []", None),
        ("[[1]].exists(x, true)", None),
    ],
)
def test_what_is_not_supported_is_refused_by_name(text: str, what: str | None) -> None:
    found = problems(text)

    assert all("not supported" in problem or "undeclared" in problem for problem in found)
    if what is not None:
        assert UNSUPPORTED[what] in found[0]


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert problems('node.nope < 1 &&\n  node.cpu_util > 5 || [1u].exists(x, node.id == "a")') == [
        "1:6 undefined field 'nope' of node",
        "2:19 cannot compare double with int; write 5.0",
        "2:25 unsigned ints, as in `1u`: not supported",
    ]


def test_no_more_than_ten_problems_are_told() -> None:
    assert len(problems(" || ".join(f"node.x{number} == 1" for number in range(20)))) == 10


def test_a_long_list_is_refused() -> None:
    listed = ", ".join(["1"] * (MAX_LIST + 1))

    assert problems(f"1 in [{listed}]") == ["1:6 a list of 101 values; allowed are 100"]
