"""Probes that tell the truth about the work: red when it stops, not only when the server does."""

from __future__ import annotations

import asyncio

from cubesched.adapters.nodemetrics.reader import MetricsReader
from cubesched.adapters.telemetry.server import TelemetryServer
from cubesched.app.replica import Replica
from cubesched.policy.active import ActivePolicy

SILENT_SECONDS = 120.0
"""Bookmarks come about once a minute; a watch that says nothing for two is dead."""
BEAT_SECONDS = 10.0


class Health:
    """The checks behind /livez and /readyz."""

    def __init__(self, replica: Replica, policy: ActivePolicy, reader: MetricsReader) -> None:
        self._replica, self._policy, self._reader = replica, policy, reader
        self._redis_seen = False
        self.waiting_for = "starting"
        """What the start waits for: CRDs, rights; empty once everything runs."""

    def register(self, server: TelemetryServer) -> None:
        """Add every check to the server."""
        for name in self._replica.watches:
            server.add_live(f"watch-{name}", lambda name=name: self._silent(name))  # type: ignore[misc]
        server.add_live("scheduler", self._stuck)
        for name in self._replica.watches:
            server.add_ready(f"list-{name}", lambda name=name: self._unlisted(name))  # type: ignore[misc]
        server.add_ready("cluster", lambda: self.waiting_for or None)
        server.add_ready("policy", self._no_policy)
        server.add_ready("requests-readable", self._blind)
        server.add_ready("redis", self._never_reported)

    def _silent(self, name: str) -> str | None:
        age = self._replica.watches[name].age_seconds(asyncio.get_running_loop().time())
        return f"nothing heard for {age:.0f} s" if age > SILENT_SECONDS else None

    def _stuck(self) -> str | None:
        if self.waiting_for:
            return None
        age = self._replica.scheduler.seconds_since_turn()
        return f"no turn taken for {age:.0f} s" if age > BEAT_SECONDS else None

    def _unlisted(self, name: str) -> str | None:
        watch = self._replica.watches[name]
        return None if watch.position is not None else "the list is not complete"

    def _no_policy(self) -> str | None:
        return None if self._policy.current else "no valid policy set was ever compiled"

    def _blind(self) -> str | None:
        blind = self._replica.fleet.ledger.blind
        return f"nothing is confirmed: {'; '.join(list(blind.values())[:3])}" if blind else None

    def _never_reported(self) -> str | None:
        why = self._reader.why_down
        self._redis_seen = self._redis_seen or why is None
        return None if self._redis_seen else f"never read: {why}"
