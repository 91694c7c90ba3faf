"""`cubesched agent`: simulated nodes, for demos, tests and trying policies at scale."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
import time
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
from cubesched.cli import Subparsers, add_command
from cubesched.cli.agent_options import (
    add_behaviour,
    add_connections,
    add_machines,
    behaviour_of,
    machines_of,
)
from cubesched.cli.options import whole_number
from cubesched.core.errors import UsageError

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
    add_connections(parser)
    add_machines(parser)
    add_behaviour(parser)
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
