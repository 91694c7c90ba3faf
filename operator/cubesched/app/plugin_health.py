"""Notices when a plugin that is waited for begins or ceases to do well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cubesched.core.pipeline import Health
from cubesched.plugins.hosts import waiting
from cubesched.policy.active import ActivePolicy

LOOK_SECONDS = 1.0


class PluginHealth:
    """Compares how all hosts of the running set do with a second ago."""

    def __init__(self, policy: ActivePolicy, on_change: Callable[[], None]) -> None:
        self._policy, self._on_change = policy, on_change
        self._before: list[tuple[str, Health]] = []

    async def run(self) -> None:
        """Look once a second, for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Tell whoever asked if anything has changed."""
        now = self.states()
        if now != self._before:
            self._before = now
            self._on_change()

    def states(self) -> list[tuple[str, Health]]:
        """Return (Profile/plugin, health) of every plugin that is waited for."""
        policy = self._policy.current
        return [
            (f"{profile.name}/{plugin.name}", plugin.host.health()[0])
            for profile in (policy.profiles if policy else ())
            for plugin in waiting(profile.pipeline)
        ]
