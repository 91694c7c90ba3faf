from __future__ import annotations

import os
from pathlib import Path

from cubesched.local.locking import is_locked, locked, try_lock


def test_a_lock_is_held_once_and_free_again_after_its_descriptor_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    descriptor = try_lock(path)
    assert descriptor is not None

    assert is_locked(path)
    assert try_lock(path, patience_seconds=0) is None

    os.close(descriptor)
    assert not is_locked(path)


def test_a_file_that_is_not_there_is_not_locked(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "lock")


def test_a_lock_on_a_removed_file_excludes_nobody(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    old = try_lock(path)
    path.unlink()

    new = try_lock(path, patience_seconds=0)

    assert old is not None
    assert new is not None
    os.close(old)
    os.close(new)


def test_nobody_is_told_to_wait_when_the_lock_is_free(tmp_path: Path) -> None:
    waits: list[str] = []

    with locked(tmp_path / "deep" / "lock", on_wait=lambda: waits.append("wait")):
        assert is_locked(tmp_path / "deep" / "lock")

    assert waits == []
