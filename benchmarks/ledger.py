"""Time what every stream event and every decision pays: `python benchmarks/ledger.py`.

5,000 nodes and 20,000 requests bound to them. Prints one JSON object a line: `assume` and
`release` are a decision's plan and its undoing; `watch_event` is one event from its raw JSON to
the columns (ledger, usage, row); `list` is the whole start, an object. min_us is what the code
costs, p50_us and p99_us what this machine made of it.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "operator"), str(ROOT)]

from tests.unit.fleet.objects import a_node_object, a_request_object  # noqa: E402

from cubesched.fleet.assumptions import Assumption  # noqa: E402
from cubesched.fleet.entries import Weight  # noqa: E402
from cubesched.fleet.fleet import Fleet  # noqa: E402

NODES, REQUESTS, ROUNDS = 5_000, 20_000, 5_000
LABELS = {"zone": "z1", "rack": "r7", "kubernetes.io/arch": "amd64"}


def node_name(number: int) -> str:
    """Return one of the nodes' names."""
    return f"node-{number % NODES:05}"


def a_stored_request(number: int, phase: str, node: str, version: int) -> bytes:
    """Return a request as a watch line carries it, with conditions and an explanation."""
    return a_request_object(
        f"request-{number:06}",
        phase=phase,
        node=node,
        version=version,
        template="template-1",
        explanation="score 71.25 (real_time_weighted_average 71.25); 4100 of 5000 nodes feasible",
    )


def a_filled_fleet() -> tuple[Fleet, list[dict[str, object]]]:
    """Return the fleet as it stands after both lists, and the lines about making it."""
    fleet = Fleet(monotonic=time.monotonic, wall=time.time)
    nodes = [a_node_object(node_name(n), templates=("template-1",), labels=LABELS)
             for n in range(NODES)]  # fmt: skip
    requests = [a_stored_request(n, "Running", node_name(n), n + 1) for n in range(REQUESTS)]
    lines = []
    for what, sink, objects in (
        ("list_nodes", fleet, nodes),
        ("list_requests", fleet.ledger, requests),
    ):
        begun = time.perf_counter_ns()
        sink.reset()
        for raw in objects:
            sink.seen(raw)
        sink.complete(REQUESTS + 1)
        spent = time.perf_counter_ns() - begun
        lines.append(
            {
                "what": what,
                "objects": len(objects),
                "us_each": round(spent / 1000 / len(objects), 2),
            }
        )
    return fleet, lines


def timed(calls: Iterable[Callable[[], object]]) -> list[float]:
    """Return how long each call took, in microseconds."""
    spent = []
    for call in calls:
        begun = time.perf_counter_ns()
        call()
        spent.append((time.perf_counter_ns() - begun) / 1000)
    return spent


def line(what: str, spent: list[float], target_us: float) -> dict[str, object]:
    """Return one line of the output."""
    return {
        "what": what,
        "nodes": NODES,
        "requests": REQUESTS,
        "min_us": round(min(spent), 2),
        "p50_us": round(statistics.median(spent), 2),
        "p99_us": round(statistics.quantiles(spent, n=100)[98], 2),
        "target_us": target_us,
    }


def plans(fleet: Fleet, rng: random.Random) -> list[dict[str, object]]:
    """Time plans and their undoing, a few of them standing at a time as in a running replica."""
    weight = Weight(1000, 1 << 30, 0)
    assumed, released = [], []
    for start in range(0, ROUNDS, 8):
        nodes = [node_name(rng.randrange(NODES)) for _ in range(8)]
        uids = [f"plan-{start + n}" for n in range(8)]
        made = [Assumption(node, weight, "template-1") for node in nodes]
        assumed += timed(
            [lambda u=u, a=a: fleet.assume(u, a) for u, a in zip(uids, made, strict=True)]  # type: ignore[misc]
        )
        released += timed([lambda u=u: fleet.release(u) for u in uids])  # type: ignore[misc]
    return [line("assume", assumed, 5.0), line("release", released, 5.0)]


def events(fleet: Fleet, rng: random.Random) -> dict[str, object]:
    """Time the life of requests as the watch tells it: created, reserved, ..., deleted."""
    version, spent = REQUESTS + 1, []
    for number in range(ROUNDS // 7):
        node = node_name(rng.randrange(NODES))
        for phase in ("", "Reserved", "Bound", "Starting", "Running", "Succeeded", "DELETED"):
            version += 1
            kind = phase if phase == "DELETED" else "MODIFIED" if phase else "ADDED"
            stored = a_stored_request(
                REQUESTS + number,
                "Succeeded" if phase == "DELETED" else phase or "Pending",
                node if phase else "",
                version,
            )
            spent += timed([lambda: fleet.ledger.event(kind, stored, version)])  # noqa: B023
    return line("watch_event", spent, 30.0)


def main() -> None:
    """Print every line."""
    fleet, lines = a_filled_fleet()
    rng = random.Random(1)
    gc.collect()
    gc.freeze()
    for result in [*lines, *plans(fleet, rng), events(fleet, rng)]:
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
