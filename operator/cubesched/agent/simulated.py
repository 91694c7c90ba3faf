"""A runtime that only pretends: sandboxes are entries in a dict that end when their time is up.

What a request meets here depends on the seed, the node's and the request's names alone, so a
run can be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from cubesched.agent.runtime import Ended, Limits, MachineUsage, Order, StartFailed
from cubesched.fleet.entries import Weight


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How simulated machines behave; rates are shares from 0 to 1."""

    seed: int = 0
    create_delay_seconds: float = 0.2
    missing_template_delay_seconds: float = 0.8
    """Added when the template or an image is not stored on the node."""
    lifetime_seconds: tuple[float, float] | None = None
    """Each sandbox ends by itself after a time in this range; None = never."""
    start_fail_rate: float = 0.0
    pause_delay_seconds: float = 0.05
    """How long it takes to pause a sandbox, and to resume it."""
    run_fail_rate: float = 0.0
    refuse_rate: float = 0.0
    refusing_nodes: frozenset[str] = frozenset()
    """These refuse everything."""


_DESTROYED = Ended(succeeded=False, message="the sandbox was destroyed")


@dataclass(slots=True)
class _Sandbox:
    weight: Weight
    created: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced by another, when it is paused, resumed or destroyed."""
    is_gone: bool = False
    end: Ended = _DESTROYED
    left_seconds: float | None = None
    """How much longer it would run from `since` on; None = for ever."""
    since: float = 0.0
    """When it began to run, or to run on, on the loop's clock."""
    keeping: Weight | None = None
    """What it takes while it is paused; None while it runs."""

    @property
    def takes(self) -> Weight:
        """What it takes of the machine now."""
        return self.keeping or self.weight

    def remaining_seconds(self, now: float) -> float | None:
        """Return how long it will run, unless it is paused before; None = for ever."""
        if self.keeping is not None or self.left_seconds is None:
            return None
        return max(0.0, self.left_seconds - (now - self.since))

    def tell(self) -> None:
        """Wake whoever waits for its end."""
        self.changed.set()
        self.changed = asyncio.Event()


