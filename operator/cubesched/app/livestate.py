"""What the API server and Redis say now, read once, as a replica would hold it.

For commands that answer a question and end. A replica that starts decides nothing for a node
before it has seen its next report; whoever asks once cannot wait for that, so reports are believed
as they stand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from cubesched.adapters.clock import SystemClock
from cubesched.adapters.cluster.listing import Listed, list_raw
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.nodemetrics.layouts import open_sources
from cubesched.api import CONFIGS, NODES, PROFILES, REQUESTS, Resource
from cubesched.core.errors import StoreUnavailable
from cubesched.core.scheduler_settings import Settings
from cubesched.fleet.entries import Entry, read_entry
from cubesched.fleet.fleet import Fleet
from cubesched.fleet.metrics_layout import Decoded
from cubesched.plugins.listing import Surroundings
from cubesched.policy.compiler import CompileResult, compile_set
from cubesched.policy.objects import CONFIG_NAME, PolicyObject
from cubesched.policy.policyset import PolicySet
from cubesched.scheduling.quarantines import Quarantines

PAGE_SIZE: Final = 2_500
"""Larger than a watch's: fewer round trips count here, and one reader at a time."""


@dataclass(frozen=True, slots=True)
class Objects:
    """All objects of our kinds."""

    nodes: Listed
    requests: Listed
    profiles: Sequence[PolicyObject]
    config: PolicyObject | None

    def request(self, namespace: str, name: str) -> Entry | None:
        """Return one request; None when there is none of that name."""
        # Most objects do not even hold the name, and need not be read to tell.
        word = name.encode()
        found = (read_entry(raw) for raw in self.requests.items if word in raw)
        return next((e for e in found if (e.namespace, e.name) == (namespace, name)), None)

    def request_names(self, namespace: str) -> list[str]:
        """Return the names of all requests in a namespace, in order."""
        entries = (read_entry(raw) for raw in self.requests.items)
        return sorted(entry.name for entry in entries if entry.namespace == namespace)


@dataclass(slots=True)
class LiveState:
    """The fleet and the policy as a replica that started now would see them."""

    fleet: Fleet
    compiled: CompileResult
    clock: SystemClock
    metrics_problem: str = "not read"
    """Why no node report could be read; empty when they were."""
    read_at: float = 0.0
    """When the reports were taken over (monotonic)."""

    @property
    def current(self) -> PolicySet | None:
        """The stored policy set; None when it does not compile."""
        return self.compiled.policy

    @property
    def node_names(self) -> Sequence[str]:
        """All nodes, in order."""
        return self.fleet.columns.names

    def take_reports(self, readings: Sequence[Decoded]) -> None:
        """Believe these reports as they stand."""
        self.fleet.take_reports(*readings)
        self._judge("")

    def go_without_reports(self, problem: str) -> None:
        """Take every node for one that has just reported, and has nothing else to say."""
        reported = self.fleet.columns.reported
        reported.stamp_ms[:] = int(self.clock.wall() * 1000)
        reported.advanced_monotonic[:] = self.clock.monotonic()
        self._judge(problem)

    def _judge(self, problem: str) -> None:
        self.metrics_problem, self.read_at = problem, self.clock.monotonic()
        self.fleet.columns.reported.awaited[:] = False
        self.fleet.sweep()


async def read_objects(transport: Transport) -> Objects:
    """List everything at once; raises ApiError when a list cannot be read."""
    nodes, requests, profiles, configs = await asyncio.gather(
        *(
            list_raw(transport, kind, page_size=PAGE_SIZE)
            for kind in (NODES, REQUESTS, PROFILES, CONFIGS)
        )
    )
    named = {config.name: config for config in _policy_objects(CONFIGS, configs)}
    return Objects(nodes, requests, _policy_objects(PROFILES, profiles), named.get(CONFIG_NAME))


def state_of(objects: Objects, *, without: Entry | None = None) -> LiveState:
    """Fill a fleet with what was listed, but for one request; no report is taken yet."""
    compiled = compile_set(objects.profiles, objects.config, Surroundings(is_elsewhere=True))
    return state_under(compiled, objects, without=without)


def state_under(
    compiled: CompileResult, objects: Objects, *, without: Entry | None = None
) -> LiveState:
    """Fill a fleet as `state_of` does, under another policy than the one that was listed."""
    clock = SystemClock()
    fleet = Fleet(monotonic=clock.monotonic, wall=clock.wall)
    fleet.configure(_settings_of(objects, compiled))
    quarantines = Quarantines(fleet, clock)
    fleet.on_request = quarantines.meet
    _fill(fleet, objects, without)
    quarantines.sweep()
    return LiveState(fleet, compiled, clock)


async def read_reports(redis_url: str, layout: str, state: LiveState) -> None:
    """Let `state` take all node reports, or go without where Redis does not answer."""
    sources = open_sources(redis_url, layout)
    try:
        names = state.node_names
        readings = await asyncio.to_thread(lambda: [source.read(names) for source in sources])
    except StoreUnavailable as error:
        state.go_without_reports(f"{error}, tried {_without_password(redis_url)}")
    else:
        state.take_reports(readings)
    finally:
        for source in sources:
            source.close()


def _settings_of(objects: Objects, compiled: CompileResult) -> Settings:
    """Return the settings in force, those of the config alone where no set compiles."""
    policy = compiled.policy or compile_set((), objects.config).policy
    return policy.settings if policy else Settings()


def _fill(fleet: Fleet, objects: Objects, without: Entry | None) -> None:
    fleet.reset()
    for raw in objects.nodes.items:
        fleet.seen(raw)
    fleet.complete(objects.nodes.version)
    left_out = without.uid.encode() if without else b""
    fleet.ledger.reset()
    for raw in objects.requests.items:
        if without is None or left_out not in raw or read_entry(raw).uid != without.uid:
            fleet.ledger.seen(raw)
    fleet.ledger.complete(objects.requests.version)


def _policy_objects(kind: Resource, listed: Listed) -> list[PolicyObject]:
    return [PolicyObject.from_body(kind.kind, msgspec.json.decode(raw)) for raw in listed.items]


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
