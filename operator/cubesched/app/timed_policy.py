"""The running policy as the scheduler leases it: every plugin in it timed."""

from __future__ import annotations

import time
from dataclasses import replace

from cubesched.adapters.telemetry.meter import Meter
from cubesched.plugins.timed import Record, timed
from cubesched.policy.active import ActivePolicy
from cubesched.policy.policyset import PolicySet


class TimedPolicy:
    """Wraps each set once, when it is first leased."""

    def __init__(self, policy: ActivePolicy, meter: Meter) -> None:
        self._policy, self._meter = policy, meter
        self._source: PolicySet | None = None
        self._timed: PolicySet | None = None

    @property
    def current(self) -> PolicySet | None:
        """The set that new attempts lease; None when nothing valid was ever compiled."""
        running = self._policy.current
        if running is not self._source:
            self._source, self._timed = running, self._wrap(running)
        return self._timed

    def _wrap(self, policy: PolicySet | None) -> PolicySet | None:
        if policy is None:
            return None
        profiles = tuple(
            replace(p, pipeline=timed(p.pipeline, recorder=self._recorder, clock=time.perf_counter))
            for p in policy.profiles
        )
        return replace(policy, profiles=profiles)

    def _recorder(self, profile: str, kind: str, plugin: str) -> Record:
        return self._meter.recorder(
            "scheduler_plugin_duration_seconds", profile=profile, kind=kind, plugin=plugin
        )
