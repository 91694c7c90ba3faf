"""Replicas that nobody restarts notice that etcd was restored, whichever way it shows."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.model.faults import Faults
from tests.model.http import version_of
from tests.model.quiet import complaints
from tests.model.scenario import Scenario, draw
from tests.model.virtualtime import run_virtual
from tests.model.world import World


def a_quiet_scenario() -> Scenario:
    """Return two replicas on two nodes where nothing goes wrong and sandboxes run for ever."""
    return replace(
        draw(0, "mixed"),
        replicas=2,
        faults=Faults(),
        lifetime_seconds=None,
        refuse_rate=0.0,
        start_fail_rate=0.0,
        requests_at_once=10,
    )


async def let_requests_run(world: World, number: int) -> None:
    """Create requests and wait until they are placed and all is told."""
    for _ in range(number):
        world.create()
    await asyncio.sleep(20)
    assert not complaints(world)


def strayed_agents(world: World) -> list[str]:
    """Return the nodes whose agents hold other requests than the server."""
    strayed = []
    for node, process in world.agents.items():
        held = {(entry.uid, str(entry.version)) for entry in process.agent.requests}
        stored = {
            (obj["metadata"]["uid"], version_of(obj))
            for obj in world.open_requests()
            if obj["status"].get("nodeName") == node
        }
        if held != stored:
            strayed.append(node)
    return strayed


@pytest.mark.parametrize("bump", [0, 1_000], ids=["revisions used again", "revisions bumped"])
@pytest.mark.parametrize("writes_before_anybody_looks", [0, 300])
@pytest.mark.parametrize("down_seconds", [0.0, 30.0])
def test_replicas_list_again_after_a_restore(
    bump: int, writes_before_anybody_looks: int, down_seconds: float
) -> None:
    """With many writes at once the newest revision is soon past what a replica remembers."""

    async def main() -> list[str]:
        world = World(a_quiet_scenario())
        await let_requests_run(world, 4)
        backup = world.server.store.revision
        for _ in range(3):
            world.delete()
        await let_requests_run(world, 3)

        world.server.restore(backup, bump=bump, down_seconds=down_seconds)
        for _ in range(writes_before_anybody_looks):
            world.label()
        await asyncio.sleep(150)

        world.check()
        return [text for text in complaints(world) if "ledger" in text]

    assert run_virtual(main) == []


def test_agents_list_again_when_the_newest_revision_is_behind_theirs() -> None:
    """They have no Lease of their own: what they can see is the server's newest revision."""

    async def main() -> list[str]:
        world = World(a_quiet_scenario())
        await let_requests_run(world, 4)
        backup = world.server.store.revision
        for _ in range(200):
            world.label()
        world.delete()
        await asyncio.sleep(20)

        world.server.restore(backup)
        await asyncio.sleep(20)

        world.check()
        return strayed_agents(world)

    assert run_virtual(main) == []
