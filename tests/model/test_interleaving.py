"""The real scheduling code holds under seeded schedules, and each broken version of it does not.

Schedules run in processes of their own with a fixed PYTHONHASHSEED, so that a seed replays.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.model.interleaving import run_schedule
from tests.model.mode_mutants import MODE_MUTANTS
from tests.model.mutants import MUTANTS, OPERATOR, Mutant

ROOT = Path(__file__).parents[2]
SCHEDULES = 100
PROCESSES = 2
SECONDS, MUTANT_SECONDS = 45, 60
"""Of cpu time: no schedule begins after this, so that a slow machine runs fewer and not longer,
and a busy one as many."""
LEAST_SCHEDULES = 20
MOST_SEEDS_FOR_A_MUTANT = 200
MUST_FIRE = (
    *("429", "500", "500_after_commit", "unreachable", "reset_before_commit"),
    *("reset_after_commit", "reset_then_commit_later", "resent_after_commit"),
    *("timeout_before_commit", "timeout_after_commit", "resent_after_commit_noticed"),
    *("watch_reset", "watch_closed", "watch_410_line", "watch_410_http", "watch_429_cold"),
    *("watch_bookmark", "watch_reset_by_restart", "answer_410", "restart", "restore", "compact"),
    *("replica killed", "agent killed", "process paused", "request corrupted"),
    *("lost_in_crash", "landed_after_crash", "confirmed by another replica"),
    *("Pending -> Reserved", "Reserved -> Bound", "Reserved -> Reserved", "Reserved -> Pending"),
    *("Bound -> Starting", "Bound -> Pending", "Starting -> Running", "Running -> Succeeded"),
    *("Reserved -> Starting", "Pending -> Bound"),
    *("switch to agent", "switch to operator", "switch to none"),
    *("drain Unstarted", "drain All", "Running -> Evicting", "Evicting -> Pending"),
    *("Running -> Paused", "Paused -> Reserved", "sandbox resumed", "deleted while Paused"),
    *("wish changed all the time", "expired", "node silent", "Starting -> Failed"),
)
"""Faults and branches without which the run has tested less than it says."""


def start(operator: Path, *options: str) -> subprocess.Popen[str]:
    """Start schedules against the package below `operator`."""
    environment = os.environ | {
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join((str(operator), str(ROOT))),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "tests.model.interleaving", *options],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def results(running: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Wait for the schedules and return what each came to."""
    output, errors = running.communicate(timeout=280)
    assert output, errors[-3_000:]
    return [json.loads(line) for line in output.splitlines()]


def how_to_replay(result: dict[str, Any], *options: str) -> str:
    """Return what went wrong and the command that shows it again."""
    command = " ".join(
        ("python -m tests.model.interleaving --seeds", str(result["seed"]), *options)
    )
    return f"{result['problem']}\nPYTHONHASHSEED=0 PYTHONPATH=operator {command} --trace all"


def summary(finished: Sequence[dict[str, Any]]) -> tuple[str, Counter[str]]:
    """Return what all schedules came to, as a table and as counts."""
    fired: Counter[str] = Counter()
    for result in finished:
        fired.update(result["fired"])
    totals = {name: sum(result[name] for result in finished) for name in ("steps", "bindings")}
    counts = ", ".join(f"{name} {number}" for name, number in sorted(fired.items()) if number)
    hours = sum(result["seconds"] for result in finished) / 3600
    line = f"{len(finished)} schedules, {hours:.1f} virtual hours, {totals}"
    return f"\n  {line}\n  fired: {counts}", fired


def test_no_schedule_over_commits_a_node_or_leaves_anything_behind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    share = SCHEDULES // PROCESSES
    running = [
        start(OPERATOR, "--seeds", f"{first}-{first + share - 1}", "--seconds", str(SECONDS))
        for first in range(0, SCHEDULES, share)
    ]

    finished = [result for process in running for result in results(process)]

    text, fired = summary(finished)
    with capsys.disabled():
        print(text)  # noqa: T201 - the counts are the result
    problems = [how_to_replay(result) for result in finished if result["problem"]]
    assert not problems, "\n".join(problems)
    assert len(finished) >= LEAST_SCHEDULES
    if len(finished) == SCHEDULES:
        assert not [name for name in MUST_FIRE if not fired[name]]


def test_the_same_seed_gives_the_same_history() -> None:
    first, second, other = run_schedule(2), run_schedule(2), run_schedule(3)

    assert first.problem == ""
    assert first.history == second.history
    assert first.history != other.history


@pytest.mark.parametrize("mutant", [*MUTANTS, *MODE_MUTANTS], ids=lambda mutant: mutant.name)
def test_each_broken_rule_is_caught(
    mutant: Mutant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mutant.write_to(tmp_path)

    finished = results(
        start(
            tmp_path,
            *("--seeds", f"0-{MOST_SEEDS_FOR_A_MUTANT - 1}"),
            *("--seconds", str(MUTANT_SECONDS), *mutant.options),
        )
    )

    caught = finished[-1]["problem"]
    with capsys.disabled():
        print(f"\n  {mutant.name}: schedule {len(finished)}: {caught[:150]}", end="")  # noqa: T201
    assert mutant.shows_as in caught