class SimulatedRuntime:
    """One pretended machine."""

    def __init__(
        self,
        node: str,
        *,
        limits: Limits,
        capacity: Weight,
        templates: tuple[str, ...] = (),
        images: Mapping[str, int] | None = None,
        behaviour: Behaviour | None = None,
    ) -> None:
        self._node = node
        self._limits = limits
        self._capacity = capacity
        self._templates = templates
        self._images = dict(images or {})
        self._behaviour = behaviour or Behaviour()
        self._sandboxes: dict[str, _Sandbox] = {}
        self._noise = Random(f"{self._behaviour.seed}/{node}")  # noqa: S311 - simulation

    def limits(self) -> Limits:
        """Return the most this machine runs at once."""
        return self._limits

    def templates(self) -> tuple[str, ...]:
        """Return the ids of the templates that are stored on this machine."""
        return self._templates

    def images(self) -> Mapping[str, int]:
        """Return the images that are stored on this machine, with their bytes."""
        return self._images

    def refusal(self, order: Order) -> str:
        """Refuse what the behaviour says this node refuses."""
        if self._node in self._behaviour.refusing_nodes:
            return "told to refuse"
        if self._dice(order, "refuse").random() < self._behaviour.refuse_rate:
            return "refused by chance"
        return ""

    def usage(self) -> MachineUsage:
        """Return a use that follows what runs, with a little noise."""
        cpu_share, memory_share = self._shares()
        cpu_percent = min(100.0, 2.0 + 60.0 * cpu_share + self._noise.uniform(0.0, 3.0))
        used = int(self._capacity.memory_bytes * min(1.0, 0.02 + 0.6 * memory_share))
        disk_percent = min(100.0, 10.0 + 40.0 * len(self._sandboxes) / self._limits.sandboxes)
        return MachineUsage(
            cpu_util_percent=cpu_percent,
            cpu_load=self._capacity.cpu_millis / 1000 * cpu_percent / 100,
            memory_used_bytes=used,
            data_disk_percent=disk_percent,
            storage_disk_percent=disk_percent,
            system_disk_percent=disk_percent / 2,
            snapshot_storage_writable=True,
        )

    async def running(self) -> Mapping[str, Weight]:
        """Return all sandboxes, also those being created."""
        return {name: sandbox.takes for name, sandbox in self._sandboxes.items()}

    async def create(self, order: Order) -> str:
        """Pretend to start a sandbox; the second call for one name waits for the first."""
        known = self._sandboxes.get(order.sandbox)
        if known is not None:
            await known.created.wait()
            return self._endpoint(order)
        sandbox = self._sandboxes[order.sandbox] = _Sandbox(order.weight)
        try:
            await self._pretend_to_create(order)
        except BaseException:
            self._sandboxes.pop(order.sandbox, None)
            raise
        finally:
            sandbox.created.set()
        self._decide_its_life(order, sandbox)
        return self._endpoint(order)

    async def wait(self, sandbox: str) -> Ended:
        """Return when the sandbox's time is up, or it was destroyed."""
        found = self._sandboxes.get(sandbox)
        if found is None:
            return Ended(succeeded=False, message="no such sandbox")
        loop = asyncio.get_running_loop()
        while not found.is_gone:
            try:
                await asyncio.wait_for(found.changed.wait(), found.remaining_seconds(loop.time()))
            except TimeoutError:
                return found.end
        return _DESTROYED

    async def pause(self, sandbox: str, keeping: Weight) -> None:
        """Pretend to suspend it; its time stands still while it is paused."""
        await asyncio.sleep(self._behaviour.pause_delay_seconds)
        found = self._sandboxes.get(sandbox)
        if found is None:
            return
        if found.keeping is None:
            found.left_seconds = found.remaining_seconds(asyncio.get_running_loop().time())
        found.keeping = keeping
        found.tell()

    async def resume(self, sandbox: str) -> None:
        """Pretend to let it run on; it takes its whole room from the first moment."""
        found = self._sandboxes.get(sandbox)
        if found is None:
            raise StartFailed("no such sandbox")
        if found.keeping is not None:
            found.keeping, found.since = None, asyncio.get_running_loop().time()
            found.tell()
        await asyncio.sleep(self._behaviour.pause_delay_seconds)

    async def destroy(self, sandbox: str) -> None:
        """Forget the sandbox."""
        found = self._sandboxes.pop(sandbox, None)
        if found is not None:
            found.is_gone = True
            found.tell()

    async def _pretend_to_create(self, order: Order) -> None:
        delay_seconds = self._behaviour.create_delay_seconds
        is_here = order.template_id in {"", *self._templates}
        if not (is_here and self._images.keys() >= set(order.images)):
            delay_seconds += self._behaviour.missing_template_delay_seconds
        await asyncio.sleep(delay_seconds)
        if self._dice(order, "start").random() < self._behaviour.start_fail_rate:
            raise StartFailed("the simulated machine could not start it")

    def _decide_its_life(self, order: Order, sandbox: _Sandbox) -> None:
        dice = self._dice(order, "life")
        sandbox.since = asyncio.get_running_loop().time()
        if self._behaviour.lifetime_seconds is not None:
            sandbox.left_seconds = dice.uniform(*self._behaviour.lifetime_seconds)
        failed = dice.random() < self._behaviour.run_fail_rate
        sandbox.end = (
            Ended(succeeded=False, message="the sandbox ended with an error")
            if failed
            else Ended(succeeded=True, message="the sandbox has done its work")
        )

    def _dice(self, order: Order, what: str) -> Random:
        key = f"{self._behaviour.seed}/{what}/{self._node}/{order.namespace}/{order.name}"
        return Random(key)  # noqa: S311 - simulation

    def _shares(self) -> tuple[float, float]:
        running = [sandbox.weight for sandbox in self._sandboxes.values() if not sandbox.keeping]
        cpu_millis = sum(weight.cpu_millis for weight in running)
        memory_bytes = sum(weight.memory_bytes for weight in running)
        return (
            cpu_millis / self._capacity.cpu_millis,
            memory_bytes / self._capacity.memory_bytes,
        )

    def _endpoint(self, order: Order) -> str:
        return f"{self._node}:{20000 + hash_of(order.sandbox) % 40000}"


def hash_of(text: str) -> int:
    """Return a number that is the same in every process."""
    return int.from_bytes(text.encode()[-4:], "big")
