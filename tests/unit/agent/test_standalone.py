from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
        ("eight", "16Gi", "error: capacity: "),
        ("8", "16 GB", "error: capacity: "),
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


def test_a_kubeconfig_that_is_not_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUBESCHED_REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert main(never, ["n1", "8", "16Gi"]) == 2

    assert capsys.readouterr().err.startswith("error: ")


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
