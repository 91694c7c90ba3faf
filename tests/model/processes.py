"""The processes of the interleaving test: replicas and agents, the real code of both.

Each can be killed, restarted and stopped in mid-flight; what it has sent lands or is lost.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from random import Random

from tests.model.apiserver import ApiServer
from tests.model.client import ModelTransport
from tests.model.machines import Machine
from tests.model.virtualtime import VirtualLoop, running_loop, spawn
from tests.model.writes import EPOCH
from typing_extensions import override

from cubesched.adapters.clock import SystemClock
from cubesched.adapters.cluster.leases import LeaseStore
from cubesched.adapters.cluster.writes import StatusApplier, StatusWriter
from cubesched.agent.nodeagent import NodeAgent
from cubesched.agent.nodeobject import NodeObject
from cubesched.agent.serving import (
    NodeSetup,
    bring_up,
    follow_node,
    follow_own,
    keep_true,
    publish,
)
from cubesched.api import REQUESTS, SYSTEM_NAMESPACE
from cubesched.app.replica import Replica
from cubesched.fleet.metrics_layout import decode_all
from cubesched.policy.policyset import PolicySet

METRICS_SECONDS = 1.0


class VirtualClock(SystemClock):
    """Both clocks, driven by the virtual loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    @override
    def wall(self) -> float:
        return EPOCH.timestamp() + self._loop.time()

    @override
    def monotonic(self) -> float:
        return self._loop.time()


class Reports:
    """What Redis is to agents and replicas: the last report of each node."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.lost: set[str] = set()
        """Nodes whose reports do not arrive."""

    async def publish(self, reports: Mapping[str, bytes]) -> None:
        arrived = {node: packed for node, packed in reports.items() if node not in self.lost}
        self.values.update({node.encode(): packed for node, packed in arrived.items()})


class Counting:
    """A meter that counts, and an event poster that counts: nothing is dropped, nothing sent."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts

    def inc(self, name: str, value: float = 1.0, **labels: str) -> None:
        kind = labels.get("kind", labels.get("resource", ""))
        self.counts[f"{name} {kind}".strip()] += int(value)

    def observe(self, name: str, value: float, **labels: str) -> None:
        self.counts[name] += 1

    def set(self, name: str, value: float, **labels: str) -> None:
        self.counts[name] += 1

    def post(
        self,
        *,
        kind: str,
        namespace: str,
        name: str,
        uid: str,
        reason: str,
        note: str,
        type_: str = "Normal",
        action: str = "Scheduling",
    ) -> None:
        self.counts[f"event {reason}"] += 1


class Process:
    """One simulated OS process."""

    task: asyncio.Task[None]
    """Ends only when the process is killed, or by an error of the code under test."""

    def __init__(self, name: str, transport: ModelTransport) -> None:
        self.name = name
        self.transport = transport
        self.is_stopped = False

    def kill(self, *, lands: float) -> None:
        """End it at once; each write under way lands with chance `lands`."""
        self.transport.sever(lands=lands)
        running_loop().kill_process(self.name)

    def stop(self) -> None:
        """Freeze it, as SIGSTOP does."""
        self.is_stopped = True
        running_loop().stop_process(self.name)

    def go_on(self) -> None:
        """Continue it, as SIGCONT does."""
        self.is_stopped = False
        running_loop().continue_process(self.name)


class ReplicaProcess(Process):
    """One operator process on the in-memory server."""

    def __init__(
        self,
        name: str,
        *,
        server: ApiServer,
        reports: Reports,
        policy: PolicySet,
        counts: Counter[str],
        rng: Random,
    ) -> None:
        super().__init__(name, server.client(name))
        clock = VirtualClock(running_loop())
        leases = LeaseStore(self.transport, SYSTEM_NAMESPACE, clock=clock)
        counting = Counting(counts)
        self._reports = reports
        self.current: PolicySet | None = policy
        self.replica = Replica(
            identity=name,
            transport=self.transport,
            policy=self,
            leases=leases,
            verifier=lambda: leases.verifier(name),
            clock=clock,
            meter=counting,
            events=counting,
            new_id=lambda: f"{rng.getrandbits(128):032x}",
            random=rng.random,
        )
        self.task = spawn(name, self._run())

    def adopt(self, policy: PolicySet) -> None:
        """Let it run another policy as soon as it is not stopped."""

        async def swap() -> None:
            self.current = policy
            self.replica.policy_changed(policy)

        if not self.task.done():
            self.swapping = spawn(self.name, swap())

    async def _run(self) -> None:
        assert self.current is not None
        self.replica.policy_changed(self.current)
        async with asyncio.TaskGroup() as group:
            for _, job in self.replica.jobs():
                group.create_task(job)
            group.create_task(self._read_reports())

    async def _read_reports(self) -> None:
        while True:
            await asyncio.sleep(METRICS_SECONDS)
            self.replica.fleet.take_reports(decode_all(self._reports.values))


class AgentProcess(Process):
    """One node's agent on its machine."""

    def __init__(
        self,
        name: str,
        *,
        server: ApiServer,
        reports: Reports,
        machine: Machine,
        setup: NodeSetup,
        rng: Random,
    ) -> None:
        super().__init__(name, server.client(f"cubesched:node:{machine.node}"))
        clock = VirtualClock(running_loop())
        self.agent = NodeAgent(
            machine.node,
            writer=StatusWriter(self.transport, REQUESTS),
            runtime=machine,
            epoch_seconds=clock.wall,
        )
        self._registered = NodeObject(
            machine.node,
            self.transport,
            applier=StatusApplier(self.transport),
            epoch_seconds=clock.wall,
        )
        self._reports, self._setup, self._rng = reports, setup, rng
        self.task = spawn(name, self._run())

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(follow_own(self.agent, self.transport, self._rng))
            group.create_task(follow_node(self.agent, self.transport, self._rng))
            group.create_task(publish([self.agent], self._reports))
            await bring_up(self.agent, self._registered, self._setup, self._rng)
            await keep_true(self.agent, self._registered, self._rng)
