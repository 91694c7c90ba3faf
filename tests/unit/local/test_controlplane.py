from __future__ import annotations

from pathlib import Path

import pytest

from cubesched.core.errors import UsageError
from cubesched.local.children import ProcessDied
from cubesched.local.controlplane import LocalControlPlane, clear, with_free_port


def _taken(times: int, output: str = "listen: bind: Address already in use") -> list[int]:
    """Return the ports tried when the first `times` of them turn out to be taken."""
    tried: list[int] = []

    def start(port: int) -> None:
        tried.append(port)
        if len(tried) <= times:
            raise ProcessDied("server", output)

    assert with_free_port(start) == tried[-1]
    return tried


def test_a_free_port_is_used() -> None:
    assert len(_taken(0)) == 1


def test_a_port_that_somebody_else_took_first_is_given_up_for_another() -> None:
    assert len(_taken(2)) == 3


def test_a_port_is_not_looked_for_for_ever() -> None:
    with pytest.raises(ProcessDied):
        _taken(100)


def test_another_reason_to_end_is_not_tried_again() -> None:
    with pytest.raises(ProcessDied, match="unknown flag"):
        _taken(1, output="unknown flag: --nonsense")


def test_remains_are_cleared_but_for_the_lock(tmp_path: Path) -> None:
    (tmp_path / "etcd" / "member").mkdir(parents=True)
    (tmp_path / "redis.log").touch()
    (tmp_path / "lock").touch()

    clear(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_what_does_not_run_can_be_stopped_but_not_used(tmp_path: Path) -> None:
    plane = LocalControlPlane("idle", tmp_path)

    plane.stop()

    with pytest.raises(UsageError, match="'idle' is not running"):
        plane.kill_redis()
