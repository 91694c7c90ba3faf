from __future__ import annotations

from pathlib import Path

import pytest

from cubesched.cli import generate, main


def test_the_committed_files_follow_from_the_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--check"]) == 0

    assert capsys.readouterr().out == ""


def test_drift_is_a_negative_finding_and_writing_mends_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(generate, "__file__", str(tmp_path / "operator/cubesched/cli/generate.py"))

    assert main(["generate", "--check"]) == 1
    assert "rbac.yaml: missing" in capsys.readouterr().out

    assert main(["generate"]) == 0
    assert "deploy/rbac.yaml" in capsys.readouterr().out.splitlines()
    assert main(["generate", "--check"]) == 0


def test_an_installed_copy_cannot_generate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(generate, "__file__", str(tmp_path / "lib/cubesched/cli/generate.py"))

    assert main(["generate"]) == 2

    assert "works in a checkout" in capsys.readouterr().err
