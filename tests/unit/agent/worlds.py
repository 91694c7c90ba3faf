"""One node's agent on the in-memory API server, under a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from tests.model.apiserver import ADMIN, ApiServer
from tests.model.faults import Faults
from tests.model.http import Http, a_request
from tests.model.virtualtime import run_virtual
from typing_extensions import override

from cubesched.adapters.cluster.listwatch import ListWatch
from cubesched.adapters.cluster.writes import StatusWriter
from cubesched.agent.nodeagent import NodeAgent
from cubesched.agent.runtime import Limits, Order, StartFailed
from cubesched.agent.simulated import Behaviour, SimulatedRuntime
from cubesched.api import REQUESTS
from cubesched.fleet.entries import Weight
from cubesched.fleet.objects import NodeAmounts
from cubesched.fleet.sandboxes import sandbox_name

NODE = "node-1"
GIB = 1 << 30
RESERVATION = "0123456789abcdef0123456789abcdef"


class RecordingRuntime(SimulatedRuntime):
    """A pretended machine that remembers what it was asked, and tells when."""

    def __init__(self, behaviour: Behaviour, *, cpu_millis: int = 4000) -> None:
        limits = Limits(cpu_millis, 64 * GIB)
        super().__init__(
            NODE,
            limits=limits,
            capacity=Weight(cpu_millis, 64 * GIB),
            templates=("here",),
            images={"small": 1, "large": 2},
            behaviour=behaviour,
        )
        self.created: list[str] = []
        self.asked: list[tuple[str, int]] = []
        """Each pause with the millis kept, and each resume with 0."""
        self.destroyed: list[str] = []
        self.may_destroy = asyncio.Event()
        self.may_destroy.set()
        self.may_pause = asyncio.Event()
        self.may_pause.set()
        self.cannot_resume = False
        self.at_claim: Callable[[Order], None] = lambda _: None
        """Called just before the claim is written."""
        self.at_create: Callable[[Order], None] = lambda _: None

    @override
    def refusal(self, order: Order) -> str:
        self.at_claim(order)
        return super().refusal(order)

    @override
    async def create(self, order: Order) -> str:
        if order.sandbox not in await self.running():
            self.created.append(order.sandbox)
            self.at_create(order)
        return await super().create(order)

    @override
    async def pause(self, sandbox: str, keeping: Weight) -> None:
        await self.may_pause.wait()
        self.asked.append((sandbox, keeping.cpu_millis))
        await super().pause(sandbox, keeping)

    @override
    async def resume(self, sandbox: str) -> None:
        self.asked.append((sandbox, 0))
        if self.cannot_resume:
            raise StartFailed("the snapshot is broken")
        await super().resume(sandbox)

    @override
    async def destroy(self, sandbox: str) -> None:
        await self.may_destroy.wait()
        if sandbox in await self.running():
            self.destroyed.append(sandbox)
        await super().destroy(sandbox)


class World:
    """A server, a machine, and the agent that runs it."""

    def __init__(self, behaviour: Behaviour, *, seed: int, cpu_millis: int) -> None:
        self.server = ApiServer(rng=Random(seed))
        self.admin = Http(self.server.client(ADMIN))
        self.machine = RecordingRuntime(behaviour, cpu_millis=cpu_millis)
        self.ratio: float | None = None
        self.agent = self._new_agent()

    def _new_agent(self) -> NodeAgent:
        loop = asyncio.get_running_loop()
        self._transport = self.server.client(f"cubesched:node:{NODE}")
        return NodeAgent(
            NODE,
            writer=StatusWriter(self._transport, REQUESTS),
            runtime=self.machine,
            epoch_seconds=lambda: 1_800_000_000 + loop.time(),
        )

    def release(self, ratio: float) -> None:
        """Let the operator say what share a paused sandbox gives up."""
        self.ratio = ratio
        self.agent.own_node.effective = NodeAmounts(paused_resource_release_ratio=ratio)

    async def start(self) -> None:
        """Bring the agent up."""
        if self.ratio is not None:
            self.release(self.ratio)
        watch = ListWatch(
            self._transport,
            REQUESTS.path(),
            self.agent.requests,
            rng=Random(7).random,
            field_selector=f"status.nodeName={NODE}",
        )
        self._following = asyncio.create_task(watch.run())
        await self.agent.start()

    async def restart(self) -> None:
        """Stop the agent and start another on the same machine."""
        await self.stop()
        self.agent = self._new_agent()
        await self.start()

    async def stop(self) -> None:
        """Stop the agent; the machine goes on."""
        self._following.cancel()
        await self.agent.stop()

    @contextmanager
    def unharmed(self) -> Iterator[None]:
        """What the test itself sends meets no faults."""
        faults, self.server.faults = self.server.faults, Faults()
        yield
        self.server.faults = faults

    async def bind(
        self, name: str, *, phase: str = "Bound", cpu_millis: int = 1000, **spec: Any
    ) -> str:
        """Create a request that names this node; return its uid."""
        with self.unharmed():
            status, created = await self.admin.create(a_request(name, **spec))
        assert status == 201, created
        await self.write(name, placed(phase, cpu_millis=cpu_millis))
        uid: str = created["metadata"]["uid"]
        return uid

    async def write(self, name: str, status: dict[str, Any]) -> None:
        """Replace the status as somebody else."""
        with self.unharmed():
            _, stored = await self.admin.get(name)
            code, answer = await self.admin.put_status(
                stored, {**stored.get("status", {}), **status}
            )
        assert code == 200, answer

    async def wish(self, name: str, **spec: Any) -> None:
        """Change the spec as the client."""
        with self.unharmed():
            _, stored = await self.admin.get(name)
            code, answer = await self.admin.replace({**stored, "spec": {**stored["spec"], **spec}})
        assert code == 200, answer

    async def delete(self, name: str) -> None:
        """Delete a request."""
        with self.unharmed():
            await self.admin.delete(name)

    async def status(self, name: str) -> dict[str, Any]:
        """Return the stored status."""
        with self.unharmed():
            _, stored = await self.admin.get(name)
        found: dict[str, Any] = stored["status"]
        return found

    def at_each_write(self, check: Callable[[dict[str, Any]], None]) -> None:
        """Call `check` with each object the server stores."""
        self.server.store.listeners.append(lambda change: check(dict(change.object)))

    async def running(self) -> set[str]:
        """Return the sandboxes on the machine."""
        return set(await self.machine.running())


def placed(phase: str, *, cpu_millis: int = 1000, node: str = NODE) -> dict[str, Any]:
    """Return the status that the operator leaves."""
    reservation = {
        "id": RESERVATION,
        "replica": "r",
        "cpuMillis": cpu_millis,
        "memoryBytes": GIB,
        "diskBytes": 0,
    }
    return {"phase": phase, "nodeName": node, "reservation": reservation, "profile": "p"}


def sandbox(uid: str) -> str:
    """Return the sandbox of a request bound by `World.bind`."""
    return sandbox_name(uid, RESERVATION)


def in_a_world(
    test: Callable[[World], Awaitable[None]],
    *,
    behaviour: Behaviour | None = None,
    seed: int = 1,
    cpu_millis: int = 4000,
    faults: Faults | None = None,
) -> None:
    """Run `test` in a world of its own; its agent has started."""

    async def main() -> None:
        world = World(behaviour or Behaviour(), seed=seed, cpu_millis=cpu_millis)
        await world.start()
        world.server.faults = faults or world.server.faults
        await test(world)
        await world.stop()

    run_virtual(main)
