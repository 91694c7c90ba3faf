"""The options of `cubesched agent`: what they are called, and what machines they ask for."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from cubesched.agent.simulated import Behaviour
from cubesched.agent.simulation import Machines
from cubesched.api.duration import DurationError, parse_seconds
from cubesched.api.quantity import QuantityError, parse_millis, parse_units
from cubesched.cli import Parser
from cubesched.cli.options import name_prefix, share, whole_number
from cubesched.core.errors import UsageError
from cubesched.fleet.entries import Weight
from cubesched.settings import DEFAULT_REDIS_URL


def machines_of(args: argparse.Namespace) -> Machines:
    """Return what the machines are like; UsageError names the option that is wrong."""
    capacity = Weight(
        _amount("--cpu", args.cpu, parse_millis),
        _amount("--memory", args.memory, parse_units),
        _amount("--system-disk", args.system_disk, parse_units),
    )
    quota = Weight(
        _amount("--quota-cpu", args.quota_cpu or args.cpu, parse_millis),
        _amount("--quota-memory", args.quota_memory or args.memory, parse_units),
        capacity.disk_bytes,
    )
    return Machines(
        count=args.simulate,
        prefix=args.prefix,
        capacity=capacity,
        quota=quota if quota != capacity else None,
        sandboxes=args.sandboxes,
        heterogeneous=args.heterogeneous,
        templates=_names(args.templates),
        template_share=args.template_share,
        images=_images(args.images),
        image_share=args.image_share,
        zones=_names(args.zones),
        address=args.address,
        seed=args.seed,
    )


def behaviour_of(args: argparse.Namespace) -> Behaviour:
    """Return how the machines behave; UsageError names the option that is wrong."""
    return Behaviour(
        seed=args.seed,
        create_delay_seconds=_seconds("--create-delay", args.create_delay),
        missing_template_delay_seconds=_seconds(
            "--missing-template-delay", args.missing_template_delay
        ),
        lifetime_seconds=_lifetime(args.lifetime),
        start_fail_rate=args.start_fail_rate,
        run_fail_rate=args.fail_rate,
        refuse_rate=args.refuse_rate,
        refusing_nodes=frozenset(_names(args.refuse_nodes)),
    )


def add_connections(parser: Parser) -> None:
    """Add the options on what the nodes talk to."""
    group = parser.add_argument_group("connections")
    group.add_argument("--kubeconfig", help="default: as kubectl finds it")
    group.add_argument("--context", help="context of the kubeconfig")
    group.add_argument(
        "--redis-url",
        default=os.environ.get("CUBESCHED_REDIS_URL", DEFAULT_REDIS_URL),
        help=f"default: $CUBESCHED_REDIS_URL, else {DEFAULT_REDIS_URL}",
    )
    watches = group.add_mutually_exclusive_group()
    watches.add_argument(
        "--shared-watch", action="store_true", help="one watch for all nodes, not one each"
    )
    watches.add_argument("--relay", metavar="URL", help="one watch each, at this `cubesched relay`")
    group.add_argument(
        "--relay-ca",
        type=Path,
        metavar="FILE",
        help="authority of the relay's certificate (default: the kubeconfig's)",
    )
    group.add_argument("--log", type=Path, help="append one JSON line for each start and stop")
    group.add_argument("-v", "--verbose", action="store_true", help="log what each node does")


def add_machines(parser: Parser) -> None:
    """Add the options that `machines_of` reads."""
    group = parser.add_argument_group("machines")
    group.add_argument(
        "--prefix", type=name_prefix, default="node-", help="of the node names (default: node-)"
    )
    group.add_argument("--cpu", default="64", help="capacity (default: 64)")
    group.add_argument("--memory", default="256Gi", help="capacity (default: 256Gi)")
    group.add_argument("--system-disk", default="0", help="capacity (default: 0, not limited)")
    group.add_argument("--quota-cpu", help="what requests may take in all (default: capacity)")
    group.add_argument("--quota-memory", help="what requests may take in all (default: capacity)")
    count = whole_number(1, 100_000)
    group.add_argument("--sandboxes", type=count, help="most sandboxes on one node")
    group.add_argument(
        "--heterogeneous", action="store_true", help="some nodes half, some double the size"
    )
    group.add_argument("--templates", default="", help="template ids, as in t1,t2")
    group.add_argument(
        "--template-share",
        type=share,
        default=0.3,
        help="share of the nodes that store each template (default: 0.3)",
    )
    group.add_argument("--images", default="", help="images with their size, as in app:1=5Gi")
    group.add_argument(
        "--image-share",
        type=share,
        default=0.3,
        help="share of the nodes that store each image (default: 0.3)",
    )
    group.add_argument("--zones", default="", help="zones to spread the nodes over, as in z1,z2")
    group.add_argument("--address", default="127.0.0.1", help="of every node (default: 127.0.0.1)")


def add_behaviour(parser: Parser) -> None:
    """Add the options that `behaviour_of` reads."""
    group = parser.add_argument_group("behaviour")
    group.add_argument("--create-delay", default="200ms", help="default: 200ms")
    group.add_argument(
        "--missing-template-delay",
        default="800ms",
        help="added where the template or an image is not stored (default: 800ms)",
    )
    group.add_argument(
        "--lifetime", default="forever", help="30s, 30s..120s or forever (default: forever)"
    )
    for name, what in (
        ("--fail-rate", "sandboxes that end as Failed"),
        ("--start-fail-rate", "sandboxes that cannot be started"),
        ("--refuse-rate", "requests that a node gives back"),
    ):
        group.add_argument(name, type=share, default=0.0, help=f"share of {what} (default: 0)")
    group.add_argument("--refuse-nodes", default="", help="nodes that give everything back")
    group.add_argument("--seed", type=int, default=0, help="repeats a run (default: 0)")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _images(text: str) -> dict[str, int]:
    images = {}
    for item in _names(text):
        name, is_given, size = item.rpartition("=")
        if not (name and is_given):
            raise UsageError(f"--images: {item!r} has no size; write NAME=SIZE, as in app:1=5Gi")
        images[name] = _amount("--images", size, parse_units)
    return images


def _amount(option: str, text: str, parse: Callable[..., int]) -> int:
    try:
        return parse(text, round_up=False)
    except QuantityError as error:
        raise UsageError(f"{option}: {error}") from error


def _seconds(option: str, text: str) -> float:
    try:
        return parse_seconds(text)
    except DurationError as error:
        raise UsageError(f"{option}: {error}") from error


def _lifetime(text: str) -> tuple[float, float] | None:
    if text == "forever":
        return None
    shortest, dots, longest = text.partition("..")
    low = _seconds("--lifetime", shortest)
    high = _seconds("--lifetime", longest) if dots else low
    if high < low:
        raise UsageError(f"--lifetime: {text} ends before it begins")
    return low, high
