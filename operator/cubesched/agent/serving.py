"""Running agents: register, follow the stream, report each second, stop in order.

One node of one's own (`serve`) and many simulated ones are brought up by the same steps.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from cubesched.adapters.cluster.answers import error_of
from cubesched.adapters.cluster.backoff import Backoff
from cubesched.adapters.cluster.listwatch import ListWatch, Sink
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.cluster.writes import StatusApplier, StatusWriter
from cubesched.agent.nodeagent import NodeAgent
from cubesched.agent.nodeobject import Address, NodeObject
from cubesched.agent.runtime import Runtime, RuntimeUnavailable
from cubesched.agent.stored import stored_on
from cubesched.api import NODES, REQUESTS, Resource
from cubesched.core.errors import ApiError, StoreUnavailable
from cubesched.fleet.metrics_layout import encode

log = logging.getLogger(__name__)

REPORT_SECONDS = 1.0
CHECK_SECONDS = 30.0
SPREAD_SECONDS = 2.0
STOP_SECONDS = 5.0


class MetricsWriter(Protocol):
    """Where reports go: `adapters.nodemetrics.writer` for Redis."""

    async def publish(self, reports: Mapping[str, bytes]) -> None:
        """Write these nodes' packed reports; raises StoreUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class NodeSetup:
    """What is registered for one node."""

    spec: Mapping[str, Any]
    """spec of its SandboxNode, used when there is none yet."""
    labels: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[Address, ...] = ()
    """Where the machine is reached, as in ("InternalIP", "10.0.3.7")."""


async def serve(
    node: str,
    setup: NodeSetup,
    *,
    transport: Transport,
    metrics: MetricsWriter,
    runtime: Runtime,
    stop: asyncio.Event,
    relay: Transport | None = None,
) -> None:
    """Be the agent of one node until `stop` is set; hold `hostlock.only_agent` around it.

    With `relay` the node's requests are listed and watched there; all else, and every write, goes
    to the API server. While the relay is away nothing is learnt: there is no other way to fall
    back to.
    """
    rng = Random()  # noqa: S311 - spreads load, guards nothing
    agent = NodeAgent(node, writer=StatusWriter(transport, REQUESTS), runtime=runtime)
    registered = NodeObject(
        node, transport, applier=StatusApplier(transport), addresses=setup.addresses
    )

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            stream = transport if relay is None else relay
            group.create_task(follow_own(agent, stream, rng, spread_seconds=SPREAD_SECONDS))
            group.create_task(follow_node(agent, transport, rng, spread_seconds=SPREAD_SECONDS))
            group.create_task(publish([agent], metrics))
            await bring_up(agent, registered, setup, rng)
            await keep_true(agent, registered, rng)

    async with asyncio.TaskGroup() as group:
        working = group.create_task(work())
        await stop.wait()
        working.cancel()
    await stop_all([(agent, registered)])


async def follow_own(
    agent: NodeAgent, transport: Transport, rng: Random, *, spread_seconds: float = 0.0
) -> None:
    """Follow the requests that name this node, and only those, for ever."""
    which = f"status.nodeName={agent.node}"
    await _follow(transport, REQUESTS, agent.requests, rng, which, spread_seconds)


async def follow_node(
    agent: NodeAgent, transport: Transport, rng: Random, *, spread_seconds: float = 0.0
) -> None:
    """Follow the node's own SandboxNode for ever; a watch by name costs the server nothing."""
    which = f"metadata.name={agent.node}"
    await _follow(transport, NODES, agent.own_node, rng, which, spread_seconds)


async def _follow(
    transport: Transport,
    kind: Resource,
    sink: Sink,
    rng: Random,
    which: str,
    spread_seconds: float,
) -> None:
    watch = ListWatch(
        transport,
        kind.path(),
        sink,
        rng=rng.random,
        field_selector=which,
        spread_seconds=spread_seconds,
    )
    await watch.run()


async def check_access(transport: Transport) -> None:
    """Make sure that nodes can be registered here; raises ApiError in words for the person."""
    response = await transport.request("GET", NODES.path(), params={"limit": "1"})
    if response.status == 404:
        raise ApiError("the cluster does not know SandboxNodes: install the CRDs first", 404)
    if response.status != 200:
        raise error_of(response, "cannot act as a node")


async def keep_true(agent: NodeAgent, registered: NodeObject, rng: Random) -> None:
    """Keep the node's object true to the machine, and follow it when it is created anew."""
    while True:
        await asyncio.sleep(CHECK_SECONDS * rng.uniform(0.5, 1.5))
        try:
            await registered.refresh(stored_on(agent.runtime))
        except ApiError as error:
            log.warning("%s: %s", agent.node, error)
        agent.node_uid = registered.uid


async def bring_up(agent: NodeAgent, registered: NodeObject, setup: NodeSetup, rng: Random) -> None:
    """Register, remove what an earlier run left, and only then report Ready."""

    async def register() -> None:
        await registered.ensure(setup.spec, setup.labels)

    async def report_ready() -> None:
        await registered.report_ready(stored_on(agent.runtime))

    await _until_it_works(register, agent.node, rng)
    agent.node_uid = registered.uid
    await agent.start()
    await _until_it_works(report_ready, agent.node, rng)


async def _until_it_works(step: Callable[[], Awaitable[None]], node: str, rng: Random) -> None:
    backoff = Backoff(rng.random)
    while True:
        try:
            await step()
        except ApiError as error:
            log.warning("%s: %s", node, error)
            await asyncio.sleep(backoff.next_seconds())
        else:
            return


async def publish(agents: Iterable[NodeAgent], metrics: MetricsWriter) -> None:
    """Report every second, for ever; an outage of Redis is logged when it begins and ends."""
    loop = asyncio.get_running_loop()
    agents = tuple(agents)
    is_up = True
    while True:
        began = loop.time()
        try:
            await metrics.publish(await _reports(agents))
        except StoreUnavailable as error:
            if is_up:
                log.warning("cannot report: %s", error)
            is_up = False
        else:
            if not is_up:
                log.info("reports again")
            is_up = True
        await asyncio.sleep(max(0.1, REPORT_SECONDS - (loop.time() - began)))


async def _reports(agents: Iterable[NodeAgent]) -> dict[str, bytes]:
    """Gather what there is to report; a node that cannot be asked stays silent."""
    reports = {}
    for agent in agents:
        try:
            report = await agent.report()
        except RuntimeUnavailable as error:
            log.warning("%s cannot report: %s", agent.node, error)
            continue
        if report is not None:
            reports[agent.node] = encode(report)
    return reports


async def stop_all(nodes: Iterable[tuple[NodeAgent, NodeObject]]) -> None:
    """Stop the agents and say on each SandboxNode that nobody acts there, as far as time allows."""
    nodes = tuple(nodes)
    await asyncio.gather(*(agent.stop() for agent, _ in nodes))
    with suppress(TimeoutError):
        async with asyncio.timeout(STOP_SECONDS):
            await asyncio.gather(*(_report_stopped(*node) for node in nodes))


async def _report_stopped(agent: NodeAgent, registered: NodeObject) -> None:
    if not registered.uid:
        return
    try:
        await registered.report_stopped(stored_on(agent.runtime))
    except ApiError as error:
        log.warning("%s: %s", agent.node, error)
