"""The operator process: a replica on a real API server and Redis, with Kopf, probes and logs."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import secrets
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cubesched.adapters.clock import SystemClock
from cubesched.adapters.cluster.connection import AiohttpTransport, Connection, connect
from cubesched.adapters.cluster.events import EventPoster
from cubesched.adapters.cluster.leases import LeaseStore
from cubesched.adapters.cluster.probing import missing_rights, wait_for_api, wait_for_watches
from cubesched.adapters.cluster.revisions import RevisionStore
from cubesched.adapters.cluster.writes import StatusApplier
from cubesched.adapters.nodemetrics.layouts import open_sources
from cubesched.adapters.nodemetrics.reader import MetricsReader
from cubesched.adapters.routes.publisher import RoutePublisher
from cubesched.adapters.telemetry.meter import Meter
from cubesched.adapters.telemetry.server import TelemetryServer
from cubesched.adapters.telemetry.stalls import StallDetector
from cubesched.api import CONFIGS, NODES, PROFILES, RESOURCES, SYSTEM_NAMESPACE
from cubesched.app.gauges import Gauges
from cubesched.app.health import Health
from cubesched.app.plugin_health import PluginHealth
from cubesched.app.replica import Replica
from cubesched.app.rights import operator_rights
from cubesched.app.timed_policy import TimedPolicy
from cubesched.core.errors import CubeschedError
from cubesched.fleet.rendezvous import Member
from cubesched.handlers.fleet_looks import FleetLooks
from cubesched.handlers.node_statuses import NodeStatuses
from cubesched.handlers.operator import run_kopf
from cubesched.handlers.policy_reconciler import PolicyReconciler
from cubesched.plugins.hosts import Hosts
from cubesched.plugins.listing import Surroundings
from cubesched.policy.active import ActivePolicy
from cubesched.policy.compiler import compile_set
from cubesched.policy.objects import Problem
from cubesched.policy.policyset import PolicySet
from cubesched.settings import OperatorSettings

_LOG = logging.getLogger(__name__)
RIGHTS_SECONDS = 2.0


class Operator:
    """One process; what the Kopf handlers see of it is `handlers.ports.App`."""

    def __init__(self, settings: OperatorSettings, connection: Connection) -> None:
        """Wire every part; nothing runs yet."""
        self.connection, self._settings = connection, settings
        self.identity = settings.identity(secrets.token_hex(4))
        self._transport = AiohttpTransport(connection)
        self.meter, clock, dice = Meter(), SystemClock(), random.SystemRandom().random
        self.policy = ActivePolicy()
        self._hosts = Hosts()
        self._surroundings = Surroundings(
            plugin_directory=settings.plugin_directory, hosts=self._hosts
        )
        namespace = settings.namespace or SYSTEM_NAMESPACE
        self._rights = operator_rights(namespace)
        self._events = EventPoster(self._transport, self.meter, instance=self.identity)
        leases = LeaseStore(self._transport, namespace, clock=clock)
        self.replica = Replica(
            identity=self.identity,
            transport=self._transport,
            policy=TimedPolicy(self.policy, self.meter),
            leases=leases,
            verifier=lambda: leases.verifier(self.identity),
            clock=clock,
            meter=self.meter,
            events=self._events,
            new_id=lambda: secrets.token_hex(16),
            random=dice,
        )
        self._reader = MetricsReader(
            open_sources(settings.redis_url, settings.node_metrics_layout),
            self.replica.fleet.take_reports,
            self.meter,
            names=lambda: self.replica.fleet.columns.names,
        )
        self._routes = RoutePublisher(settings.redis_url, self.replica.routing, rng=dice)
        applier = StatusApplier(self._transport, self.replica.gate)
        modes = self.replica.scheduler.modes
        self._looks = FleetLooks(self.policy, lambda: self.replica.fleet.snapshot, self)
        self.policy_reconciler = PolicyReconciler(
            self.policy,
            self._transport,
            applier,
            self,
            records=RevisionStore(self._transport, namespace),
            compile_=partial(compile_set, around=self._surroundings),
            seen=self._looks.seen,
            note=lambda: modes.note,
            wall=clock.wall,
            rng=dice,
        )
        self.node_statuses = NodeStatuses(self.replica.fleet, applier, self, clock)
        self.server = TelemetryServer(self.meter, host=settings.http_host, port=settings.http_port)
        self.health = Health(self.replica, self.policy, self._reader)
        self.health.register(self.server)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._fault: BaseException | None = None
        self._connect_parts()

    def _connect_parts(self) -> None:
        self.meter.before_scrape(Gauges(self.replica, self.policy, self.meter).refresh)
        self.policy.on_change.append(self._run_hosts)
        self.policy.on_change.append(self.replica.policy_changed)
        self.policy.on_change.append(self._looks.look_soon)
        self._looks.on_change.append(self.policy_reconciler.poke)
        self.replica.scheduler.modes.on_note.append(self.policy_reconciler.poke)
        self.policy.on_reject.append(self._count_rejected)
        self.replica.membership.changed.append(self.policy_reconciler.poke)

    def _run_hosts(self, policy: PolicySet) -> None:
        self._hosts.run([profile.pipeline for profile in policy.profiles])

    def _count_rejected(self, _problems: Sequence[Problem]) -> None:
        self.meter.inc("cubesched_profile_compile_failures_total")

    # handlers.ports: what the handlers ask of the app and of the membership

    def owns(self, uid: str) -> bool:
        """Tell whether this replica writes the status of the object with this uid."""
        return self.replica.membership.owns(uid)

    def members(self) -> Sequence[Member]:
        """Return the live replicas; this one with what it runs now, before its Lease says so."""
        revision = self.policy.current.revision if self.policy.current else ""
        return [
            replace(member, policy_revision=revision)
            if member.identity == self.identity
            else member
            for member in self.replica.membership.members
        ]

    async def on_started(self) -> None:
        """Start every background task; called by Kopf once it has started."""
        jobs: list[tuple[str, Coroutine[Any, Any, None]]] = [
            *self.replica.jobs(),
            ("metrics", self._reader.run()),
            ("routes", self._routes.run()),
            ("events", self._events.run()),
            ("policy", self.policy_reconciler.run()),
            ("fleet-looks", self._looks.run()),
            ("plugin-health", PluginHealth(self.policy, self.policy_reconciler.poke).run()),
            ("node-statuses", self.node_statuses.run()),
            ("stalls", StallDetector(self.meter).run()),
        ]
        for name, job in jobs:
            task = asyncio.get_running_loop().create_task(job, name=name)
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """End the process when a part of it dies: half a replica must not look alive."""
        self._tasks.discard(task)
        if not task.cancelled() and not self._stop.is_set():
            self._fault = task.exception()
            _LOG.critical("the task %s ended", task.get_name(), exc_info=self._fault)
            self._stop.set()

    async def on_stopping(self) -> None:
        """Finish what is under way, give up the Lease, stop every task."""
        self._stop.set()
        await self.replica.stop(seconds=self._settings.stop_seconds)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._hosts.close()

    async def run(self) -> int:
        """Serve until SIGTERM or a fault; return the exit code."""
        async with self._transport, self.server:
            _LOG.info("replica %s serves probes on port %d", self.identity, self.server.port)
            await self._wait_for_the_cluster()
            await run_kopf(self, self._stop)
        return 1 if self._fault else 0

    async def _wait_for_the_cluster(self) -> None:
        """Wait for the CRDs and for every right: Kopf would serve nothing, or end, without."""
        await wait_for_api(
            self._transport, RESOURCES, timeout_seconds=math.inf, on_wait=self._say_waiting
        )
        while missing := await missing_rights(self._transport, self._rights):
            self._say_waiting(f"not allowed to {', '.join(missing)}; apply deploy/rbac.yaml")
            await asyncio.sleep(RIGHTS_SECONDS)
        await wait_for_watches(
            self._transport, (PROFILES, CONFIGS, NODES), on_wait=self._say_waiting
        )
        self.health.waiting_for = ""

    def _say_waiting(self, what: str) -> None:
        if what != self.health.waiting_for:
            _LOG.warning("waiting: %s", what)
        self.health.waiting_for = what


async def run_operator(settings: OperatorSettings) -> int:
    """Connect and run; raises CubeschedError when the server cannot be reached at the start."""
    connection = await connect(settings.kubeconfig, settings.context)
    try:
        return await Operator(settings, connection).run()
    except CubeschedError:
        _LOG.debug("the operator ends", exc_info=True)
        raise
