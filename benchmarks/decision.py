"""Time one full decision against a per-node loop: `python benchmarks/decision.py`.

Six guards, the constraints, three scores, `spread` over the best five, why-not counts. Prints one
JSON object a line: p50_us and p99_us of our decision by the clock, loop_ratio = the plain-Python
reference (the one the unit tests compare with) / our p50, both in the same run. The loop runs so
long that other programs interrupt it on a busy machine, so it is measured by its own cpu time.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "operator"), str(ROOT)]

from tests.unit.builders import (  # noqa: E402
    GIB,
    NodeFacts,
    a_node,
    a_pipeline,
    a_request,
    a_snapshot,
)
from tests.unit.core import reference  # noqa: E402

from cubesched.core.cycle import decide  # noqa: E402
from cubesched.core.decision import Placed  # noqa: E402
from cubesched.core.pipeline import SelectionMethod  # noqa: E402
from cubesched.core.request import Request  # noqa: E402
from cubesched.core.snapshot import Safety, Snapshot, Taint  # noqa: E402

SIZES = {1_000: 100, 5_000: 300, 50_000: 100}
"""Number of nodes, and of decisions timed for each run of the loop."""
POLICIES = {
    "template_reuse": reference.Policy(
        scores=(
            ("image_score", {}, 0.7),
            ("template_local_pressure", {}, 0.2),
            (
                "real_time_weighted_average",
                {"factors": ["quota_cpu_usage", "quota_mem_usage"]},
                0.3,
            ),
        ),
        method="spread",
        top_n=5,
    ),
    "heavy": reference.Policy(
        scores=(
            ("real_time_weighted_average", {}, 1.0),
            ("resource_fit_score", {}, 0.7),
            ("create_concurrency_score", {}, 1.0),
        ),
        method="spread",
        top_n=5,
    ),
}
"""The factory Profile with three scores, and the three scores that read the most columns."""


def random_node(rng: random.Random, number: int) -> NodeFacts:
    """Return a node of a busy fleet: about three in five have room for the request."""
    creating = rng.randint(0, 60)
    return a_node(
        f"node-{number:06}",
        cpu_used_millis=rng.randrange(0, 64_000),
        memory_used_bytes=rng.randrange(0, 110) * GIB,
        sandboxes=rng.randint(0, 60),
        creating=creating if rng.random() > 0.03 else 100,
        creating_ledger=creating // 2,
        creating_reported=creating,
        cpu_util_percent=rng.uniform(0.0, 95.0),
        cpu_load=rng.uniform(0.0, 60.0),
        memory_really_used_bytes=rng.uniform(0, 100) * GIB,
        data_disk_percent=rng.uniform(0.0, 85.0),
        safety=Safety.STALE if rng.random() < 0.03 else Safety.OK,
        taints=(Taint("dedicated", "a", "NoSchedule"),) if rng.random() < 0.05 else (),
        templates=("t1",) if rng.random() < 0.9 else (),
        template_creating={"t1": creating // 4},
    )


def time_us(
    run: Callable[[Request], object],
    request: Request,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> float:
    """Return how long one call took."""
    start = clock()
    run(request)
    return (clock() - start) / 1000


def measure(
    profile: str, nodes: Sequence[NodeFacts], fleet: Snapshot, repeats: int
) -> dict[str, object]:
    """Return the line for one Profile on one fleet."""
    policy = POLICIES[profile]
    pipeline = a_pipeline(*policy.scores, method=SelectionMethod(policy.method), top_n=policy.top_n)
    request = a_request(cpu_millis=2000, memory_bytes=2 * GIB, template_id="t1")
    decision = decide(fleet, request, pipeline)
    expected = reference.decide(nodes, request, policy)
    assert isinstance(decision, Placed)
    assert (decision.node, decision.feasible) == (expected.node, expected.feasible)

    ours, loops = interleaved(
        ours=lambda request: decide(fleet, request, pipeline),
        loop=lambda request: reference.decide(nodes, request, policy),
        request=request,
        repeats=repeats,
        loop_repeats=max(5, 30_000 // len(nodes)),
    )
    p50 = statistics.median(ours)
    return {
        "nodes": len(nodes),
        "profile": profile,
        "feasible": decision.feasible,
        "p50_us": round(p50, 1),
        "p99_us": round(statistics.quantiles(ours, n=100)[98], 1),
        "min_us": round(min(ours), 1),
        "loop_ratio": round(statistics.median(loops) / p50, 1),
        "loop_p50_us": round(statistics.median(loops), 1),
        "rejected": {part.plugin: part.rejected for part in decision.counts},
    }


def interleaved(
    *,
    ours: Callable[[Request], object],
    loop: Callable[[Request], object],
    request: Request,
    repeats: int,
    loop_repeats: int,
) -> tuple[Sequence[float], Sequence[float]]:
    """Time both in turns, so that other load on the machine meets both.

    Every call is a new attempt, so that ties and draws differ as in real life.
    """
    mine: list[float] = []
    loops: list[float] = []
    for turn in range(loop_repeats):
        attempts = [replace(request, attempt=turn * 10_000 + number) for number in range(repeats)]
        loops.append(time_us(loop, request, clock=time.thread_time_ns))
        mine += [time_us(ours, attempt) for attempt in attempts][3:]
    return mine, loops


def main() -> None:
    """Print one line for each size."""
    for size, repeats in SIZES.items():
        rng = random.Random(size)
        nodes = [random_node(rng, number) for number in range(size)]
        fleet = a_snapshot(nodes)
        gc.collect()
        gc.freeze()
        for profile in POLICIES:
            print(json.dumps(measure(profile, nodes, fleet, repeats)), flush=True)


if __name__ == "__main__":
    main()
