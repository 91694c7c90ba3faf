"""Many simulated nodes in one process, each acting under its own user."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from cubesched.adapters.cluster.gate import WriteGate
from cubesched.adapters.cluster.listwatch import ListWatch
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.cluster.writes import StatusApplier, StatusWriter
from cubesched.agent.feed import SharedFeed
from cubesched.agent.journal import Journal, JournaledRuntime
from cubesched.agent.nodeagent import NodeAgent
from cubesched.agent.nodeobject import NodeObject
from cubesched.agent.ownnode import SharedNodes
from cubesched.agent.requests import Position
from cubesched.agent.runtime import NO_SANDBOX_LIMIT, Limits, Runtime
from cubesched.agent.serving import (
    MetricsWriter,
    NodeSetup,
    bring_up,
    follow_node,
    follow_own,
    keep_true,
    publish,
    stop_all,
)
from cubesched.agent.simulated import Behaviour, SimulatedRuntime
from cubesched.api import NODES, REQUESTS
from cubesched.api.quantity import format_bytes, format_millis
from cubesched.fleet.entries import Weight

log = logging.getLogger(__name__)

ZONE_LABEL = "topology.kubernetes.io/zone"
NODE_GROUPS = ("cubesched:nodes", "system:authenticated")
WRITES_IN_FLIGHT = 16
NODES_COMING_UP = 16
SIZES = (0.5, 1.0, 1.0, 2.0)
"""What a heterogeneous fleet's capacities are multiplied with, drawn for each node."""


def node_user(node: str) -> str:
    """Return the user that a node's agent acts as."""
    return f"cubesched:node:{node}"


@dataclass(frozen=True, slots=True)
class Machines:
    """What the simulated machines are like."""

    count: int
    prefix: str = "node-"
    capacity: Weight = field(default_factory=lambda: Weight(64_000, 256 << 30))
    quota: Weight | None = None
    """What requests may take in all; None = the capacity."""
    sandboxes: int | None = None
    """Most sandboxes on one machine; None = the operator's default."""
    heterogeneous: bool = False
    templates: tuple[str, ...] = ()
    template_share: float = 0.3
    """Share of the nodes that store each template."""
    images: Mapping[str, int] = field(default_factory=dict)
    """Names of images with their bytes."""
    image_share: float = 0.3
    """Share of the nodes that store each image."""
    zones: tuple[str, ...] = ()
    address: str = "127.0.0.1"
    """Where every one of them says it is reached."""
    seed: int = 0

    def names(self) -> list[str]:
        """Return the names of all nodes."""
        digits = max(3, len(str(self.count - 1)))
        return [f"{self.prefix}{number:0{digits}}" for number in range(self.count)]

    def size_of(self, node: str) -> float:
        """Return what this node's capacities are multiplied with."""
        return self._dice(node, "size").choice(SIZES) if self.heterogeneous else 1.0

    def templates_of(self, node: str) -> tuple[str, ...]:
        """Return the templates that this node stores."""
        dice = self._dice(node, "templates")
        return tuple(name for name in self.templates if dice.random() < self.template_share)

    def images_of(self, node: str) -> dict[str, int]:
        """Return the images that this node stores, with their bytes."""
        dice = self._dice(node, "images")
        some = {name for name in self.images if dice.random() < self.image_share}
        return {name: size for name, size in self.images.items() if name in some}

    def zone_of(self, number: int) -> str:
        """Return the zone of the node with this number; empty without zones."""
        return self.zones[number % len(self.zones)] if self.zones else ""

    def _dice(self, node: str, what: str) -> Random:
        return Random(f"{self.seed}/{what}/{node}")  # noqa: S311 - simulation


def scaled(weight: Weight, factor: float) -> Weight:
    """Return the weight times a factor, rounded down."""
    return Weight(
        int(weight.cpu_millis * factor),
        int(weight.memory_bytes * factor),
        int(weight.disk_bytes * factor),
    )


def amounts(weight: Weight) -> dict[str, str]:
    """Return the weight as quantities of a SandboxNode; no disk when it has none."""
    texts = {"cpu": format_millis(weight.cpu_millis), "memory": format_bytes(weight.memory_bytes)}
    if weight.disk_bytes:
        texts["systemDisk"] = format_bytes(weight.disk_bytes)
    return texts


def setup_of(machines: Machines, number: int, node: str) -> NodeSetup:
    """Return what is registered for one simulated node."""
    size = machines.size_of(node)
    spec: dict[str, object] = {"capacity": amounts(scaled(machines.capacity, size))}
    quota: dict[str, object] = {}
    if machines.quota is not None:
        quota.update(amounts(scaled(machines.quota, size)))
    if machines.sandboxes is not None:
        quota["sandboxes"] = machines.sandboxes
    if quota:
        spec["quota"] = quota
    zone = machines.zone_of(number)
    return NodeSetup(
        spec=spec,
        labels={ZONE_LABEL: zone} if zone else {},
        addresses=(("InternalIP", machines.address),) if machines.address else (),
    )


