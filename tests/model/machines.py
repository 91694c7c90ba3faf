"""The machines under the simulated agents: what really runs, watched by the auditor.

A machine outlives its agent: a restarted agent finds on it what the last one started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cubesched.agent.runtime import Ended, Limits, MachineUsage, Order
from cubesched.agent.simulated import SimulatedRuntime
from cubesched.fleet.entries import Weight
from cubesched.fleet.sandboxes import uid_in


@dataclass
class Machine:
    """Passes on to a simulated runtime, and shows the auditor each start and resume beforehand."""

    node: str
    runtime: SimulatedRuntime
    about_to_start: Callable[[str, Order], None]
    about_to_resume: Callable[[str, str, Weight], None]
    stop_seconds: float = 0.0
    held: dict[str, Weight] = field(default_factory=dict)
    """Every sandbox on it, from before its start until after its end, with what it takes now."""
    full: dict[str, Weight] = field(default_factory=dict)
    """What each takes while it runs."""

    def number_of(self, uid: str) -> int:
        """Return how many sandboxes of one request are here."""
        return sum(uid_in(name) == uid for name in self.held)

    async def create(self, order: Order) -> str:
        """Show the start unless it is a repetition, then start."""
        if order.sandbox not in self.held:
            self.about_to_start(self.node, order)
            self.held[order.sandbox] = self.full[order.sandbox] = order.weight
        try:
            return await self.runtime.create(order)
        except BaseException:
            self.held.pop(order.sandbox, None)
            raise

    async def pause(self, sandbox: str, keeping: Weight) -> None:
        """Pause, and show only then that the rest is free."""
        await self.runtime.pause(sandbox, keeping)
        if sandbox in self.held:
            self.held[sandbox] = keeping

    async def resume(self, sandbox: str) -> None:
        """Show that it takes all its room again, then resume."""
        if sandbox in self.held:
            self.about_to_resume(self.node, sandbox, self.full[sandbox])
            self.held[sandbox] = self.full[sandbox]
        await self.runtime.resume(sandbox)

    def limits(self) -> Limits:
        return self.runtime.limits()

    def templates(self) -> tuple[str, ...]:
        return self.runtime.templates()

    def images(self) -> Mapping[str, int]:
        return self.runtime.images()

    def usage(self) -> MachineUsage:
        """Tell nothing of the machine's real use, so that nodes can be filled to the brim."""
        return MachineUsage()

    def refusal(self, order: Order) -> str:
        return self.runtime.refusal(order)

    async def running(self) -> Mapping[str, Weight]:
        return await self.runtime.running()

    async def wait(self, sandbox: str) -> Ended:
        return await self.runtime.wait(sandbox)

    async def destroy(self, sandbox: str) -> None:
        if sandbox in self.held:
            await asyncio.sleep(self.stop_seconds)
        await self.runtime.destroy(sandbox)
        self.held.pop(sandbox, None)
