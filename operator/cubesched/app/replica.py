"""One replica: streams, fleet, scheduler and membership over one transport.

Knows neither a clock nor a source of randomness of its own, nor who talks behind the transport:
tests of the protocol run it on an in-memory server and a virtual clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from cubesched.adapters.cluster.deletes import Deleter
from cubesched.adapters.cluster.gate import WriteGate
from cubesched.adapters.cluster.listwatch import ListWatch
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.cluster.writes import StatusWriter
from cubesched.api import NODES, REQUESTS, Resource
from cubesched.fleet.fleet import Fleet
from cubesched.policy.policyset import PolicySet
from cubesched.scheduling.membership import Membership
from cubesched.scheduling.ports import Clock, Events, Leases, Meter, Policy
from cubesched.scheduling.routing import Routing
from cubesched.scheduling.scheduler import Scheduler

FLEET_SWEEP_SECONDS = 1.0
Verify = Callable[[], Awaitable[None]]


class Replica:
    """Everything of one operator process that decides and binds."""

    def __init__(
        self,
        *,
        identity: str,
        transport: Transport,
        policy: Policy,
        leases: Leases,
        verifier: Callable[[], Verify],
        clock: Clock,
        meter: Meter,
        events: Events,
        new_id: Callable[[], str],
        random: Callable[[], float],
    ) -> None:
        """Wire one replica; `verifier` makes a check for one stream that etcd did not go back."""
        self.identity, self._clock, self._meter = identity, clock, meter
        self.fleet = Fleet(monotonic=clock.monotonic, wall=clock.wall)
        self.gate = WriteGate()
        self.membership = Membership(
            identity=identity,
            leases=leases,
            revision=lambda: policy.current.revision if policy.current else "",
            monotonic=clock.monotonic,
        )
        self.scheduler = Scheduler(
            identity=identity,
            fleet=self.fleet,
            policy=policy,
            writer=StatusWriter(transport, REQUESTS, self.gate),
            remover=Deleter(transport, REQUESTS, self.gate),
            clock=clock,
            meter=meter,
            events=events,
            new_id=new_id,
            random=random,
            everyone_runs=self.membership.everyone_runs,
        )
        self.membership.changed.append(self._share)
        self.routing = Routing(
            self.fleet, self.scheduler.owns, members=lambda: self.scheduler.members
        )
        self.scheduler.parts = (*self.scheduler.parts, self.routing)
        self.watches = self._streams(partial(ListWatch, transport, rng=random), verifier)
        """The streams that must never fall silent, by resource."""

    def _streams(
        self, watch: Callable[..., ListWatch], verifier: Callable[[], Verify]
    ) -> dict[str, ListWatch]:
        """Feed requests to the ledger and nodes to the fleet, each from one ordered stream."""
        return {
            resource.plural: watch(
                resource.path(), sink, on_restart=self._counter(resource), verify=verifier()
            )
            for resource, sink in ((REQUESTS, self.fleet.ledger), (NODES, self.fleet))
        }

    def jobs(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """Return everything that must run, by name; each ends only by cancellation or a fault."""
        return [
            *((f"watch-{name}", watch.run()) for name, watch in self.watches.items()),
            ("membership", self.membership.run()),
            ("scheduler", self.scheduler.run()),
            ("sweeps", self.scheduler.run_sweeps()),
            ("waking", self.scheduler.run_waking()),
            ("fleet", self._sweep_fleet()),
        ]

    def policy_changed(self, policy: PolicySet) -> None:  # noqa: ARG002 - read where it is leased
        """Apply a policy that has just been swapped in."""
        self.scheduler.policy_changed()

    async def stop(self, *, seconds: float) -> None:
        """Decide nothing more, finish what is under way, give the Lease up."""
        self.scheduler.stopping = True
        self.scheduler.asking.stop()
        await self.scheduler.inflight.drain(seconds)
        await self.membership.leave()

    def _share(self) -> None:
        self.scheduler.share(self.membership.identities)

    def _counter(self, resource: Resource) -> Callable[[str], None]:
        """Return what counts the restarts of one stream, whatever their reason."""
        return lambda _reason: self._meter.inc(
            "cubesched_watch_restarts_total", resource=resource.plural
        )

    async def _sweep_fleet(self) -> None:
        while True:
            await asyncio.sleep(FLEET_SWEEP_SECONDS)
            self.fleet.sweep()
