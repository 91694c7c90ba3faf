"""The scenarios that the in-memory API server passes hold on a real one: the model is true."""

from __future__ import annotations

import pytest
from tests.model.http import Http
from tests.model.semantics import SCENARIOS, Scenario, clean_up

from cubesched.adapters.cluster.connection import AiohttpTransport, connect
from cubesched.local import LocalControlPlane


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_a_real_server_does_what_the_model_does(
    scenario: Scenario, control_plane: LocalControlPlane, fresh_namespace: str
) -> None:
    connection = await connect(str(control_plane.kubeconfig))
    async with AiohttpTransport(connection) as transport:
        http = Http(transport, namespace=fresh_namespace)
        try:
            await scenario(http, "model")
        finally:
            await clean_up(http)
