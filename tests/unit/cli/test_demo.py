from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from cubesched.cli import main


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("option", ["--nodes", "--requests", "--replicas"])
def test_a_demo_of_nothing_is_refused_before_anything_starts(
    capsys: pytest.CaptureFixture[str], temporary: Path, option: str
) -> None:
    assert main(["demo", option, "0"]) == 2

    assert f"{option}: '0' is not a whole number from 1" in capsys.readouterr().err
    assert list(temporary.iterdir()) == []


def test_a_context_that_does_not_exist_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], temporary: Path
) -> None:
    kubeconfig = temporary / "kubeconfig"
    kubeconfig.write_text("{apiVersion: v1, kind: Config, current-context: '', contexts: []}")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))

    assert main(["demo", "--context", "nope"]) == 2

    error = capsys.readouterr().err
    assert error.startswith(f"cubesched: kubeconfig {kubeconfig}: ")
    assert error.count("\n") == 1
    assert list(temporary.iterdir()) == [kubeconfig]
