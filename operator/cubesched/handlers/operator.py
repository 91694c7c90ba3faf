"""Kopf as one part of the program: it runs until `stop` is set, or it receives a signal."""

from __future__ import annotations

import asyncio

import kopf

from cubesched.handlers import lifecycle, nodes, policy
from cubesched.handlers.ports import App


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
