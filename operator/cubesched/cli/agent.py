"""`cubesched agent`: simulated nodes, for demos, tests and trying policies at scale."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop

from cubesched.adapters.cluster.connection import connect, find_relay
from cubesched.adapters.cluster.wire import AiohttpTransport
from cubesched.adapters.nodemetrics.writer import MetricsWriter
from cubesched.agent.journal import Journal
from cubesched.agent.serving import check_access
from cubesched.agent.simulated import Behaviour
from cubesched.agent.simulation import NODE_GROUPS, Machines, Simulation, node_user
from cubesched.api.duration import DurationError, parse_seconds
from cubesched.api.quantity import QuantityError, parse_millis, parse_units
from cubesched.cli import Parser, Subparsers, add_command
from cubesched.cli.options import name_prefix, share, whole_number
from cubesched.core.errors import UsageError
from cubesched.fleet.entries import Weight
from cubesched.settings import DEFAULT_REDIS_URL

_DETAILS = """
Each simulated node registers a SandboxNode, reports to Redis every second, watches the
requests bound to it, and "runs" them as entries in memory, with realistic delays.

Every write is made as the node's own user, cubesched:node:NAME in group cubesched:nodes, by
impersonation: the identity of --kubeconfig needs the right to impersonate these users and
groups (an administrator has it). With --shared-watch one watch under that identity serves all
nodes, which spares the API server one watch per node; it then needs list and watch on
sandboxrequests and sandboxnodes. With --relay each node lists and watches its requests at a
`cubesched relay`
whose --impersonators is a group of that identity's client certificate, and waits while the relay
is away; all else goes to the API server as before.

A real node agent is a program of your own on the library cubesched.agent."""

_EXAMPLES = """\
  cubesched agent --simulate 10
  cubesched agent --simulate 200 --shared-watch --zones z1,z2,z3 --heterogeneous
  cubesched agent --simulate 20 --templates py312,node22 --template-share 0.3
  cubesched agent --simulate 20 --lifetime 30s..120s --fail-rate 0.05
  cubesched agent --simulate 5 --refuse-nodes node-001,node-003
  cubesched agent --simulate 1000 --relay https://127.0.0.1:8443"""

MAX_NODES = 10_000


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(subparsers, "agent", details=_DETAILS, examples=_EXAMPLES)
    count = whole_number(1, MAX_NODES)
    parser.add_argument("--simulate", type=count, metavar="N", required=True, help="how many nodes")
    _add_connections(parser)
    _add_machines(parser)
    _add_behaviour(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Simulate until SIGTERM or Ctrl-C."""
    machines, behaviour = machines_of(args), behaviour_of(args)
    logging.basicConfig(
        level=logging.INFO if args.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    uvloop.run(_simulate(args, machines, behaviour))
    return 0


async def _simulate(args: argparse.Namespace, machines: Machines, behaviour: Behaviour) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        metrics = MetricsWriter(args.redis_url)
        stack.push_async_callback(metrics.close)
        await metrics.remove(machines.names())  # what an earlier run reported is not true now
        connection = await connect(args.kubeconfig, args.context)
        transport = await stack.enter_async_context(AiohttpTransport(connection))
        users = await _users(stack, transport, machines)
        relay_users = await _relay_users(stack, args, machines)
        await check_access(users[machines.names()[0]])
        journal = stack.enter_context(_journal(args.log)) if args.log else None
        simulation = Simulation(
            machines,
            behaviour,
            transport_as=users.__getitem__,
            metrics=metrics,
            shared_transport=transport if args.shared_watch else None,
            relay_as=relay_users.__getitem__ if relay_users else None,
            journal=journal,
        )
        began = time.monotonic()
        await simulation.run(stop, ready=lambda: _say_ready(machines, began))


async def _users(
    stack: AsyncExitStack, transport: AiohttpTransport, machines: Machines
) -> dict[str, AiohttpTransport]:
    """Return one transport for each node's own user, all over the connections of `transport`."""
    return {
        name: await stack.enter_async_context(
            transport.acting_as(node_user(name), groups=NODE_GROUPS)
        )
        for name in machines.names()
    }


async def _relay_users(
    stack: AsyncExitStack, args: argparse.Namespace, machines: Machines
) -> dict[str, AiohttpTransport]:
    """Return the same for the relay; nothing without one."""
    if args.relay is None:
        return {}
    ca_file = None if args.relay_ca is None else str(args.relay_ca)
    connection = await find_relay(args.relay, args.kubeconfig, args.context, ca_file=ca_file)
    return await _users(
        stack, await stack.enter_async_context(AiohttpTransport(connection)), machines
    )


def _say_ready(machines: Machines, began: float) -> None:
    names = machines.names()
    what = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    print(f"{len(names)} nodes ready in {time.monotonic() - began:.1f} s: {what}", flush=True)


def _journal(path: Path) -> Journal:
    try:
        return Journal(path)
    except OSError as error:
        raise UsageError(f"--log: cannot write {path}: {error.strerror}") from error


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


def _add_connections(parser: Parser) -> None:
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


def _add_machines(parser: Parser) -> None:
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


def _add_behaviour(parser: Parser) -> None:
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
