"""Kopf as one part of the program: it runs until `stop` is set, or it receives a signal."""

from __future__ import annotations

import asyncio
import logging

import kopf
import msgspec

from cubesched.adapters.cluster.backoff import Backoff
from cubesched.adapters.cluster.transport import Transport
from cubesched.api import API_VERSION, RESOURCES
from cubesched.core.errors import ApiError
from cubesched.handlers import lifecycle, nodes, policy
from cubesched.handlers.ports import App

logger = logging.getLogger(__name__)


def register(registry: kopf.OperatorRegistry, app: App) -> None:
    """Attach every handler of the operator."""
    for module in (lifecycle, policy, nodes):
        module.register(registry, app)


async def run_kopf(app: App, stop: asyncio.Event) -> None:
    """Run Kopf in this event loop until `stop` is set; the CRDs must be served already.

    Standalone by code: no peering object can pause a replica.
    """
    registry = kopf.OperatorRegistry()
    register(registry, app)
    await kopf.operator(
        registry=registry,
        standalone=True,
        clusterwide=True,
        memo=kopf.Memo(app=app),
        stop_flag=stop,
    )


async def wait_for_kinds(transport: Transport, backoff: Backoff) -> None:
    """Return when the API server serves all four kinds; says every time what is missing.

    Kopf looks for them once, at its start, and would serve nothing that comes later.
    """
    while True:
        missing = await _missing(transport)
        if not missing:
            return
        logger.warning("waiting for %s", missing)
        await asyncio.sleep(backoff.next_seconds())


async def _missing(transport: Transport) -> str:
    """Return what keeps us waiting, in words; empty when nothing does."""
    try:
        response = await transport.request("GET", f"/apis/{API_VERSION}")
    except ApiError as error:
        return str(error)
    if response.status != 200:
        return f"the CRDs of {API_VERSION}: the API server does not serve the group"
    listed = msgspec.json.decode(response.body).get("resources", ())
    served = {resource["name"] for resource in listed}
    absent = [resource.plural for resource in RESOURCES if resource.plural not in served]
    return f"the CRDs {', '.join(absent)}" if absent else ""
