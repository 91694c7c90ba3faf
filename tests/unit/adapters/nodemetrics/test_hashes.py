"""CubeMaster's hashes are asked for in slices, each node under at most two keys."""

from __future__ import annotations

from typing import Any, cast

import pytest
from redis.exceptions import ResponseError

from cubesched.adapters.nodemetrics.client import BlockingClient, packed
from cubesched.adapters.nodemetrics.hashes import SLICE, HashReports
from cubesched.core.errors import StoreUnavailable
from cubesched.fleet.cubemaster_layout import FIELDS

WORDS = [b"HMGET", b"", *(field.encode() for field in FIELDS)]
AN_ANSWER = [b"1800000000" if field == "update_at" else None for field in FIELDS]


class Store:
    """Answers packed HMGETs from a dict of keys."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.asked: list[list[str]] = []

    def exchange(self, commands: bytes, number: int) -> list[Any]:
        keys = [command.split(b"\r\n")[4].decode() for command in commands.split(b"*")[1:]]
        assert commands == b"".join(packed(WORDS[0], k.encode(), *WORDS[2:]) for k in keys)
        assert len(keys) == number
        self.asked.append(keys)
        return [self.values.get(key, [None] * len(FIELDS)) for key in keys]


def a_reader(store: Store) -> HashReports:
    return HashReports(cast("BlockingClient", store))


def test_a_node_is_looked_up_under_the_new_key_and_then_under_its_bare_id() -> None:
    store = Store({"cube:v1:master:node:metric:n1": AN_ANSWER, "n2": AN_ANSWER})

    decoded = a_reader(store).read(["n1", "n2", "n3"])

    assert decoded.names == ["n1", "n2"]
    assert store.asked == [[f"cube:v1:master:node:metric:n{n}" for n in (1, 2, 3)], ["n2", "n3"]]


def test_many_nodes_are_asked_for_in_slices() -> None:
    names = [f"n{number}" for number in range(SLICE * 2 + 1)]
    store = Store({f"cube:v1:master:node:metric:{name}": AN_ANSWER for name in names})

    assert a_reader(store).read(names).names == names
    assert [len(keys) for keys in store.asked] == [SLICE, SLICE, 1]


def test_no_nodes_ask_for_nothing() -> None:
    store = Store({})

    assert a_reader(store).read([]).names == []
    assert store.asked == []


def test_a_key_of_another_type_hides_its_own_node_only() -> None:
    wrong = ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value")
    store = Store({f"cube:v1:master:node:metric:{n}": a for n, a in
                   (("n1", wrong), ("n2", AN_ANSWER))})  # fmt: skip

    decoded = a_reader(store).read(["n1", "n2"])

    assert decoded.names == ["n2"]
    assert decoded.problems == {"type": 1}


def test_any_other_refusal_is_an_outage() -> None:
    store = Store({"cube:v1:master:node:metric:n1": ResponseError("NOPERM no permissions")})

    with pytest.raises(StoreUnavailable, match="NOPERM"):
        a_reader(store).read(["n1"])
