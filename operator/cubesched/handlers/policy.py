"""SchedulerProfile and SchedulerConfig: an event announces work, it never carries it."""

from __future__ import annotations

from typing import Any

import kopf

from cubesched.api import CONFIGS, GROUP, PROFILES, VERSION
from cubesched.handlers.ports import App


def register(registry: kopf.OperatorRegistry, app: App) -> None:
    """Attach the handlers of both policy kinds."""

    @kopf.on.event(GROUP, VERSION, PROFILES.plural, registry=registry)
    @kopf.on.event(GROUP, VERSION, CONFIGS.plural, registry=registry)
    async def policy_changed(**_: Any) -> None:
        """Have the whole set compiled anew."""
        app.policy_reconciler.poke()
