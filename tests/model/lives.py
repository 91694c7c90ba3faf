"""How nodes and requests end in the schedules: silent for a while, out of time, expired.

A node that is only silent goes on as before: its agent hears the API server, its machine runs what
it ran. That is the worst case for whoever takes it for dead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from tests.model.auditing import FINISHED, says_lost
from tests.model.writes import EPOCH

from cubesched.api.timestamps import parsed, timestamp

if TYPE_CHECKING:
    from tests.model.processes import Reports
    from tests.model.world import World

IMPATIENT: Mapping[str, Any] = {
    "guards": {"metricsMaxAge": "5s", "memoryReserved": "0"},
    "nodeLostGrace": "3s",
}
"""A config under which silence is acted on within a schedule."""
SILENCES = (2.0, 7.0, 12.0, 20.0)
"""How long a node is silent, in seconds."""
CREATE_SECONDS = (0.2, 6.0, 6.0)
LATE_SECONDS = 10.0
"""What is overdue by so much is left behind."""


def a_lifespan(rng: Random, now: float) -> dict[str, Any]:
    """Return the fields of a spec that bound a life, for some requests."""
    spec: dict[str, Any] = {}
    if rng.random() < 0.3:
        ends = EPOCH.timestamp() + now + rng.uniform(-1.0, 20.0)
        spec["shutdownTime"] = timestamp(ends)
    if rng.random() < 0.3:
        spec["ttlSecondsAfterFinished"] = rng.choice((0, 3))
    return spec


def silence(
    rng: Random,
    nodes: list[str],
    reports: Reports,
    later: Callable[[float, Callable[[], None]], None],
) -> None:
    """Let a node's reports be lost for a while."""
    node = rng.choice(nodes)
    if node not in reports.lost:
        reports.lost.add(node)
        later(rng.choice(SILENCES), lambda: reports.lost.discard(node))


def overdue(world: World, now: float) -> Iterator[str]:
    """Yield what should have ended, gone or been taken back by now."""
    wall = EPOCH.timestamp() + now
    for obj in world.auditor.requests():
        name, spec, status = obj["metadata"]["name"], obj["spec"], obj["status"]
        is_finished = status["phase"] in FINISHED
        ends = parsed(spec.get("shutdownTime", ""))
        if ends is not None and not is_finished and ends + LATE_SECONDS < wall:
            yield f"{name} is {status['phase']} past its shutdownTime"
        ttl, ended = spec.get("ttlSecondsAfterFinished"), parsed(status.get("finishedTime", ""))
        if is_finished and ttl is not None and (ended or 0.0) + ttl + LATE_SECONDS < wall:
            yield f"{name} is {status['phase']} past its ttl"
        if not is_finished and says_lost(status):
            yield f"{name} says that its node is lost, which it is not"
