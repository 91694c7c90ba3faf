"""Notices when a plugin that is waited for begins or ceases to do well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cubesched.core.pipeline import Health
from cubesched.plugins.hosts import waiting
from cubesched.policy.active import ActivePolicy

LOOK_SECONDS = 1.0
HOLD_SECONDS = 5.0
"""A plugin that comes and goes is told so often at most: each time a status is written."""


class PluginHealth:
    """Compares how all hosts of the running set do with a second ago."""

    def __init__(self, policy: ActivePolicy, on_change: Callable[[], None]) -> None:
        self._policy, self._on_change = policy, on_change
        self._before: list[tuple[str, Health]] = []

    async def run(self) -> None:
        """Look once a second, and less often after there was news, for ever."""
        while True:
            is_news = self.look()
            await asyncio.sleep(HOLD_SECONDS if is_news else LOOK_SECONDS)

    def look(self) -> bool:
        """Tell whoever asked if anything has changed, and whether it has."""
        now = self.states()
        is_news = now != self._before
        if is_news:
            self._before = now
            self._on_change()
        return is_news

    def states(self) -> list[tuple[str, Health]]:
        """Return (Profile/plugin, health) of every plugin that is waited for."""
        policy = self._policy.current
        return [
            (f"{profile.name}/{plugin.name}", plugin.host.health()[0])
            for profile in (policy.profiles if policy else ())
            for plugin in waiting(profile.pipeline)
        ]
