"""The instances that outlive their command: find, describe and stop them by name."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from cubesched.core.errors import CubeschedError, UsageError
from cubesched.local.children import LOCK_FILE
from cubesched.local.controlplane import STATE_FILE
from cubesched.local.locking import is_locked
from cubesched.local.paths import instance_directory, instances_root

_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Instance:
    """A running instance as its state file describes it."""

    name: str
    server: str
    redis_url: str
    kubeconfig: Path
    directory: Path
    started: float
    """Unix time in seconds."""
    supervisor_pid: int
    dead: tuple[str, ...]
    """Processes that have ended though the instance runs; their logs say why."""


def find(name: str) -> Instance | None:
    """Return the running instance of this name, or None."""
    return _read(instance_directory(name))


def list_running() -> list[Instance]:
    """Return all running instances of this user, by name."""
    root = instances_root()
    directories = sorted(root.iterdir()) if root.is_dir() else []
    return [instance for directory in directories if (instance := _read(directory)) is not None]


def stop(name: str) -> bool:
    """Stop the instance and remove its directory; return whether one was running.

    Raises UsageError while it is just being started: its owner is at work in the directory.
    """
    directory = instance_directory(name)
    instance = _read(directory)
    if instance is not None:
        os.kill(instance.supervisor_pid, signal.SIGTERM)
        _wait_for_end(directory)
    elif is_locked(directory / LOCK_FILE):
        raise UsageError(f"control plane {name!r} is just being started; try again")
    shutil.rmtree(directory, ignore_errors=True)
    return instance is not None


def _wait_for_end(directory: Path) -> None:
    deadline = time.monotonic() + _STOP_SECONDS
    while is_locked(directory / LOCK_FILE):
        if time.monotonic() > deadline:
            raise CubeschedError(f"the processes of {directory} do not end; look for them with ps")
        time.sleep(0.02)


def _read(directory: Path) -> Instance | None:
    # The lock is the truth: a state file alone may be the remains of a crash or a reboot.
    path = directory / STATE_FILE
    if not is_locked(directory / LOCK_FILE) or not path.exists():
        return None
    state = json.loads(path.read_text())
    return Instance(
        name=state["name"],
        server=state["server"],
        redis_url=state["redisURL"],
        kubeconfig=Path(state["kubeconfig"]),
        directory=directory,
        started=path.stat().st_mtime,
        supervisor_pid=state["supervisor"],
        dead=tuple(name for name, pid in state["processes"].items() if not _is_alive(pid)),
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
