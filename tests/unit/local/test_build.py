from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.unit.local.fakego import install_fake_go

from cubesched.local.build import ETCD, KUBERNETES, BuildFailed, cache_key, ensure


def _ignore(line: str) -> None:
    """Take a line of progress that the test does not look at."""


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The log of a Go compiler that is quick; the cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return install_fake_go(tmp_path)


def test_a_binary_is_built_once_under_its_own_name(builds: Path) -> None:
    lines: list[str] = []

    first = ensure(ETCD, ["etcd"], report=lines.append)
    second = ensure(ETCD, ["etcd"], report=lines.append)

    assert first == second
    assert first["etcd"].name == "etcd"
    assert first["etcd"].read_text() == "go.etcd.io/etcd/server\n"
    assert builds.read_text() == "run\n"
    assert lines[0].startswith("building etcd v3.6.8 from source, once: usually ")
    assert lines[1].startswith("built etcd v3.6.8 in ")
    assert len(lines) == 2


def test_only_what_is_missing_is_built_and_nothing_else_is_left_behind(builds: Path) -> None:
    ensure(KUBERNETES, ["kube-apiserver"], report=_ignore)

    paths = ensure(KUBERNETES, ["kube-apiserver", "kubectl"], report=_ignore)

    assert builds.read_text() == "run\nrun\n"
    assert sorted(path.name for path in paths["kubectl"].parent.iterdir()) == [
        "kube-apiserver",
        "kubectl",
    ]


def test_two_at_once_build_once(builds: Path) -> None:
    threads = [
        threading.Thread(target=ensure, args=(ETCD, ["etcd"]), kwargs={"report": _ignore})
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert builds.read_text() == "run\n"


def test_a_failed_build_tells_what_the_compiler_said_and_leaves_nothing(
    builds: Path, tmp_path: Path
) -> None:
    install_fake_go(tmp_path, failure="echo 'main.go:1: no space left on device'; exit 1")

    with pytest.raises(BuildFailed, match=r"cannot build etcd v3\.6\.8: .*no space left"):
        ensure(ETCD, ["etcd"], report=_ignore)

    assert list((tmp_path / "cache" / "cubesched" / "bin").rglob("*building*")) == []


def test_products_do_not_share_a_key() -> None:
    assert cache_key(ETCD) != cache_key(KUBERNETES)
