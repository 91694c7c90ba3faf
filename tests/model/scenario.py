"""One schedule's world, drawn from its seed: sizes, policy, faults, and how often what happens.

Swarm testing: every schedule has its own mixture, also of what is switched off; one fixed mixture
would hide the combinations that matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.model.faults import Faults, swarm
from tests.model.lives import CREATE_SECONDS, IMPATIENT
from tests.model.loads import NodeLimits
from tests.unit.policy.builders import compiled

from cubesched.policy.objects import CONFIG_KIND, PROFILE_KIND, PolicyObject
from cubesched.policy.policyset import PolicySet

GIB = 1 << 30
PROFILES: tuple[Mapping[str, Any], ...] = (
    {"scores": [{"name": "most_allocated"}], "selection": {"topN": 1, "method": "highest"}},
    {"scores": [{"name": "least_allocated"}], "selection": {"topN": 1, "method": "highest"}},
    {"scores": [{"name": "balanced_allocation"}], "selection": {"topN": 5, "method": "random"}},
    {"scores": [{"name": "resource_fit_score"}], "selection": {"topN": 3, "method": "spread"}},
)
EVENTS: Mapping[str, float] = {
    "create": 6.0,
    "delete": 0.6,
    "label": 0.5,
    "crash": 0.15,
    "pause": 0.25,
    "agent_crash": 0.1,
    "restart": 0.05,
    "compact": 0.3,
    "end_streams": 0.05,
    "corrupt": 0.1,
    "restore": 0.03,
    "drain": 0.15,
    "wish": 0.6,
    "ratio": 0.05,
    "silence": 0.05,
    "switch": 0.0,
    "resize": 0.0,
    "rival": 0.0,
    "freeze": 0.0,
    "usurp": 0.0,
}
"""What may happen, times a virtual second, before a schedule's own factor."""

TROUBLES: Mapping[str, Mapping[str, float]] = {
    "listing": {"compact": 6.0, "crash": 0.3, "restore": 0.0, "wish": 0.0},
    "late": {"pause": 2.0, "crash": 0.5, "restore": 0.0},
    "unreadable": {"corrupt": 1.0, "compact": 1.0, "crash": 0.3, "restore": 0.0},
    "pausing": {"wish": 6.0, "ratio": 0.3, "pause": 1.0, "agent_crash": 0.3, "restore": 0.0},
    "dying": {"silence": 0.8, "pause": 1.0, "agent_crash": 0.3, "delete": 0.3, "restore": 0.0},
    "draining": {"drain": 1.5, "pause": 1.0, "agent_crash": 0.5, "delete": 0.3, "restore": 0.0},
    "agent": {
        "agent_crash": 0.4,
        "pause": 1.5,
        "crash": 0.3,
        "compact": 1.0,
        "delete": 3.0,
        "rival": 4.0,
        "freeze": 0.3,
        "usurp": 2.0,
        "resize": 8.0,
        "switch": 0.1,
        "restore": 0.0,
    },
    "modes": {"switch": 0.4, "pause": 0.5, "crash": 0.3, "agent_crash": 0.2, "restore": 0.0},
}
"""What is frequent under each theme but `mixed`, times a virtual second."""
TURNS = ("mixed", "mixed", *TROUBLES)
MODES = {"agent": ("agent", "operator"), "modes": ("none", "operator", "agent")}
"""Who confirms, the first at the start; the operator under every other theme."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that a seed decides before the first step."""

    seed: int
    theme: str
    replicas: int
    nodes: Mapping[str, NodeLimits]
    policies: Mapping[str, PolicySet]
    """By who confirms; the first is the one at the start."""
    faults: Faults
    rates: Mapping[str, float]
    seconds: float
    """How long things happen before the world falls quiet."""
    requests_at_once: int
    """No more unfinished requests than this exist at a time."""
    lifetime_seconds: tuple[float, float] | None
    refuse_rate: float
    start_fail_rate: float
    most_per_page: int
    bookmark_seconds: float
    writes_land_after_crash: float
    create_seconds: float = 0.2
    """How long a machine takes to create a sandbox."""
    lives_are_bounded: bool = False
    """Whether requests have times to end and to go."""
    stop_seconds: float = 0.0
    """How long a machine takes to stop a sandbox."""

    def describe(self) -> str:
        """Return one line for people."""
        limits = next(iter(self.nodes.values()))
        return (
            f"{self.theme}: {self.replicas} replicas, {len(self.nodes)} nodes of {limits}, "
            f"{self.requests_at_once} requests at once, {self.seconds:.0f} s, {self.faults}"
        )


