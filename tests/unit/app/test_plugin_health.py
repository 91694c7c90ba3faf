from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.model.virtualtime import run_virtual, spawn
from tests.unit.policy.builders import a_profile, compiled
from tests.unit.scheduling.plugins import NoHost, Slow
from tests.unit.scheduling.worlds import settle
from typing_extensions import override

from cubesched.app.plugin_health import HOLD_SECONDS, LOOK_SECONDS, PluginHealth
from cubesched.core.pipeline import Health
from cubesched.policy.active import ActivePolicy


class Moody(NoHost):
    """A host that does as it is told."""

    now, why = Health.HEALTHY, ""

    @override
    def health(self) -> tuple[Health, str]:
        return self.now, self.why


class World:
    """A running set whose Profiles each wait for one plugin."""

    def __init__(self, *names: str) -> None:
        policy = compiled([a_profile(name) for name in names], None)
        self.hosts = [Moody() for _ in names]
        self.policy = ActivePolicy()
        self.policy.current = replace(
            policy,
            profiles=tuple(
                replace(profile, pipeline=replace(profile.pipeline, filters=(Slow(host=host),)))
                for profile, host in zip(policy.profiles, self.hosts, strict=True)
            ),
        )
        self.told = 0
        self.health = PluginHealth(self.policy, self._tell)
        self.health.look()

    def _tell(self) -> None:
        self.told += 1


def told_after(world: World, states: Sequence[Health]) -> int:
    """Count what is told when the first host is in one state after the other, a second each."""
    before = world.told

    async def main() -> None:
        running = spawn("health", world.health.run())
        for state in states:
            world.hosts[0].now = state
            await settle(LOOK_SECONDS)
        running.cancel()

    run_virtual(main)
    return world.told - before


def test_a_change_of_any_plugin_is_told_once() -> None:
    world = World("a", "b")
    assert not world.health.look()

    world.hosts[1].now = Health.UNREACHABLE

    assert world.health.look()
    assert not world.health.look()


def test_other_words_for_the_same_state_are_not_told() -> None:
    world = World("a")
    world.hosts[0].why = "for 2.1 s"

    assert not world.health.look()


def test_a_set_without_such_plugins_or_none_at_all_has_nothing_to_tell() -> None:
    world = World("a")
    world.policy.current = compiled([a_profile("a")], None)
    assert world.health.look()  # its plugin is gone

    world.policy.current = None
    assert not world.health.look()


def test_a_plugin_that_comes_and_goes_is_told_seldom() -> None:
    states = [Health.CIRCUIT_OPEN, Health.HEALTHY] * 15

    assert told_after(World("a"), states) <= len(states) * LOOK_SECONDS / HOLD_SECONDS + 1


def test_what_it_ends_as_is_told() -> None:
    world = World("a")
    told_after(world, [Health.CIRCUIT_OPEN, *[Health.HEALTHY] * 10])

    assert not world.health.look()
