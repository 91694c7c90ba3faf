from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cubesched.core.errors import UsageError
from cubesched.local import instances
from cubesched.local.children import Children, claim
from cubesched.local.paths import instance_directory


@pytest.fixture(autouse=True)
def _empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def children() -> Iterator[Children]:
    """The processes of an instance called `one`, detached: a sleeping `redis` is all of them."""
    directory = instance_directory("one")
    directory.mkdir(parents=True)
    running = Children(directory, lock_descriptor=claim(directory))
    running.start("redis", ["sleep", "60"])
    yield running
    instances.stop("one")


def _write_state(children: Children, **processes: int) -> None:
    state = {
        "name": "one",
        "server": "https://127.0.0.1:1",
        "redisURL": "redis://127.0.0.1:2/0",
        "kubeconfig": str(children.directory / "kubeconfig"),
        "supervisor": children.supervisor_pid,
        "processes": children.pids | processes,
    }
    (children.directory / "state.json").write_text(json.dumps(state))


def test_an_instance_runs_until_it_is_stopped_and_then_leaves_nothing(children: Children) -> None:
    _write_state(children)
    children.detach()

    found = instances.find("one")
    assert found is not None
    assert found.server == "https://127.0.0.1:1"
    assert found.dead == ()
    assert [instance.name for instance in instances.list_running()] == ["one"]

    assert instances.stop("one")

    assert instances.find("one") is None
    assert not children.directory.exists()


def test_a_process_that_ended_is_named(children: Children) -> None:
    never_a_pid = 2**22 + 1
    _write_state(children, etcd=never_a_pid)
    children.detach()

    found = instances.find("one")

    assert found is not None
    assert found.dead == ("etcd",)


def test_remains_without_a_living_supervisor_are_no_instance(children: Children) -> None:
    _write_state(children)
    children.stop()

    assert instances.find("one") is None
    assert instances.list_running() == []


def test_stopping_what_does_not_run_is_fine() -> None:
    assert not instances.stop("one")


def test_an_instance_that_is_just_being_started_is_left_to_its_owner(children: Children) -> None:
    with pytest.raises(UsageError, match="just being started"):
        instances.stop("one")

    children.stop()