def draw(seed: int, theme: str = "") -> Scenario:
    """Draw the world of one seed; without a theme, the seed's turn decides that too."""
    theme = theme or TURNS[seed % len(TURNS)]
    rng = Random(f"scenario {seed} {theme}")
    cpus = rng.choice((3, 4, 6, 8))
    limits = NodeLimits(
        cpu_millis=cpus * 1000,
        memory_bytes=rng.choice((cpus, cpus, 64)) * GIB,
        sandboxes=rng.choice((3, 5, 100)),
        creates=rng.choice((1, 2, 3, 100)),
    )
    number = rng.choice((1, 1, 2, 3, 4))
    drawn = Scenario(
        seed=seed,
        theme=theme,
        replicas=rng.choice((2, 3, 3, 4)),
        nodes={f"n{index}": limits for index in range(number)},
        policies=_policies(rng, theme),
        faults=swarm(rng),
        rates={name: rate * rng.choice((0, 0.3, 1, 1, 3)) for name, rate in EVENTS.items()}
        | {"create": EVENTS["create"] * rng.choice((0.5, 1, 3))},
        seconds=rng.choice((15.0, 25.0, 40.0)),
        requests_at_once=max(3, int(rng.choice((0.9, 1.2, 2.0)) * number * cpus / 1.6)),
        lifetime_seconds=rng.choice((None, (0.5, 4.0), (1.0, 20.0))),
        refuse_rate=rng.choice((0.0, 0.0, 0.1)),
        start_fail_rate=rng.choice((0.0, 0.0, 0.1)),
        most_per_page=rng.choice((1, 2, 3, 500)),
        bookmark_seconds=rng.choice((2.0, 60.0)),
        writes_land_after_crash=rng.choice((0.0, 0.5, 1.0)),
    )
    return _themed(drawn, rng)


def _themed(drawn: Scenario, rng: Random) -> Scenario:
    """Make one kind of trouble frequent, so that its rare combinations come up too."""
    if drawn.theme == "mixed":
        return drawn
    crowded = replace(
        drawn,
        rates={**drawn.rates, "create": 15.0, "delete": 2.0, **TROUBLES[drawn.theme]},
        seconds=15.0,
        requests_at_once=drawn.requests_at_once * 2,
        lifetime_seconds=(0.2, 2.0),
    )
    return replace(crowded, **_special(drawn, rng))


def _special(drawn: Scenario, rng: Random) -> dict[str, Any]:
    """Return what only one theme has."""
    special: dict[str, Any]
    match drawn.theme:
        case "listing":
            faults = Faults(
                latency_seconds=rng.choice((0.01, 0.05)), watch_drop=0.1, gone_as_http=0.5
            )
            special = {"faults": faults, "most_per_page": rng.choice((1, 2, 3))}
        case "late":
            faults = replace(drawn.faults, late=0.15, lost_after=0.1, late_seconds=3.0)
            special = {"faults": faults, "writes_land_after_crash": 1.0}
        case "dying":
            special = {
                "nodes": {f"n{index}": each for index, each in enumerate(_at_least_two(drawn))},
                "policies": _policies(rng, drawn.theme, **IMPATIENT),
                "seconds": 25.0,
                "create_seconds": rng.choice(CREATE_SECONDS),
                "lives_are_bounded": rng.choice((True, False)),
                "lifetime_seconds": rng.choice((None, (1.0, 10.0))),
            }
        case "draining" | "pausing":
            special = {"lifetime_seconds": rng.choice((None, (1.0, 10.0)))}
        case "agent":
            faults = replace(
                drawn.faults,
                latency_seconds=rng.choice((0.003, 0.03, 0.1)),
                watch_lag_seconds=rng.choice((0.005, 0.05, 0.2)),
                watch_drop=0.1,
                gone_as_http=0.5,
            )
            special = {
                "faults": faults,
                "most_per_page": rng.choice((1, 2, 3)),
                "stop_seconds": rng.choice((0.5, 3.0)),
            }
        case "modes":
            special = {"seconds": 30.0}
        case _:
            special = {}
    return special


def _at_least_two(drawn: Scenario) -> tuple[NodeLimits, ...]:
    """Return the nodes; one alone is never silent, since nobody else is heard."""
    each = tuple(drawn.nodes.values())
    return each if len(each) > 1 else each * 2


def _policies(rng: Random, theme: str, **changed: Any) -> Mapping[str, PolicySet]:
    """Draw one policy, in each mode of confirmation that the theme goes through."""
    profile = {"default": True, **rng.choice(PROFILES)}
    config = {
        "concurrency": {
            "ownNodesFirst": rng.choice((True, False)),
            "maxInFlight": rng.choice((2, 8, 256)),
        },
        "startDeadline": rng.choice(
            ("3s", "3s", "3s", "300s") if theme == "agent" else ("10s", "300s")
        ),
        "ignoreRedisAllocation": theme == "agent" and rng.choice((True, False)),
        "guards": {"metricsMaxAge": "60s", "memoryReserved": "0"},
        **changed,
    }
    profiles = [_stored(PROFILE_KIND, "everything", profile)]
    return {
        mode: compiled(profiles, _stored(CONFIG_KIND, "default", {**config, "confirmation": mode}))
        for mode in MODES.get(theme, ("operator",))
    }


def _stored(kind: str, name: str, spec: Mapping[str, Any]) -> PolicyObject:
    return PolicyObject(
        kind=kind, name=name, uid=f"uid-{name}", generation=1, resource_version="1", spec=spec
    )
