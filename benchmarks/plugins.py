"""Time what expressions add to a decision: `python benchmarks/plugins.py`, one JSON object a line.

On 5,000 nodes. added_us: what a filter's `keep` or a score's answer takes, warm, as the pipeline
calls it; oracle_us: the same expression by Google's C++ runtime (cel-expr-python), node by node
with everything prepared; ratio = oracle_us / added_us, both in the same run. cold_us: the first
call on a fleet whose labels were never seen. Compiling: 100 Profiles with 10 expressions each, in
a thread as the operator does it, beside an event loop that ticks; stall_ms is its longest pause.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "operator"), str(ROOT)]

import numpy as np  # noqa: E402
from tests.unit.builders import NodeFacts, a_node, a_request, a_snapshot  # noqa: E402
from tests.unit.plugins.cel.oracle import Oracle  # noqa: E402
from tests.unit.policy.builders import a_profile  # noqa: E402

from cubesched.core.answers import ask_scores  # noqa: E402
from cubesched.core.snapshot import Snapshot  # noqa: E402
from cubesched.plugins.cel.plugins import expr_filter, expr_score  # noqa: E402
from cubesched.plugins.cel.program import compile_expression  # noqa: E402
from cubesched.policy.compiler import compile_set  # noqa: E402

NODES = 5_000
REPEATS = 400
PROFILES, EXPRESSIONS = 100, 10
REQUEST = a_request(labels={"workload": "burst", "team": "red"}, template_id="t1")
FILTERS = {
    "comparison": ("node.creating < 8", 10.0),
    "metric": ("node.cpu_util < 60.0", 10.0),
    "label": ('node.labels["zone"] == "a"', 150.0),
    "labels": (
        """"gpu" in node.labels && node.labels.gpu.startsWith("a") && node.labels.zone in ["a", "b"]
           || has(node.labels.rack) && node.labels["rack"].matches("^r[0-9]$")""",
        150.0,
    ),
    "request": ('node.labels["zone"] == request.labels["team"] || node.healthy', 150.0),
    "hostnames": ('node.labels["host"].endsWith("7.example.com")', 150.0),
}
SCORES = {
    "ternary": ("node.cpu_util < 60.0 ? 80.0 : 20.0", 25.0),
    "arithmetic": ("100.0 - 100.0 * double(node.allocated_cpu) / double(node.quota_cpu)", 150.0),
}
"""Expressions and the most microseconds each may add."""
TARGET_RATIO, TARGET_COMPILE_SECONDS, TARGET_STALL_MS = 200.0, 1.0, 50.0


def random_node(rng: random.Random, number: int) -> NodeFacts:
    """Return a node with labels of few and of many values."""
    labels = {
        "zone": rng.choice("abc"),
        "rack": f"r{rng.randrange(50)}",
        "host": f"host-{number:05}.example.com",
    }
    if rng.random() < 0.3:
        labels["gpu"] = rng.choice(("a100", "h100"))
    return a_node(
        f"node-{number:05}",
        labels=labels,
        creating=rng.randrange(20),
        cpu_util_percent=rng.uniform(0.0, 100.0),
        cpu_used_millis=rng.randrange(64_000),
        templates=("t1",) if rng.random() < 0.5 else (),
    )


def times_us(run: Callable[[], object], repeats: int) -> Iterator[float]:
    """Yield how long each call took."""
    for _ in range(repeats):
        start = time.perf_counter_ns()
        run()
        yield (time.perf_counter_ns() - start) / 1000


def line(
    name: str, text: str, call: Callable[[], object], oracle: Oracle, target_us: float
) -> dict[str, object]:
    """Return the figures of one expression."""
    (cold_us,) = times_us(call, 1)
    ours = sorted(times_us(call, REPEATS))
    compiled = oracle.compile(text)
    theirs = min(times_us(lambda: oracle.values(compiled, 0), 5))
    added_us = statistics.median(ours)
    return {
        "expression": name,
        "nodes": NODES,
        "added_us": round(added_us, 1),
        "added_p99_us": round(ours[int(len(ours) * 0.99)], 1),
        "target_us": target_us,
        "cold_us": round(cold_us, 1),
        "oracle_us": round(theirs, 1),
        "ratio": round(theirs / added_us),
        "target_ratio": TARGET_RATIO,
    }


def evaluating(fleet: Snapshot, oracle: Oracle) -> Iterator[dict[str, object]]:
    """Yield one line for each expression."""
    rows = np.flatnonzero(np.arange(NODES) % 5 < 3)  # as many as guards leave in a busy fleet
    for name, (text, target_us) in FILTERS.items():
        keep = expr_filter(name, text).keep
        yield line(name, text, lambda keep=keep: keep(fleet, REQUEST), oracle, target_us)  # type: ignore[misc]
    for name, (text, target_us) in SCORES.items():
        score = expr_score(name, text)
        with np.errstate(all="ignore"):
            yield line(
                name,
                text,
                lambda score=score: ask_scores(score, fleet, REQUEST, rows),  # type: ignore[misc]
                oracle,
                target_us,
            )


def profiles() -> list[Any]:
    """Return Profiles of which no two expressions are the same."""
    texts = [text for text, _ in FILTERS.values()]
    return [
        a_profile(
            f"p{number:03}",
            filters=[
                {
                    "name": f"f{entry}",
                    "type": "expr",
                    "expr": f"({texts[entry % len(texts)]}) || node.mvm_num < {number}{entry}",
                }
                for entry in range(EXPRESSIONS)
            ],
            route={"labels": {"workload": f"w{number}"}},
        )
        for number in range(PROFILES)
    ]


async def compiling() -> dict[str, object]:
    """Compile the Profiles in a thread, and watch how long the loop is kept from its turn."""
    await asyncio.to_thread(compile_set, profiles()[:1], None)  # imports the parser
    compile_expression.cache_clear()
    objects, pauses, ended = profiles(), [], asyncio.Event()

    async def tick() -> None:
        while not ended.is_set():
            start = time.perf_counter()
            await asyncio.sleep(0.001)
            pauses.append(time.perf_counter() - start - 0.001)

    ticking = asyncio.create_task(tick())
    start = time.perf_counter()
    result = await asyncio.to_thread(compile_set, objects, None)
    seconds = time.perf_counter() - start
    ended.set()
    await ticking
    assert result.policy is not None, result.problems
    return {
        "compile": f"{PROFILES} Profiles x {EXPRESSIONS} expressions",
        "seconds": round(seconds, 3),
        "target_seconds": TARGET_COMPILE_SECONDS,
        "stall_ms": round(1000 * max(pauses), 1),
        "target_stall_ms": TARGET_STALL_MS,
    }


def main() -> None:
    """Print one JSON object a line."""
    rng = random.Random(7)
    nodes = [random_node(rng, number) for number in range(NODES)]
    fleet, oracle = a_snapshot(nodes), Oracle(nodes, [REQUEST])
    gc.disable()
    for figures in evaluating(fleet, oracle):
        print(json.dumps(figures), flush=True)
    gc.enable()
    print(json.dumps(asyncio.run(compiling())))


if __name__ == "__main__":
    main()
