from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.unit.local.fakego import install_fake_go

from cubesched.local import toolchain
from cubesched.local.build import ETCD, KUBERNETES, Product
from cubesched.local.toolchain import find_go, go_environment, needed_version, version_of


@pytest.fixture
def cached_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Go compiler in the cache, as the wheel leaves it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pinned = Path(toolchain.__file__).with_name("go-requirements.txt").read_bytes()
    key = hashlib.sha256(pinned).hexdigest()[:12]
    folder = tmp_path / "cubesched" / "go" / key / "go" / "bin"
    folder.mkdir(parents=True)
    install_fake_go(folder)
    return folder / "go"


@pytest.mark.parametrize("product", [ETCD, KUBERNETES], ids=lambda product: product.module)
def test_every_module_says_which_go_it_needs(product: Product) -> None:
    assert needed_version(product.directory) >= (1, 26, 0)


def test_a_new_enough_go_on_the_path_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install_fake_go(tmp_path, version="go1.26.0")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_go(ETCD.directory, report=print) == tmp_path / "go"


def test_an_old_go_on_the_path_is_passed_over_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cached_wheel: Path
) -> None:
    install_fake_go(tmp_path, version="go1.21.3")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    lines: list[str] = []

    assert find_go(ETCD.directory, report=lines.append) == cached_wheel
    assert lines == ["Go 1.21.3 on the path is older than 1.26.0; not used"]


def test_without_go_on_the_path_the_cached_one_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cached_wheel: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))

    assert find_go(ETCD.directory, report=print) == cached_wheel


def test_a_program_that_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert version_of(tmp_path / "missing") == (0, 0, 0)


def test_a_persons_go_settings_do_not_change_what_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GOFLAGS", "-mod=mod -race")
    monkeypatch.setenv("GOARCH", "riscv64")

    environment = go_environment()

    assert environment["GOFLAGS"] == "-mod=readonly -buildvcs=false"
    assert environment["CGO_ENABLED"] == "0"
    assert "GOARCH" not in environment
