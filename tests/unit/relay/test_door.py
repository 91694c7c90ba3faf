from __future__ import annotations

from typing import Any

import pytest

from cubesched.relay.door import Caller, Door, caller_of, check
from cubesched.relay.refusals import Refusal

NODES = "cubesched:nodes"


def a_certificate(user: str, *groups: str) -> dict[str, Any]:
    """Return a verified certificate as the ssl module shows it."""
    subject = [(("organizationName", group),) for group in groups]
    return {"subject": (*subject, (("commonName", user),))}


def test_a_certificate_says_user_and_groups() -> None:
    found = caller_of(a_certificate("cubesched:node:n1", NODES, "other"))

    assert found == Caller("cubesched:node:n1", frozenset({NODES, "other"}))


@pytest.mark.parametrize(
    "certificate",
    [
        None,
        {},
        {"subject": ()},
        {"subject": ((("commonName", "a"),), (("commonName", "b"),))},
    ],
    ids=["none", "unverified", "nameless", "two names"],
)
def test_who_cannot_be_told_is_a_stranger(certificate: dict[str, Any] | None) -> None:
    with pytest.raises(Refusal) as refused:
        Door().recognise(certificate)

    assert refused.value.code == 401


def test_an_agent_sees_its_own_node_and_how_far_the_server_is() -> None:
    agent = Door().recognise(a_certificate("cubesched:node:n1", NODES))

    check(agent, node="n1")
    check(agent, node=None)


@pytest.mark.parametrize(
    ("user", "group", "node"),
    [
        ("cubesched:node:n2", NODES, "n1"),
        ("cubesched:node:n", NODES, "n1"),
        ("cubesched:node:n1", "cubesched:operators", "n1"),
        ("n1", NODES, "n1"),
        ("admin", "system:masters", "n1"),
        ("admin", "system:masters", None),
    ],
)
def test_nobody_else_sees_a_node(user: str, group: str, node: str | None) -> None:
    caller = Door().recognise(a_certificate(user, group))

    with pytest.raises(Refusal) as refused:
        check(caller, node=node)

    assert refused.value.code == 403
    assert repr(user) in str(refused.value)


def test_only_the_named_group_may_be_somebody_else() -> None:
    certificate = a_certificate("sim", "simulators")
    as_node = {"as_user": ["cubesched:node:n1"], "as_groups": [NODES]}

    assert Door(impersonators="simulators").recognise(certificate, **as_node) == Caller(
        "cubesched:node:n1", frozenset({NODES})
    )
    for door in (Door(), Door(impersonators="others")):
        with pytest.raises(Refusal, match="'sim' may not impersonate"):
            door.recognise(certificate, **as_node)


def test_an_agent_cannot_be_another_by_saying_so() -> None:
    door = Door(impersonators="simulators")

    with pytest.raises(Refusal, match="may not impersonate"):
        door.recognise(
            a_certificate("cubesched:node:n2", NODES),
            as_user=["cubesched:node:n1"],
            as_groups=[NODES],
        )


def test_impersonators_name_one_user_with_its_groups() -> None:
    door = Door(impersonators="simulators")
    certificate = a_certificate("sim", "simulators", NODES)

    with pytest.raises(Refusal, match="must be one user"):
        door.recognise(certificate, as_user=["a", "b"])
    with pytest.raises(Refusal, match="is no node agent"):
        check(door.recognise(certificate, as_user=["cubesched:node:n1"]), node="n1")


def test_an_open_door_asks_nobody() -> None:
    check(Door(is_open=True).recognise(None), node="n1")
