from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from cubesched.cli.options import name_prefix, object_name, request_name, share, whole_number


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("007", 7), ("10", 10)])
def test_a_whole_number_is_read_within_its_range(text: str, number: int) -> None:
    assert whole_number(1, 10)(text) == number


@pytest.mark.parametrize("text", ["0", "11", "-1", "1.0", "x", "", " 1", "9" * 5000])
def test_any_other_number_is_refused_with_the_range(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="whole number from 1 to 10"):
        whole_number(1, 10)(text)


@pytest.mark.parametrize("text", ["-0.1", "1.1", "nan", "x"])
def test_a_share_is_between_nothing_and_all(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="from 0 to 1"):
        share(text)


@pytest.mark.parametrize("text", ["", "n", "node-", "a.b-", "rack-1.node-"])
def test_a_prefix_may_begin_any_object_name(text: str) -> None:
    assert name_prefix(text) == text


@pytest.mark.parametrize("text", ["-n", ".n", "a..b", "a-.b", "Node", "n_", "n" * 201])
def test_a_prefix_that_begins_no_object_name_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="begins no object name"):
        name_prefix(text)


@pytest.mark.parametrize("text", ["", "..", "../x", "n1/status", "n1?x=1", "N1", "n1-", "a" * 254])
def test_what_names_no_object_is_refused_before_it_is_part_of_a_path(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        object_name(text)
    with pytest.raises(ArgumentTypeError):
        request_name(f"default/{text}")


@pytest.mark.parametrize("text", ["n", "node-1.z", "a" * 253])
def test_the_name_of_an_object_is_taken(text: str) -> None:
    assert object_name(text) == text
    assert request_name(f"ns/{text}") == ("ns", text)
