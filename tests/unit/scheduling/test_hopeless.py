"""What requests that fit nowhere cost, and that they are there when something fits."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from tests.model.virtualtime import run_virtual
from tests.unit.scheduling.worlds import World, settle

MINUTES = 10
HOPELESS = 500


def told_at(world: World) -> dict[str, list[float]]:
    """Return when each request was written to."""
    times: dict[str, list[float]] = {}
    for put in world.server.puts:
        times.setdefault(put.name, []).append(put.at)
    return times


def in_a_world(*nodes: str) -> World:
    world = World()
    world.list_requests()
    world.list_nodes(*nodes)
    return world


def test_hopeless_requests_cost_a_write_and_a_try_a_minute_and_all_are_placed_at_last() -> None:
    async def main() -> None:
        world = in_a_world("n1", "n2")
        world.start()
        names = [f"r{number:03}" for number in range(HOPELESS)]
        for name in names:
            world.server.create(name, cpu="12")
        for second in range(MINUTES * 60):
            # The counts of every one of them change all the time.
            world.put_node("n2", "MODIFIED", ready=second % 2 == 0)
            await settle(1.0)
        tries = world.meter.counts["scheduler_attempts_total"]
        times = told_at(world)
        assert times.keys() == set(names), "each was told why it waits"
        assert all(
            later - sooner >= 59.9 for each in times.values() for sooner, later in pairwise(each)
        )
        assert len(world.server.puts) <= HOPELESS * MINUTES
        assert tries <= HOPELESS * (MINUTES + 1)
        assert len(world.events.notes) == HOPELESS

        world.put_node(
            "big", cpu="12000", memory="2000Gi", spec={"quota": {"createConcurrency": 1000}}
        )
        world.beat("big", ago_seconds=1.0)
        world.beat("big")
        await settle(30.0)
        assert Counter(world.phase(name) for name in names) == {"Bound": HOPELESS}

    run_virtual(main)


def test_a_reason_that_comes_and_goes_costs_no_more_than_counts_that_do() -> None:
    async def main() -> None:
        world = in_a_world("n1")
        world.start()
        world.server.create("r1", cpu="12")
        for second in range(MINUTES * 60):
            world.put_node("n1", "MODIFIED", ready=second % 2 == 0)
            await settle(1.0)

        reasons = [put.status["conditions"][0]["reason"] for put in world.server.puts]
        assert set(reasons) == {"NeverFits", "StaleMetrics"}
        assert len(reasons) <= MINUTES + 2
        assert len(world.events.notes) <= len(reasons)

    run_virtual(main)
