from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.worlds import World, in_a_world, sandbox

from cubesched.agent.runtime import Limits, Order
from cubesched.agent.standalone import Machine, main
from cubesched.fleet.entries import Weight


def an_order(template_id: str = "") -> Order:
    return Order("s", "uid", "id", "default", "r1", template_id, Weight(1000, 1 << 30, 0))


def never(limits: Limits, arguments: list[str]) -> Any:
    return Machine(limits)


def test_what_a_machine_without_templates_has_to_say() -> None:
    machine = Machine(Limits(8000, 1 << 34))

    assert machine.limits() == Limits(8000, 1 << 34)
    assert (machine.templates(), machine.images()) == ((), {})
    assert machine.usage().cpu_load >= 0.0
    assert machine.refusal(an_order()) == ""
    assert machine.refusal(an_order(template_id="t-1")) == "this machine has no templates"


@pytest.mark.parametrize(
    ("cpu", "memory", "said"),
    [
        ("eight", "16Gi", "error: capacity: cpu: 'eight' "),
        ("-1", "16Gi", "error: capacity: cpu: '-1' "),
        ("8", "16 GB", "error: capacity: memory: '16 GB' "),
        ("8", "16Gi", "error: CUBESCHED_REDIS_URL is not set"),
    ],
)
def test_what_is_wrong_is_one_line(
    cpu: str,
    memory: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("CUBESCHED_REDIS_URL", raising=False)

    assert main(never, ["n1", cpu, memory]) == 2

    error = capsys.readouterr().err
    assert error.startswith(said)
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "error: CUBESCHED_REDIS_URL is not set"),
        ("localhost", "error: Redis URL 'localhost': "),
        ("redis://localhost:port", "error: Redis URL 'redis://localhost:port': "),
    ],
)
def test_a_redis_url_that_is_none_is_one_line_before_the_cluster_is_asked(
    url: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CUBESCHED_REDIS_URL", url)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert main(never, ["n1", "8", "16Gi"]) == 2

    error = capsys.readouterr().err
    assert error.startswith(said)
    assert error.count("\n") == 1


def test_a_kubeconfig_that_is_not_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUBESCHED_REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert main(never, ["n1", "8", "16Gi"]) == 2

    assert capsys.readouterr().err.startswith("error: ")


def test_on_a_machine_that_cannot_pause_a_request_stays_running_in_full(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(world: World) -> None:
        world.release(0.5)
        cannot = Machine(Limits(4000, 64 << 30))
        world.machine.pause, world.machine.resume = cannot.pause, cannot.resume  # type: ignore[method-assign]
        uid = await world.bind("q")
        await asyncio.sleep(1)

        await world.wish("q", paused=True)
        await asyncio.sleep(30)
        assert (await world.status("q"))["phase"] == "Running"
        assert world.agent._room.held[sandbox(uid)].cpu_millis == 1000
        assert "this machine cannot pause sandboxes" in caplog.text

        await world.wish("q", paused=False)
        caplog.clear()
        await asyncio.sleep(30)
        assert (await world.status("q"))["phase"] == "Running"
        assert caplog.text == ""

        await world.wish("q", paused=True)
        await asyncio.sleep(30)
        await world.delete("q")
        await asyncio.sleep(30)
        assert await world.running() == set()

    in_a_world(test)


def test_the_arguments_behind_the_capacity_are_the_runtimes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CUBESCHED_REDIS_URL", raising=False)
    seen: list[list[str]] = []

    def make(limits: Limits, arguments: list[str]) -> Any:
        seen.append(arguments)
        return Machine(limits)

    main(make, ["n1", "8", "16Gi", "sleep", "--help"])

    assert seen == [["sleep", "--help"]]
