"""Runs the real scheduling code on the in-memory API server under seeded schedules.

    PYTHONHASHSEED=0 python -m tests.model.interleaving --seeds 0-39

A schedule is: replicas and agents on small nodes, requests that come and go, faults, crashes and
pauses at any moment; after every committed write no node may be over its limits. Then everything
falls quiet, and what fits must become bound, nothing may stay reserved, no plan may be left. The
seed decides every step; with the same PYTHONHASHSEED it replays exactly.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from tests.model.apiserver import everything, least_rights
from tests.model.auditing import ViolationError
from tests.model.quiet import complaints, is_settled
from tests.model.scenario import TURNS, draw
from tests.model.virtualtime import DeadlockError, LivelockError, run_virtual
from tests.model.world import World
from typing_extensions import override

SETTLING_SECONDS = 200.0
FAILURES = (ViolationError, DeadlockError, LivelockError)


@dataclass
class Result:
    """What one schedule came to."""

    seed: int
    problem: str = ""
    steps: int = 0
    """Requests served and watch lines delivered."""
    bindings: int = 0
    seconds: float = 0.0
    """Virtual time."""
    history: str = ""
    """A digest of every committed write: the same seed has the same."""
    fired: Counter[str] = field(default_factory=Counter)


class Errors(logging.Handler):
    """Keeps what the code under test logs as an error: nobody expects one."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def run_schedule(seed: int, *, theme: str = "", trace: str = "", may_patch: bool = False) -> Result:
    """Run one schedule from its seed to its end or its first violation.

    `trace` names an object whose committed states are printed at the end. With `may_patch` the
    replicas have more rights than they should.
    """
    scenario, result = draw(seed, theme), Result(seed)

    async def main() -> None:
        world = World(scenario, rights=everything if may_patch else least_rights)
        try:
            await _happen(world)
            await _fall_quiet(world, errors)
        finally:
            _sum_up(world, result)
            _print_trace(world, trace)

    with _logged_errors() as errors:
        try:
            run_virtual(main)
        except FAILURES as problem:
            result.problem = f"{type(problem).__name__}: {problem}"
    return result


@contextmanager
def _logged_errors() -> Iterator[Errors]:
    root, errors = logging.getLogger(), Errors()
    before = root.handlers, root.level
    root.handlers = [errors]
    root.setLevel(logging.ERROR)
    try:
        yield errors
    finally:
        root.handlers = before[0]
        root.setLevel(before[1])


async def _happen(world: World) -> None:
    """Let things happen, at random moments, as often as the scenario says."""
    names, rates = zip(*world.scenario.rates.items(), strict=True)
    loop = asyncio.get_running_loop()
    while loop.time() < world.scenario.seconds:
        await asyncio.sleep(world.rng.expovariate(sum(rates)))
        world.befall(world.rng.choices(names, rates)[0])
        world.check()


async def _fall_quiet(world: World, errors: Errors) -> None:
    """Wait until all that can be placed is, then look for anything left behind."""
    await world.settle_down()
    loop = asyncio.get_running_loop()
    patience = loop.time() + SETTLING_SECONDS
    while not is_settled(world):
        world.check()
        if loop.time() > patience:
            break
        await asyncio.sleep(1.0)
    left = [*complaints(world), *errors.lines]
    if left:
        raise ViolationError("; ".join(left)[:2_000])


def _sum_up(world: World, result: Result) -> None:
    fired = world.server.fired
    result.steps = fired["request"] + fired["watch_line"]
    bindings = ("Reserved -> Bound", "Reserved -> Starting", "Pending -> Bound")
    result.bindings = sum(world.auditor.fired[name] for name in bindings)
    result.seconds = asyncio.get_running_loop().time()
    audit = [(c.revision, c.kind, c.key, c.at_seconds, c.by) for c in world.server.store.audit]
    result.history = f"{Random(repr(audit)).getrandbits(64):016x}"
    result.fired = fired + world.auditor.fired + world.counts


def _print_trace(world: World, name: str) -> None:
    for change in world.server.store.audit:
        if name in {change.key.name, "all"}:
            status = change.object.get("status", {})
            facts = {
                "phase": status.get("phase"),
                "node": status.get("nodeName"),
                "reservation": (status.get("reservation") or {}).get("id", "")[:6],
            }
            line = f"{change.at_seconds:9.3f} {change.revision:5} {change.kind:8} {change.by:22}"
            print(line, change.key.name, facts, file=sys.stderr)  # noqa: T201


def _seeds(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def main(arguments: Sequence[str]) -> int:
    """Run the seeds asked for; print one JSON object a line; exit 1 at the first failure."""
    parser = argparse.ArgumentParser(description="Replay seeded schedules of the binding protocol.")
    parser.add_argument("--seeds", default="0-9", help="for example 3 or 0-9,17")
    parser.add_argument(
        "--seconds", type=float, default=600, help="of cpu: begin no schedule after"
    )
    parser.add_argument("--theme", default="", choices=("", *TURNS), help="instead of the turn's")
    parser.add_argument("--until", default="", metavar="TEXT", help="pass over other failures")
    parser.add_argument("--may-patch", action="store_true", help="as no role should allow")
    parser.add_argument("--trace", default="", help="print what became of this object, or all")
    parser.add_argument("--describe", action="store_true", help="print each scenario first")
    options = parser.parse_args(arguments)
    began = time.process_time()
    for seed in _seeds(options.seeds):
        if time.process_time() - began > options.seconds:
            break
        if options.describe:
            print(draw(seed, options.theme).describe(), file=sys.stderr)  # noqa: T201 - a command prints
        result = run_schedule(
            seed, theme=options.theme, trace=options.trace, may_patch=options.may_patch
        )
        print(json.dumps(vars(result)), flush=True)  # noqa: T201 - a command prints
        if result.problem and options.until in result.problem:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