def runtime_of(
    machines: Machines, node: str, behaviour: Behaviour, journal: Journal | None
) -> Runtime:
    """Return the pretended machine behind one node."""
    size = machines.size_of(node)
    most = scaled(machines.quota or machines.capacity, size)
    sandboxes = NO_SANDBOX_LIMIT if machines.sandboxes is None else machines.sandboxes
    limits = Limits(most.cpu_millis, most.memory_bytes, most.disk_bytes or None, sandboxes)
    runtime = SimulatedRuntime(
        node,
        limits=limits,
        capacity=scaled(machines.capacity, size),
        templates=machines.templates_of(node),
        images=machines.images_of(node),
        behaviour=behaviour,
    )
    if journal is None:
        return runtime
    journaled = JournaledRuntime(node, runtime, journal)
    journaled.boot()
    return journaled


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """One node's moving parts."""

    agent: NodeAgent
    registered: NodeObject
    setup: NodeSetup
    transport: Transport
    stream: Transport
    """Where its own requests are listed and watched."""


class Simulation:
    """A fleet of simulated nodes; `run` until told to stop."""

    def __init__(
        self,
        machines: Machines,
        behaviour: Behaviour,
        *,
        transport_as: Callable[[str], Transport],
        metrics: MetricsWriter,
        shared_transport: Transport | None = None,
        relay_as: Callable[[str], Transport] | None = None,
        journal: Journal | None = None,
    ) -> None:
        """Build all nodes; nothing is sent yet.

        `transport_as` gives each node's own identity. With `shared_transport`, one watch under
        that identity feeds all nodes; else each node has its own: at the API server, or with
        `relay_as` at a relay.
        """
        self._machines = machines
        self._metrics = metrics
        self._shared_transport = shared_transport
        self._stream_as = relay_as or transport_as
        self._position = Position()
        self._rng = Random(machines.seed)  # noqa: S311 - simulation
        self._gate = WriteGate(WRITES_IN_FLIGHT)
        self.nodes = [
            self._node(number, name, behaviour, transport_as(name), journal)
            for number, name in enumerate(machines.names())
        ]

    def _node(
        self,
        number: int,
        name: str,
        behaviour: Behaviour,
        transport: Transport,
        journal: Journal | None,
    ) -> SimulatedNode:
        agent = NodeAgent(
            name,
            writer=StatusWriter(transport, REQUESTS, self._gate),
            runtime=runtime_of(self._machines, name, behaviour, journal),
            position=self._position if self._shared_transport is not None else Position(),
        )
        applier = StatusApplier(transport, self._gate)
        setup = setup_of(self._machines, number, name)
        registered = NodeObject(name, transport, applier=applier, addresses=setup.addresses)
        return SimulatedNode(agent, registered, setup, transport, stream=self._stream_as(name))

    async def run(self, stop: asyncio.Event, *, ready: Callable[[], None] = lambda: None) -> None:
        """Bring all nodes up, call `ready`, go on until `stop` is set, and stop in order."""
        async with asyncio.TaskGroup() as group:
            work = group.create_task(self._work(ready))
            await stop.wait()
            work.cancel()
        await stop_all((node.agent, node.registered) for node in self.nodes)

    async def _work(self, ready: Callable[[], None]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(publish([node.agent for node in self.nodes], self._metrics))
            if self._shared_transport is not None:
                group.create_task(self._follow_all(self._shared_transport))
                group.create_task(self._follow_nodes(self._shared_transport))
            places = asyncio.Semaphore(NODES_COMING_UP)
            coming_up = [
                group.create_task(self._bring_up(node, places, group)) for node in self.nodes
            ]
            await asyncio.gather(*coming_up)
            ready()
            for node in self.nodes:
                group.create_task(keep_true(node.agent, node.registered, self._rng))

    async def _bring_up(
        self, node: SimulatedNode, places: asyncio.Semaphore, group: asyncio.TaskGroup
    ) -> None:
        async with places:
            if self._shared_transport is None:
                group.create_task(follow_own(node.agent, node.stream, self._rng))
                group.create_task(follow_node(node.agent, node.transport, self._rng))
            await bring_up(node.agent, node.registered, node.setup, self._rng)

    async def _follow_all(self, transport: Transport) -> None:
        """Follow all requests, once for all nodes, for ever."""
        feed = SharedFeed(
            {node.agent.node: node.agent.requests for node in self.nodes}, self._position
        )
        await ListWatch(transport, REQUESTS.path(), feed, rng=self._rng.random).run()

    async def _follow_nodes(self, transport: Transport) -> None:
        """Follow all SandboxNodes, once for all nodes, for ever."""
        sink = SharedNodes({node.agent.node: node.agent.own_node for node in self.nodes})
        await ListWatch(transport, NODES.path(), sink, rng=self._rng.random).run()
