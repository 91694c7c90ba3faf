from __future__ import annotations

import json
from pathlib import Path

import pytest

from cubesched.cli import main


@pytest.fixture(autouse=True)
def _empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_status_without_instances_says_how_to_start_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["local", "status"]) == 0

    assert "cubesched local up" in capsys.readouterr().out


def test_status_of_one_that_does_not_run_is_a_negative_finding(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["local", "status", "--name", "mine"]) == 1

    assert "no control plane 'mine' is running" in capsys.readouterr().out


def test_status_as_data_is_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["local", "status", "-o", "json"]) == 0

    assert json.loads(capsys.readouterr().out) == []


def test_down_is_fine_when_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["local", "down"]) == 0

    assert capsys.readouterr().out == "control plane default was not running\n"


def test_the_kubeconfig_of_one_that_does_not_run_is_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["local", "kubeconfig"]) == 2

    answer = capsys.readouterr()
    assert answer.out == ""
    assert answer.err.startswith("cubesched: control plane 'default' is not running; start it with")


def test_a_name_that_no_path_should_hold_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["local", "down", "--name", "../../etc"]) == 2

    assert "'../../etc' is no instance name" in capsys.readouterr().err


def test_incomplete_assets_are_an_error_before_anything_starts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    assert main(["local", "up"]) == 2

    assert "holds no etcd and no kube-apiserver" in capsys.readouterr().err
