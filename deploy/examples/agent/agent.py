"""An agent that runs each sandbox as one process: python agent.py NODE CPU MEMORY [COMMAND ...]."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import gettempdir

from cubesched.adapters.cluster.connection import AiohttpTransport, connect
from cubesched.adapters.nodemetrics.writer import MetricsWriter
from cubesched.agent.hostlock import only_agent
from cubesched.agent.runtime import Ended, Limits, MachineUsage, Order, StartFailed
from cubesched.agent.serving import NodeSetup, serve
from cubesched.api.quantity import parse_millis, parse_units
from cubesched.fleet.entries import Weight


def die_with_the_agent() -> None:
    """Have the kernel kill the sandbox with us: after a restart the machine is empty."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Processes:
    """A machine whose sandboxes are processes of this agent (cubesched.agent.runtime.Runtime)."""

    def __init__(self, limits: Limits, command: list[str]) -> None:
        self._limits, self._command = limits, command
        self._sandboxes: dict[str, tuple[Weight, asyncio.subprocess.Process]] = {}

    def limits(self) -> Limits:
        return self._limits

    def templates(self) -> tuple[str, ...]:
        return ()

    def images(self) -> Mapping[str, int]:
        return {}

    def usage(self) -> MachineUsage:
        return MachineUsage(cpu_load=os.getloadavg()[0])

    def refusal(self, order: Order) -> str:
        return "this machine has no templates" if order.template_id else ""

    async def running(self) -> Mapping[str, Weight]:
        return {name: weight for name, (weight, _) in self._sandboxes.items()}

    async def create(self, order: Order) -> str:
        if order.sandbox not in self._sandboxes:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._command, preexec_fn=die_with_the_agent
                )
            except OSError as error:
                raise StartFailed(str(error)) from error
            self._sandboxes[order.sandbox] = order.weight, process
        return f"pid:{self._sandboxes[order.sandbox][1].pid}"

    async def pause(self, sandbox: str, keeping: Weight) -> None:  # noqa: ARG002
        if sandbox in self._sandboxes:  # frees all of its cores and none of its memory
            self._sandboxes[sandbox][1].send_signal(signal.SIGSTOP)

    async def resume(self, sandbox: str) -> None:
        if sandbox not in self._sandboxes:
            raise StartFailed("no such process")
        self._sandboxes[sandbox][1].send_signal(signal.SIGCONT)

    async def wait(self, sandbox: str) -> Ended:
        if sandbox not in self._sandboxes:
            return Ended(succeeded=False, message="no such process")
        code = await self._sandboxes[sandbox][1].wait()
        return Ended(succeeded=code == 0, message=f"the process ended with code {code}")

    async def destroy(self, sandbox: str) -> None:
        if sandbox in self._sandboxes:
            process = self._sandboxes[sandbox][1]
            if process.returncode is None:
                process.kill()
            await process.wait()
            self._sandboxes.pop(sandbox, None)


async def main(node: str, cpu: str, memory: str, *command: str) -> None:
    """Be the agent of `node`, as $KUBECONFIG says who we are, until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    limits = Limits(parse_millis(cpu, round_up=False), parse_units(memory, round_up=False))
    async with AsyncExitStack() as stack:
        stack.enter_context(only_agent(Path(gettempdir(), f"cubesched-{node}.lock")))
        transport = await stack.enter_async_context(AiohttpTransport(await connect(None)))
        metrics = MetricsWriter(os.environ["CUBESCHED_REDIS_URL"])
        stack.push_async_callback(metrics.close)
        await serve(
            node,
            NodeSetup({"capacity": {"cpu": cpu, "memory": memory}}),
            transport=transport,
            metrics=metrics,
            runtime=Processes(limits, list(command) or ["sleep", "3600"]),
            stop=stop,
        )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
