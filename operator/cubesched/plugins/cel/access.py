"""Reading facts and labels: the leaves of every expression."""

from __future__ import annotations

from typing import Final

import numpy as np

from cubesched.core.snapshot import Codes
from cubesched.plugins.cel.facts import NodeFact, RequestFact
from cubesched.plugins.cel.texts import VOCABULARY
from cubesched.plugins.cel.typed import Errors, Typed
from cubesched.plugins.cel.values import NO_ERROR, Env, Error, Pair, Run, Text, either, failing

NO_KEY: Final = "no such key"


def constant(value: object) -> Run:
    """Return a literal's value."""
    pair: Pair = (value, NO_ERROR)
    return lambda _: pair


def node_fact(fact: NodeFact, errors: Errors) -> Run:
    """Return a fact of each node; an error where it is unknown."""
    read = fact.read
    if not fact.may_be_unknown:
        return lambda env: (read(env)[0], NO_ERROR)
    number = errors.number(f"node.{fact.name} is not known")

    def run(env: Env) -> Pair:
        value, unknown = read(env)
        return value, NO_ERROR if unknown is None else failing(unknown, number)

    return run


def knows(fact: NodeFact) -> Run:
    """Return `has(node.fact)`: where it is known."""

    def run(env: Env) -> Pair:
        unknown = fact.read(env)[1]
        return True if unknown is None else np.logical_not(unknown), NO_ERROR

    return run


def request_fact(fact: RequestFact) -> Run:
    """Return a fact of the request."""
    return lambda env: (fact.read(env.request), NO_ERROR)


def node_label(key: Typed, errors: Errors) -> Run:
    """Return the label of each node; an error that names the key where it is missing."""
    number, find = _no_such_key(key, errors), key.run

    def run(env: Env) -> Pair:
        name, error = find(env)
        codes = env.fleet.labels.get(name)
        if codes is None:
            return "", either(error, number)
        codes = env.of(codes)
        text = Text(codes, VOCABULARY.interned(env.fleet.label_values))
        return text, either(error, failing(codes == 0, number))

    return run


def has_node_label(key: Typed) -> Run:
    """Return which nodes carry the label."""
    find = key.run

    def run(env: Env) -> Pair:
        name, error = find(env)
        codes: Codes | None = env.fleet.labels.get(name)
        return (False if codes is None else env.of(codes) != 0), error

    return run


def request_label(key: Typed, errors: Errors) -> Run:
    """Return the label of the request; an error that names the key where it is missing."""
    number, find = _no_such_key(key, errors), key.run

    def run(env: Env) -> Pair:
        name, error = find(env)
        value = env.request.labels.get(name)
        missing: Error = number if value is None else NO_ERROR
        return value or "", either(error, missing)

    return run


def has_request_label(key: Typed) -> Run:
    """Return whether the request carries the label."""
    find = key.run

    def run(env: Env) -> Pair:
        name, error = find(env)
        return name in env.request.labels, error

    return run


def _no_such_key(key: Typed, errors: Errors) -> int:
    return errors.number(f"{NO_KEY}: {key.literal}" if key.is_literal else NO_KEY)
