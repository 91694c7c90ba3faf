"""Gauges that are read off the running replica when somebody scrapes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import numpy as np

from cubesched.adapters.telemetry.meter import Meter
from cubesched.app.replica import Replica
from cubesched.core.pipeline import Pipeline
from cubesched.core.snapshot import Safety
from cubesched.fleet.overcommit import confirmed
from cubesched.plugins.hosts import waiting
from cubesched.policy.active import ActivePolicy
from cubesched.scheduling.queue import Item

QUEUES = {"ready": "active", "busy": "active", "held": "backoff", "parked": "unschedulable"}


class Gauges:
    """Sets every gauge anew at each scrape, and to 0 what has vanished since the last."""

    def __init__(self, replica: Replica, policy: ActivePolicy, meter: Meter) -> None:
        self._replica, self._policy, self._meter = replica, policy, meter
        self._set: dict[str, set[tuple[tuple[str, str], ...]]] = {}
        self._profiles: set[str] = set()

    def refresh(self) -> None:
        """Read everything; called by the meter before it writes its text."""
        self._requests()
        self._nodes()
        self._routes()
        self._watches()
        self._policy_info()

    def _all(self, name: str, values: dict[tuple[tuple[str, str], ...], float]) -> None:
        for gone in self._set.get(name, set()) - values.keys():
            self._meter.forget(name, **dict(gone))
        for labels, value in values.items():
            self._meter.set(name, value, **dict(labels))
        self._set[name] = set(values)

    def _requests(self) -> None:
        scheduler = self._replica.scheduler
        pending: Counter[tuple[tuple[str, str], ...]] = Counter()
        blocked: Counter[tuple[tuple[str, str], ...]] = Counter()
        for item in scheduler.queue.items.values():
            profile = self._profile_of(item)
            pending[("profile", profile), ("queue", QUEUES[item.where])] += 1
            no = scheduler.waking.nos.get(item.uid)
            if item.where == "parked" and no is not None:
                blocked[("profile", profile), ("guard", no.blocked_by or no.reason)] += 1
        self._all("cubesched_pending_requests", dict(pending))
        self._all("cubesched_unschedulable_requests", dict(blocked))
        unconfirmed = len(scheduler.modes.directly_bound)
        self._meter.set("cubesched_directly_bound_requests", float(unconfirmed))

    def _profile_of(self, item: Item) -> str:
        no = self._replica.scheduler.waking.nos.get(item.uid)
        return no.profile if no is not None else ""

    def _nodes(self) -> None:
        fleet = self._replica.fleet
        view, reported = fleet.snapshot, fleet.columns.reported
        states = Counter(Safety(code).name.lower() for code in view.safety.tolist())
        self._all("cubesched_nodes", {(("state", name),): n for name, n in states.items()})
        reporting = reported.advanced_monotonic[reported.stamp_ms >= 0]
        now = asyncio.get_running_loop().time()
        age = float(now - reporting.min()) if reporting.size else 0.0
        self._meter.set("cubesched_node_metrics_age_seconds", max(0.0, age))
        over = np.count_nonzero(confirmed(fleet.columns, fleet.ledger).is_over)
        self._meter.set("cubesched_overcommitted_nodes", float(over), profile="")

    def _routes(self) -> None:
        waiting = len(self._replica.routing.changed)
        self._meter.set("cubesched_routes_unwritten", float(waiting))

    def _watches(self) -> None:
        now = asyncio.get_running_loop().time()
        for name, watch in self._replica.watches.items():
            self._meter.set("cubesched_watch_age_seconds", watch.age_seconds(now), resource=name)

    def _policy_info(self) -> None:
        running = self._policy.current
        if running is None:
            return
        rows = {
            (("profile", p.name), ("revision", running.revision), ("source", p.source))
            for p in running.profiles
        }
        self._all("cubesched_profile_info", dict.fromkeys(rows, 1.0))
        self._circuits([profile.pipeline for profile in running.profiles])
        live = {row[0][1] for row in rows}
        for gone in self._profiles - live:
            self._meter.forget_profile(gone)
        self._profiles = live

    def _circuits(self, pipelines: Sequence[Pipeline]) -> None:
        """Show the worst circuit breaker of all entries of a name."""
        worst: dict[tuple[tuple[str, str], ...], float] = {}
        for plugin in (each for pipeline in pipelines for each in waiting(pipeline)):
            row = (("plugin", plugin.name),)
            worst[row] = max(worst.get(row, 0.0), float(plugin.host.circuit(plugin.name)))
        self._all("cubesched_plugin_circuit_state", worst)
