from __future__ import annotations

from pathlib import Path

import pytest

from cubesched.core.errors import UsageError
from cubesched.local.paths import cache_root, instance_directory


def test_the_cache_is_where_xdg_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert cache_root() == tmp_path / "cubesched"
    assert instance_directory("mine") == tmp_path / "cubesched" / "local" / "mine"


def test_without_xdg_the_cache_is_in_the_home_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert cache_root() == tmp_path / ".cache" / "cubesched"


@pytest.mark.parametrize("name", ["", "..", "a/b", "UPPER", "-a", "a-", "a" * 41, "a\n"])
def test_a_name_that_no_path_should_hold_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is no instance name"):
        instance_directory(name)
