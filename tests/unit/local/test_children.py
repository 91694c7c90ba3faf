from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cubesched.core.errors import UsageError
from cubesched.local.children import Children, ProcessDied, claim
from cubesched.local.locking import is_locked

SLEEP = ["sleep", "60"]


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    running = Children(tmp_path, lock_descriptor=claim(tmp_path))
    yield running
    running.stop()


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def _check_until_it_ends(children: Children, name: str) -> None:
    while True:
        children.check(name)


def test_stop_kills_every_process(children: Children) -> None:
    children.start("one", SLEEP)
    children.start("two", SLEEP)
    pids = list(children.pids.values())

    children.stop()

    assert all(map(_is_gone, pids))


def test_one_process_is_killed_alone(children: Children) -> None:
    children.start("one", SLEEP)
    children.start("two", SLEEP)
    one, two = children.pids.values()

    children.kill("one")
    children.kill("never started")

    assert _is_gone(one)
    assert not _is_gone(two)
    assert list(children.pids) == ["two"]


def test_a_process_that_ended_by_itself_is_told_with_its_last_words(children: Children) -> None:
    program = "import sys; print('first', flush=True); sys.exit('no room left')"
    children.start("brief", [sys.executable, "-c", program])

    with pytest.raises(ProcessDied, match="brief ended by itself: no room left") as raised:
        _check_until_it_ends(children, "brief")

    assert "first" in raised.value.output


def test_the_output_of_an_earlier_run_is_kept_in_the_log_but_not_told(children: Children) -> None:
    for word in ("earlier", "later"):
        children.start("talker", [sys.executable, "-c", f"import sys; sys.exit({word!r})"])
        with pytest.raises(ProcessDied):
            _check_until_it_ends(children, "talker")

    assert children.output("talker").strip() == "later"
    assert "earlier" in (children.directory / "talker.log").read_text()


def test_a_program_that_is_not_there_is_an_error(children: Children) -> None:
    with pytest.raises(ProcessDied, match="No such file"):
        children.start("nothing", ["/does/not/exist"])


def test_a_directory_in_use_cannot_be_claimed_until_its_processes_are_stopped(
    children: Children,
) -> None:
    with pytest.raises(UsageError, match="already running"):
        claim(children.directory)

    children.stop()

    assert not is_locked(children.directory / "lock")


def test_a_directory_with_something_else_in_it_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()

    with pytest.raises(UsageError, match="neither empty nor the directory of a control plane"):
        claim(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_stopped_supervisor_answers_with_an_error(children: Children) -> None:
    children.stop()

    with pytest.raises(ProcessDied, match="the supervisor"):
        children.start("late", SLEEP)
