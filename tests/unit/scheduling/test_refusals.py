"""Agents that refuse: the request goes elsewhere and remembers where it was not wanted."""

from __future__ import annotations

from tests.unit.scheduling.worlds import World, in_world, settle


@in_world()
async def test_an_agent_that_refuses_gives_the_request_back_and_is_passed_over(
    world: World,
) -> None:
    world.put_node("n2")
    world.beat("n2", ago_seconds=1.0)
    world.beat("n2")
    world.start()
    world.server.create("r1")
    await settle(1.0)
    first = world.status()["nodeName"]
    status = {key: value for key, value in world.status().items()
              if key not in {"nodeName", "reservation"}}  # fmt: skip
    refusal = {"node": first, "reason": "NoRoom", "time": "2027-01-15T08:00:00Z"}
    world.server.change("r1", status={**status, "phase": "Pending", "refusals": [refusal]})
    await settle(1.0)

    assert world.phase() == "Bound"
    assert world.status()["nodeName"] != first
