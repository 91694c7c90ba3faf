"""What a scrape shows of nodes and waiting requests is read off as it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

from tests.unit.policy.builders import a_config, a_profile, compiled
from tests.unit.scheduling.worlds import World, in_world, settle
from typing_extensions import override

from cubesched.adapters.telemetry.meter import Meter
from cubesched.app.gauges import Gauges
from cubesched.core.pipeline import Circuit
from cubesched.plugins.elsewhere import FilterElsewhere, NoHost


@dataclass
class Breakers(NoHost):
    """A host whose plugins' circuit breakers stand as they are told to."""

    circuits: dict[str, Circuit]

    @override
    def circuit(self, plugin: str) -> Circuit:
        """Return what was told."""
        return self.circuits[plugin]


def scraped(world: World) -> list[str]:
    parts = SimpleNamespace(
        fleet=world.fleet,
        scheduler=world.scheduler,
        watches={},
        routing=SimpleNamespace(changed={"sbr-a.b", "sbr-c.d"}),
    )
    meter = Meter()
    meter.before_scrape(Gauges(cast("Any", parts), cast("Any", world.policy), meter).refresh)
    return meter.exposition().decode().splitlines()


@in_world()
async def test_only_confirmed_requests_over_commit_a_node(world: World) -> None:
    world.server.create("a", phase="Running", node="n1", reservation={"cpuMillis": 6000})
    world.server.create("b", phase="Reserved", node="n1", reservation={"cpuMillis": 6000})
    await settle(0.1)
    assert 'cubesched_overcommitted_nodes{profile=""} 0.0' in scraped(world)

    world.server.create("c", phase="Running", node="n1", reservation={"cpuMillis": 6000})
    await settle(0.1)
    assert 'cubesched_overcommitted_nodes{profile=""} 1.0' in scraped(world)


@in_world()
async def test_what_nobody_confirmed_is_shown_while_it_is_on_a_node(world: World) -> None:
    assert "cubesched_directly_bound_requests 0.0" in scraped(world)
    direct = {"id": "id-1", "replica": "replica-x", "confirmation": "none"}
    world.server.create("a", phase="Running", node="n1", reservation=direct)
    world.server.create("b", phase="Running", node="n1", reservation={"id": "id-2"})
    await settle(0.1)
    assert "cubesched_directly_bound_requests 1.0" in scraped(world)

    world.server.patch_status("a", phase="Succeeded")
    await settle(0.1)
    assert "cubesched_directly_bound_requests 0.0" in scraped(world)


@in_world()
async def test_a_waiting_request_is_counted_by_its_queue_and_by_what_blocks_it(
    world: World,
) -> None:
    world.start()
    world.server.create("r1", cpu="99")
    await settle()

    lines = scraped(world)
    assert 'cubesched_pending_requests{profile="a-profile",queue="unschedulable"} 1.0' in lines
    assert 'cubesched_unschedulable_requests{guard="cpu",profile="a-profile"} 1.0' in lines
    assert 'cubesched_nodes{state="ok"} 1.0' in lines


@in_world()
async def test_routing_records_that_wait_for_redis_are_counted(world: World) -> None:
    assert "cubesched_routes_unwritten 2.0" in scraped(world)


@in_world()
async def test_the_circuit_breakers_of_plugins_that_are_waited_for_are_shown(
    world: World,
) -> None:
    host = Breakers({"zones": Circuit.CLOSED, "racks": Circuit.CLOSED})
    plugins = FilterElsewhere("zones"), FilterElsewhere("racks")
    for plugin in plugins:
        plugin.host = host
    running = world.policy.current
    assert running is not None
    profile = running.profiles[0]
    listed = replace(profile, pipeline=replace(profile.pipeline, filters=plugins))
    world.policy.current = replace(running, profiles=(listed,))

    host.circuits |= {"racks": Circuit.OPEN, "zones": Circuit.TRYING}
    lines = scraped(world)

    assert 'cubesched_plugin_circuit_state{plugin="racks"} 2.0' in lines
    assert 'cubesched_plugin_circuit_state{plugin="zones"} 1.0' in lines
    host.circuits |= {"racks": Circuit.CLOSED}
    assert 'cubesched_plugin_circuit_state{plugin="racks"} 0.0' in scraped(world)


@in_world()
async def test_each_profile_tells_where_it_comes_from(world: World) -> None:
    world.policy.current = compiled([a_profile("burst")], a_config(legacy={}))

    shown = [line for line in scraped(world) if line.startswith("cubesched_profile_info")]

    assert [re.findall('(?:profile|source)="([a-z]+)"', line) for line in sorted(shown)] == [
        ["burst", "custom"],
        ["default", "legacy"],
    ]
