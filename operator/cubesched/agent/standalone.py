"""An agent as a program of its own: what every simple one does alike, around a runtime."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import gettempdir

from cubesched.adapters.cluster.connection import connect
from cubesched.adapters.cluster.wire import AiohttpTransport
from cubesched.adapters.nodemetrics.writer import MetricsWriter
from cubesched.agent.hostlock import only_agent
from cubesched.agent.runtime import Limits, MachineUsage, Order, Runtime, RuntimeUnavailable
from cubesched.agent.serving import NodeSetup, serve
from cubesched.api.quantity import QuantityError, parse_millis, parse_units
from cubesched.core.errors import CubeschedError, UsageError
from cubesched.fleet.entries import Weight

MakeRuntime = Callable[[Limits, list[str]], Runtime]
"""Makes the runtime of a machine with these limits, from the arguments behind them."""


class Machine:
    """What a runtime says of a machine that stores no templates or images, and cannot pause.

    To be completed with `running`, `create`, `wait` and `destroy`, and with `pause` and `resume`
    where it can: see `cubesched.agent.runtime.Runtime`.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def limits(self) -> Limits:
        """Return what the command line says."""
        return self._limits

    def templates(self) -> tuple[str, ...]:
        """Return none."""
        return ()

    def images(self) -> Mapping[str, int]:
        """Return none."""
        return {}

    def usage(self) -> MachineUsage:
        """Return the load average."""
        return MachineUsage(cpu_load=os.getloadavg()[0])

    def refusal(self, order: Order) -> str:
        """Refuse what starts from a template."""
        return "this machine has no templates" if order.template_id else ""

    async def pause(self, sandbox: str, keeping: Weight) -> None:  # noqa: ARG002 - for none
        """Let go of nothing: the request stays Running, in full, for as long as this is asked.

        To return would be to promise others the room that the sandbox still takes.
        """
        raise RuntimeUnavailable("this machine cannot pause sandboxes")

    async def resume(self, sandbox: str) -> None:
        """Do nothing: what is never paused runs."""


def main(make_runtime: MakeRuntime, argv: Sequence[str] | None = None) -> int:
    """Be the agent that the command line names, as $KUBECONFIG says who we are, until SIGTERM.

    Returns the exit code; errors are one line on stderr.
    """
    parser = argparse.ArgumentParser(description="Be the agent of one node.")
    parser.add_argument("node", help="name of its SandboxNode")
    parser.add_argument("cpu", help="cores that sandboxes may take: 8, 7500m")
    parser.add_argument("memory", help="memory that sandboxes may take: 16Gi")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="for the runtime")
    args = parser.parse_args(argv)
    try:
        runtime = make_runtime(_limits(args.cpu, args.memory), args.arguments)
        spec = {"capacity": {"cpu": args.cpu, "memory": args.memory}}
        asyncio.run(_serve(args.node, NodeSetup(spec), runtime, _redis_url()))
    except CubeschedError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - it is a command
        return 2
    return 0


def _limits(cpu: str, memory: str) -> Limits:
    return Limits(_capacity("cpu", cpu, parse_millis), _capacity("memory", memory, parse_units))


def _capacity(what: str, text: str, parse: Callable[..., int]) -> int:
    try:
        return parse(text, round_up=False)
    except QuantityError as error:
        raise UsageError(f"capacity: {what}: {error}") from error


def _redis_url() -> str:
    url = os.environ.get("CUBESCHED_REDIS_URL", "")
    if not url:
        raise UsageError("CUBESCHED_REDIS_URL is not set: the Redis to report to")
    return url


async def _serve(node: str, setup: NodeSetup, runtime: Runtime, redis_url: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        stack.enter_context(only_agent(Path(gettempdir(), f"cubesched-{node}.lock")))
        metrics = MetricsWriter(redis_url)
        stack.push_async_callback(metrics.close)
        transport = await stack.enter_async_context(AiohttpTransport(await connect(None)))
        await serve(node, setup, transport=transport, metrics=metrics, runtime=runtime, stop=stop)
