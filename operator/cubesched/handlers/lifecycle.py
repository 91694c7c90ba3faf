"""Login, start and stop: Kopf runs beside our own tasks and never coordinates replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kopf

from cubesched.handlers.ports import App

FIRST_BACKOFFS_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
LONGEST_BACKOFF_SECONDS = 10.0


class EndlessBackoffs:
    """Delays between tries of one call, without an end: an outage must not end the operator."""

    def __iter__(self) -> Iterator[float]:
        yield from FIRST_BACKOFFS_SECONDS
        while True:
            yield LONGEST_BACKOFF_SECONDS


def register(registry: kopf.OperatorRegistry, app: App) -> None:
    """Attach the handlers of the operator's own life."""

    @kopf.on.login(id="login", registry=registry)
    async def log_in(**_: Any) -> kopf.AiohttpSession:
        """Give Kopf a session of its own, which it closes; it authenticates itself."""
        connection = app.connection
        return kopf.AiohttpSession(
            server=connection.server, aiohttp_session=connection.new_session()
        )

    @kopf.on.startup(id="start", registry=registry)
    async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
        """Set everything that must not be left to defaults, then start our tasks."""
        configure(settings)
        await app.on_started()

    @kopf.on.cleanup(id="stop", registry=registry)
    async def stop(**_: Any) -> None:
        """Stop our tasks before Kopf waits for them."""
        await app.on_stopping()


def configure(settings: kopf.OperatorSettings) -> None:
    """Write nothing of Kopf's own, look at nothing but our kinds, and never wait without end."""
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.watching.connect_timeout = 5.0
    settings.watching.server_timeout = 600
    settings.watching.client_timeout = 660
    settings.watching.inactivity_timeout = 75.0
    settings.networking.request_timeout = 30.0
    settings.networking.connect_timeout = 5.0
    settings.networking.error_backoffs = EndlessBackoffs()
