from __future__ import annotations

import argparse

import pytest

from cubesched.cli import Parser, main
from cubesched.cli.agent import register
from cubesched.cli.agent_options import behaviour_of, machines_of
from cubesched.core.errors import UsageError
from cubesched.fleet.entries import Weight

GIB = 1 << 30


def parse(*argv: str) -> argparse.Namespace:
    parser = Parser()
    register(parser.add_subparsers())
    return parser.parse_args(["agent", "--simulate", "3", *argv])


def test_the_defaults_are_those_of_the_help() -> None:
    args = parse()

    assert machines_of(args).capacity == Weight(64_000, 256 * GIB)
    assert machines_of(args).quota is None
    assert machines_of(args).names() == ["node-000", "node-001", "node-002"]
    behaviour = behaviour_of(args)
    assert (behaviour.create_delay_seconds, behaviour.missing_template_delay_seconds) == (0.2, 0.8)
    assert behaviour.lifetime_seconds is None


def test_options_reach_machines_and_behaviour() -> None:
    args = parse(
        *("--cpu", "8", "--memory", "16Gi", "--quota-cpu", "16", "--sandboxes", "7"),
        *("--images", "app:1=5Gi, b=1", "--image-share", "0.5"),
        *("--templates", "a,b", "--zones", "z1, z2", "--prefix", "x-", "--heterogeneous"),
        *("--lifetime", "30s..2m", "--fail-rate", "0.5", "--refuse-nodes", "x-001", "--seed", "9"),
    )

    machines, behaviour = machines_of(args), behaviour_of(args)
    assert (machines.capacity, machines.quota) == (
        Weight(8000, 16 * GIB),
        Weight(16_000, 16 * GIB),
    )
    assert (machines.templates, machines.zones) == (("a", "b"), ("z1", "z2"))
    assert (machines.images, machines.image_share) == ({"app:1": 5 * GIB, "b": 1}, 0.5)
    assert machines.names()[0] == "x-000"
    assert machines.heterogeneous
    assert behaviour.lifetime_seconds == (30.0, 120.0)
    assert behaviour.run_fail_rate == 0.5
    assert behaviour.refusing_nodes == {"x-001"}
    assert behaviour.seed == machines.seed == 9


def test_one_lifetime_is_a_range_of_one() -> None:
    assert behaviour_of(parse("--lifetime", "30s")).lifetime_seconds == (30.0, 30.0)


@pytest.mark.parametrize(
    ("argv", "option"),
    [
        (["--cpu", "many"], "--cpu"),
        (["--images", "app:1"], "--images"),
        (["--images", "app=large"], "--images"),
        (["--memory", "1 Gi"], "--memory"),
        (["--lifetime", "long"], "--lifetime"),
        (["--lifetime", "9s..3s"], "--lifetime"),
        (["--create-delay", "-1s"], "--create-delay"),
        (["--fail-rate", "2"], "--fail-rate"),
        (["--fail-rate", "nan"], "--fail-rate"),
        (["--sandboxes", "0"], "--sandboxes"),
        (["--simulate", "0"], "--simulate"),
        (["--prefix", "Node_"], "--prefix"),
        (["--prefix", "-node"], "--prefix"),
    ],
)
def test_a_wrong_value_names_its_option(argv: list[str], option: str) -> None:
    def read() -> None:
        args = parse(*argv)
        machines_of(args)
        behaviour_of(args)

    with pytest.raises(UsageError, match=option):
        read()


def test_an_unreachable_redis_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["agent", "--simulate", "1", "--redis-url", "redis://127.0.0.1:1/0"])

    error = capsys.readouterr().err
    assert code == 2
    assert error.startswith("cubesched: Redis")
    assert error.count("\n") == 1
