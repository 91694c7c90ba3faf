"""The agent's own room check: what really runs, and what is about to, against the machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cubesched.agent.runtime import Limits, Order, Runtime
from cubesched.fleet.entries import NOTHING, Weight
from cubesched.fleet.sandboxes import uid_in


def total(weights: Iterable[Weight]) -> Weight:
    """Return the sum of weights."""
    cpu_millis = memory_bytes = disk_bytes = 0
    for weight in weights:
        cpu_millis += weight.cpu_millis
        memory_bytes += weight.memory_bytes
        disk_bytes += weight.disk_bytes
    return Weight(cpu_millis, memory_bytes, disk_bytes)


def larger(one: Weight, other: Weight) -> Weight:
    """Return the larger of two weights in each part."""
    return Weight(
        max(one.cpu_millis, other.cpu_millis),
        max(one.memory_bytes, other.memory_bytes),
        max(one.disk_bytes, other.disk_bytes),
    )


@dataclass(slots=True)
class Room:
    """Everything that takes room on one machine, so that two starts never share the last of it."""

    runtime: Runtime
    held: dict[str, Weight] = field(default_factory=dict)
    """Sandboxes that this agent admitted, or found at its start, and has not yet destroyed."""
    promised: dict[str, Weight] = field(default_factory=dict)
    """Sandboxes that are being claimed, so that two claims never share the last of the room."""

    async def taken(self) -> dict[str, Weight]:
        """Return all that takes room now; what came or went meanwhile is in."""
        before = dict(self.held)
        return {**before, **await self.runtime.running(), **self.held}

    async def admit(self, order: Order, *, resumes: bool = False) -> str:
        """Hold room for `order`; say what is short when there is none. Empty means held.

        What is there already needs no more, unless it is paused and `resumes`.
        """
        others = {**self.promised, **await self.taken()}
        # Nothing yields from here on: whoever asks next finds this order among the held.
        if others.pop(order.sandbox, None) is None or resumes:
            short = shortage(self.runtime.limits(), others, order.weight)
            if short:
                return short
        self.held[order.sandbox] = order.weight
        self.promised.pop(order.sandbox, None)
        return ""

    async def promise(self, order: Order) -> str:
        """Keep room for `order` while it is claimed; say what is short. Empty means kept."""
        others = {**self.promised, **await self.taken()}
        others.pop(order.sandbox, None)
        # Nothing yields from here on, as in `admit`.
        short = shortage(self.runtime.limits(), others, order.weight)
        if not short:
            self.promised[order.sandbox] = order.weight
        return short

    async def find(self) -> None:
        """Take over the sandboxes that an earlier run of the agent left."""
        for name, weight in (await self.runtime.running()).items():
            if uid_in(name):
                self.held[name] = weight

    def count(self, sandbox: str, weight: Weight) -> None:
        """Count a sandbox that is held with another weight."""
        if sandbox in self.held:
            self.held[sandbox] = weight

    def count_at_least(self, sandbox: str, weight: Weight) -> None:
        """Count a sandbox that is held with no less than `weight`."""
        if sandbox in self.held:
            self.held[sandbox] = larger(self.held[sandbox], weight)

    async def release(self, sandbox: str) -> None:
        """Destroy a sandbox; its room is free only after that."""
        await self.runtime.destroy(sandbox)
        self.held.pop(sandbox, None)

    def of(self, uid: str) -> list[str]:
        """Return the sandboxes held for one request."""
        return [name for name in self.held if uid_in(name) == uid]


def shortage(limits: Limits, taken: Mapping[str, Weight], wanted: Weight) -> str:
    """Say what is short for `wanted` beside all that is `taken`; empty when it fits."""
    used = total(taken.values())
    for what, held, need, limit in (
        ("cpu millis", used.cpu_millis, wanted.cpu_millis, limits.cpu_millis),
        ("memory bytes", used.memory_bytes, wanted.memory_bytes, limits.memory_bytes),
        ("disk bytes", used.disk_bytes, wanted.disk_bytes, limits.disk_bytes),
        ("sandboxes", len(taken), 1, limits.sandboxes),
    ):
        if limit is not None and held + need > limit:
            return f"no room on the machine: needs {need} {what}, {max(0, limit - held)} free"
    return ""


def unexplained(taken: Mapping[str, Weight], explained: set[str]) -> tuple[Weight, int]:
    """Return weight and number of what takes room without a request that accounts for it."""
    rest = [weight for name, weight in taken.items() if name not in explained]
    return (total(rest), len(rest)) if rest else (NOTHING, 0)
