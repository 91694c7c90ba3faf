from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.model.apiserver import ADMIN, ApiServer
from tests.model.http import Http, a_node, a_request, placed
from tests.model.virtualtime import run_virtual

from cubesched.api import NODES
from cubesched.local.auditing import MachineAudit, NodeLimits, Violations
from cubesched.local.auditor import Audit, LogTail, main

Steps = Callable[[Http, ApiServer], Awaitable[None]]


def audited(steps: Steps, *, log_path: Path | None = None) -> dict[str, Any]:
    """Return the summary of an audit that ran while `steps` did."""

    async def world() -> dict[str, Any]:
        server = ApiServer(rng=Random(1))
        admin = Http(server.client(ADMIN))
        await Http(server.client(ADMIN), NODES).create(a_node("n"))
        stop = asyncio.Event()
        audit = Audit(log_path=log_path)
        auditing = asyncio.create_task(audit.run(server.client("viewer"), stop))
        await asyncio.sleep(1)
        await steps(admin, server)
        stop.set()
        return await auditing

    return run_virtual(world)


async def place(admin: Http, name: str, phase: str, *, cpu_millis: int = 1000) -> None:
    _, created = await admin.create(a_request(name))
    code, answer = await admin.put_status(created, placed(phase, cpu_millis=cpu_millis))
    assert code == 200, answer


def test_a_sound_history_gives_a_clean_summary() -> None:
    async def steps(admin: Http, _: ApiServer) -> None:
        for number in range(4):
            await place(admin, f"q{number}", "Bound")

    summary = audited(steps)

    assert summary["synced"]
    assert summary["over_committed_nodes"] == summary["violations"] == 0
    assert summary["requests"] == {"Bound": 4}
    assert summary["revisions"] == 8
    assert "ran_twice" not in summary


def test_an_over_committed_node_is_found_however_briefly() -> None:
    async def steps(admin: Http, _: ApiServer) -> None:
        await place(admin, "a", "Bound", cpu_millis=3000)
        await place(admin, "b", "Bound", cpu_millis=3000)
        await admin.delete("b")

    summary = audited(steps)

    assert summary["over_committed_nodes"] == 1
    assert summary["violations"] == 1
    assert "with default/b" in summary["examples"][0]


def test_it_goes_on_over_a_restart_of_the_api_server() -> None:
    async def steps(admin: Http, server: ApiServer) -> None:
        await place(admin, "a", "Bound", cpu_millis=3000)
        server.restart(down_seconds=1.0)
        await asyncio.sleep(30)
        await place(admin, "b", "Bound", cpu_millis=3000)
        await asyncio.sleep(1)

    assert audited(steps)["over_committed_nodes"] == 1


def test_the_agents_log_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log"

    async def steps(_: Http, __: ApiServer) -> None:
        line = {"event": "start", "node": "n", "sandbox": "a.1", "requestUID": "a"}
        path.write_text(json.dumps({**line, "cpuMillis": 5000, "memoryBytes": 1}) + "\n")
        await asyncio.sleep(1)
        with path.open("a") as file:
            again = {**line, "node": "m", "sandbox": "a.2", "cpuMillis": 1, "memoryBytes": 1}
            file.write(json.dumps(again) + "\n")

    summary = audited(steps, log_path=path)

    assert (summary["log_lines"], summary["starts"], summary["still_running"]) == (2, 2, 2)
    assert summary["ran_twice"] == 1
    assert summary["machines_over_limit"] == 1


def test_a_line_is_read_only_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    violations = Violations()
    audit = MachineAudit(NodeLimits(lambda: 0.0), violations)
    tail = LogTail(path, audit)

    tail.read_on()
    path.write_text('{"event": "boot", "node": "n1"}\n{"event": "bo')
    tail.read_on()
    assert audit.lines == 1
    path.write_text('{"event": "boot", "node": "n1"}\n{"event": "boot", "node": "n2"}\nnonsense\n')
    tail.read_on()

    assert audit.lines == 2
    assert dict(violations.counts) == {"unreadable_log": 1}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--kubeconfig", "/nowhere", "--until-stopped", "--watch-only"], "does not exist"),
        (["--duration", "soon", "--watch-only"], "--duration"),
    ],
)
def test_what_cannot_be_audited_is_one_line_and_exit_2(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(argv)

    assert code == 2
    assert words in capsys.readouterr().err


def test_it_wants_to_be_told_about_the_log() -> None:
    with pytest.raises(SystemExit) as ending:
        main(["--until-stopped"])

    assert ending.value.code == 2
