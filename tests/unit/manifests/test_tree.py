from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubesched.manifests.nodes import MAX_DEPTH, MAX_DOCUMENT_CHARS, Document, Flaw, Node, Place
from cubesched.manifests.tree import MAX_BROKEN, MAX_REPEATED, read_documents


def values(text: str) -> list[object]:
    """Values of all documents, of which none may have a flaw."""
    found = list(read_documents(text))
    assert not [item for item in found if isinstance(item, Flaw) or item.flaws]
    return [item.root.value for item in found if isinstance(item, Document)]


def only_flaw(text: str) -> tuple[int, int, str]:
    (flaw,) = [item for item in read_documents(text) if isinstance(item, Flaw)]
    return (*flaw.place, flaw.message)


def root(text: str) -> Node:
    (document,) = read_documents(text)
    assert isinstance(document, Document)
    return document.root


def test_documents_are_read_as_json_would_hold_them() -> None:
    text = "a: [1, 0.5, yes, x, '1', null]\n---\n---\n- 5: {on: !!str 7}\n--- {b: !!float 1}\n"

    assert values(text) == [
        {"a": [1, 0.5, True, "x", "1", None]},
        None,
        [{"5": {"true": "7"}}],
        {"b": 1},
    ]


def test_json_is_yaml() -> None:
    assert values('{"a": {"b": [1, "x\\n"]}}') == [{"a": {"b": [1, "x\n"]}}]


def test_every_field_has_its_place() -> None:
    spec = root("kind: X\nspec:\n  filters:\n  - name: a\n  - {name: b}\n")

    filters = spec.below["spec"].below["filters"]
    assert spec.keys["spec"] == Place(2, 1)
    assert spec.below["spec"].keys["filters"] == Place(3, 3)
    assert filters.keys == {0: Place(4, 5), 1: Place(5, 5)}
    assert filters.below[1].keys["name"] == Place(5, 6)


def test_aliases_and_merged_maps_stand_for_what_they_name() -> None:
    text = "a: &x {k: 1, m: 2}\nb: *x\nc: {<<: *x, k: 3}\nd: {<<: [{m: 5}, *x]}\n&j e: *j\n"

    assert values(text) == [
        {
            "a": {"k": 1, "m": 2},
            "b": {"k": 1, "m": 2},
            "c": {"k": 3, "m": 2},
            "d": {"m": 5, "k": 1},
            "e": "e",
        }
    ]


def test_a_key_that_stands_twice_is_told_and_the_document_read() -> None:
    (document,) = read_documents("a: 1\nb: 2\na: 3\n")

    assert isinstance(document, Document)
    assert document.root.value == {"a": 3, "b": 2}
    assert document.flaws == (Flaw(Place(3, 1), 'the key "a" stands twice, first in line 1'),)


def test_keys_that_stand_twice_again_and_again_are_told_a_few_times_only() -> None:
    (document,) = read_documents("a: 1\n" * 1000)

    assert isinstance(document, Document)
    assert len(document.flaws) == MAX_REPEATED


def test_a_document_that_is_broken_costs_no_other() -> None:
    found = list(read_documents("a: 1\n---\nb: 'x\n---\nc: 3\n---\nd: ]\n\n---\ne: 5\n"))

    assert [item.root.value for item in found if isinstance(item, Document)] == [
        {"a": 1},
        {"c": 3},
        {"e": 5},
    ]
    assert [item.place.line for item in found if isinstance(item, Flaw)] == [4, 7]


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("a: b: c\n", 1, 5, "mapping values are not allowed"),
        ("a:\n\t- b\n", 2, 1, "cannot start any token"),
        ("a: [1,\nb: 2\n", 3, 1, "flow sequence"),
        ("a: *nothing\n", 1, 4, "there is no anchor &nothing before this"),
        ("a: &x [*x]\n", 1, 8, "*x is part of what it stands for"),
        ("? [a]\n: b\n", 1, 3, "a key must be text"),
        ("~: b\n", 1, 1, "a key must be text"),
        ("a: !!binary eA==\n", 1, 4, "the tag tag:yaml.org,2002:binary cannot be read here"),
        ("a: !!int x\n", 1, 4, "the tag tag:yaml.org,2002:int cannot be read here"),
        ("a: {<<: 1}\n", 1, 5, "<< must be given a map"),
        ("a: 1\nb: \x00\n", 2, 1, "not YAML: the character '\\x00' is not allowed"),
        ("a: b ? 1 : 2\n", 1, 10, 'put a text with ": " in it in quotes'),
        ("%YAML 3.0\n---\na: 1\n", 1, 1, "incompatible"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(
    text: str, line: int, column: int, words: str
) -> None:
    found = only_flaw(text)

    assert found[:2] == (line, column)
    assert words in found[2]


def test_depth_is_bounded_with_aliases_followed() -> None:
    deep = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)

    assert values(f"{deep}\n") == values(f"{deep}\n")
    assert "levels deep" in only_flaw(f"[[{deep}]]\n")[2]
    assert "nesting depth" in only_flaw("[" * 1_000_000)[2].replace("levels deep", "nesting depth")
    assert "levels deep" in only_flaw(f"a: &x {deep[1:-1]}\nb: [[[*x]]]\n")[2]


def test_aliases_that_multiply_are_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    began = time.monotonic()

    assert "aliases followed" in only_flaw("\n".join(lines))[2]
    assert time.monotonic() - began < 1.0


def test_a_document_is_no_larger_than_an_object_can_be() -> None:
    assert "aliases followed" in only_flaw(f"a: {'x' * MAX_DOCUMENT_CHARS}\n")[2]
    large = f"a: {'x' * (MAX_DOCUMENT_CHARS - 100)}\n"
    assert len(values(f"{large}---\n{large}")) == 2


def test_a_file_of_broken_documents_is_given_up() -> None:
    flaws = [item for item in read_documents("--- ]\n" * 1000) if isinstance(item, Flaw)]

    assert len(flaws) == MAX_BROKEN + 1
    assert flaws[-1].message == "too many errors: the rest of the file is not read"


PIECES = st.sampled_from(
    [
        *"abc01:-?[]{},&*!|>'\"%@`#\\~< \n\t\u2028\x85\x00\ufeff\u00e9",
        *("\n  ", "\n- ", ": ", "---\n", "<<: ", "!!int ", "&x ", "*x ", "...\n", '"\\ud800"'),
    ]
)


@given(st.lists(PIECES, max_size=60).map("".join))
def test_no_text_raises_anything(text: str) -> None:
    for item in read_documents(text):
        assert isinstance(item, Document | Flaw)


@given(st.text(max_size=200))
def test_no_characters_raise_anything(text: str) -> None:
    for item in read_documents(text):
        assert isinstance(item, Document | Flaw)
