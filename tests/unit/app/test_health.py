"""Probes turn red when the work stops, each naming what stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from cubesched.app.health import BEAT_SECONDS, SILENT_SECONDS, Health


@dataclass
class Watch:
    age: float = 0.0
    position: int | None = 7

    def age_seconds(self, _now: float) -> float:
        return self.age


@dataclass
class Turning:
    since: float = 0.0

    def seconds_since_turn(self) -> float:
        return self.since


@dataclass
class Parts:
    """What the checks look at, all well until a test says otherwise."""

    watches: dict[str, Watch] = field(default_factory=lambda: {"sandboxrequests": Watch()})
    scheduler: Turning = field(default_factory=Turning)
    blind: dict[str, str] = field(default_factory=dict)
    current: object = "a policy"
    why_down: str | None = None

    @property
    def fleet(self) -> Parts:
        return self

    @property
    def ledger(self) -> Parts:
        return self


@dataclass
class Probes:
    live: dict[str, Callable[[], str | None]] = field(default_factory=dict)
    ready: dict[str, Callable[[], str | None]] = field(default_factory=dict)

    def add_live(self, name: str, check: Callable[[], str | None]) -> None:
        self.live[name] = check

    def add_ready(self, name: str, check: Callable[[], str | None]) -> None:
        self.ready[name] = check

    def red(self, checks: dict[str, Callable[[], str | None]]) -> dict[str, str]:
        return {name: why for name, check in checks.items() if (why := check())}


def probing(parts: Parts, *, waiting_for: str = "") -> Probes:
    probes, anything = Probes(), cast("Any", parts)
    health = Health(anything, anything, anything)
    health.waiting_for = waiting_for
    health.register(cast("Any", probes))
    return probes


async def test_nothing_is_red_while_everything_works() -> None:
    probes = probing(Parts())

    assert probes.red(probes.live) == {}
    assert probes.red(probes.ready) == {}


async def test_a_silent_watch_turns_liveness_red() -> None:
    probes = probing(Parts(watches={"sandboxnodes": Watch(age=SILENT_SECONDS + 1)}))

    assert probes.red(probes.live) == {"watch-sandboxnodes": "nothing heard for 121 s"}


async def test_a_loop_that_takes_no_turns_turns_liveness_red() -> None:
    parts = Parts(scheduler=Turning(since=BEAT_SECONDS + 1))

    probes = probing(parts)
    assert probes.red(probes.live) == {"scheduler": "no turn taken for 11 s"}
    starting = probing(parts, waiting_for="the CRDs")
    assert starting.red(starting.live) == {}, "nothing turns before the cluster is ready"


async def test_each_thing_that_is_missing_keeps_it_from_being_ready() -> None:
    parts = Parts(
        watches={"sandboxrequests": Watch(position=None)},
        blind={"u1": "team-a/r1: not an object"},
        current=None,
        why_down="connection refused",
    )

    probes = probing(parts, waiting_for="not allowed to list sandboxnodes")

    assert probes.red(probes.ready) == {
        "list-sandboxrequests": "the list is not complete",
        "cluster": "not allowed to list sandboxnodes",
        "policy": "no valid policy set was ever compiled",
        "requests-readable": "nothing is confirmed: team-a/r1: not an object",
        "redis": "never read: connection refused",
    }


async def test_redis_once_seen_may_go_away() -> None:
    parts = Parts()
    probes = probing(parts)
    assert probes.red(probes.ready) == {}

    parts.why_down = "connection refused"

    assert probes.red(probes.ready) == {}
