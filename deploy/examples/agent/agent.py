"""An agent that runs each sandbox as one process: python agent.py NODE CPU MEMORY [COMMAND ...]."""

import asyncio
import ctypes
import signal

from cubesched.agent import standalone
from cubesched.agent.runtime import Ended, Limits, StartFailed


def die_with_the_agent() -> None:
    """Have the kernel kill the sandbox with us: after a restart the machine is empty."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Processes(standalone.Machine):
    """A machine whose sandboxes are processes of this agent (cubesched.agent.runtime.Runtime)."""

    def __init__(self, limits: Limits, command: list[str]) -> None:
        super().__init__(limits)
        self._command = command or ["sleep", "3600"]
        self._sandboxes = {}  # name: (weight, process)

    async def running(self):
        return {name: weight for name, (weight, _) in self._sandboxes.items()}

    async def create(self, order):
        if order.sandbox not in self._sandboxes:
            start = asyncio.create_subprocess_exec(*self._command, preexec_fn=die_with_the_agent)
            try:
                self._sandboxes[order.sandbox] = order.weight, await start
            except OSError as error:
                raise StartFailed(str(error)) from error
        return f"pid:{self._sandboxes[order.sandbox][1].pid}"

    async def pause(self, sandbox, keeping):  # noqa: ARG002 - frees all cores and no memory
        if sandbox in self._sandboxes:
            self._sandboxes[sandbox][1].send_signal(signal.SIGSTOP)

    async def resume(self, sandbox):
        if sandbox not in self._sandboxes:
            raise StartFailed("no such process")
        self._sandboxes[sandbox][1].send_signal(signal.SIGCONT)

    async def wait(self, sandbox):
        if sandbox not in self._sandboxes:
            return Ended(succeeded=False, message="no such process")
        code = await self._sandboxes[sandbox][1].wait()
        return Ended(succeeded=code == 0, message=f"the process ended with code {code}")

    async def destroy(self, sandbox):
        if sandbox in self._sandboxes:
            if self._sandboxes[sandbox][1].returncode is None:
                self._sandboxes[sandbox][1].kill()
            await self.wait(sandbox)
            self._sandboxes.pop(sandbox, None)


if __name__ == "__main__":
    raise SystemExit(standalone.main(Processes))
