"""The near side of the supervisor: start, kill and ask about the processes of one instance."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from cubesched.core.errors import CubeschedError, UsageError
from cubesched.local.locking import try_lock

_SCRIPT = Path(__file__).with_name("supervisor.py")
_TAIL_BYTES = 4000
LOCK_FILE = "lock"


class ProcessDied(CubeschedError):
    """A process of the control plane ended when it should run; `output` is what it said last."""

    def __init__(self, name: str, output: str) -> None:
        last_line = output.strip().rpartition("\n")[2] or "(it said nothing)"
        super().__init__(f"{name} ended by itself: {last_line}")
        self.output = output


class Children:
    """The processes of one instance, held by a supervisor that outlives nobody (see `detach`).

    The supervisor holds the lock on `directory/lock` for as long as it lives; that is how others
    tell a running instance from the remains of one.
    """

    def __init__(self, directory: Path, *, lock_descriptor: int) -> None:
        self.directory = directory
        self.pids: dict[str, int] = {}
        self._log_starts: dict[str, int] = {}
        self._turn = threading.Lock()
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            pass_fds=[lock_descriptor],
            start_new_session=True,
        )
        os.close(lock_descriptor)
        self.supervisor_pid = self._supervisor.pid

    def start(self, name: str, argv: list[str]) -> None:
        """Start a process; its output is appended to `name.log` in the instance's directory."""
        log = self.directory / f"{name}.log"
        self._log_starts[name] = log.stat().st_size if log.exists() else 0
        answer = self._ask(do="start", name=name, argv=argv, log=str(log))
        if "error" in answer:
            raise ProcessDied(name, str(answer["error"]))
        self.pids[name] = answer["pid"]

    def kill(self, name: str) -> None:
        """Kill a process with SIGKILL and wait for its end; nothing happens when there is none."""
        self._ask(do="kill", name=name)
        self.pids.pop(name, None)

    def check(self, name: str) -> None:
        """Raise ProcessDied when the process has ended by itself."""
        if self._ask(do="codes").get(name) is not None:
            raise ProcessDied(name, self.output(name))

    def output(self, name: str) -> str:
        """Return the end of what the process wrote since it was last started."""
        data = (self.directory / f"{name}.log").read_bytes()[self._log_starts[name] :]
        return data[-_TAIL_BYTES:].decode(errors="replace")

    def detach(self) -> None:
        """Let the processes live on after this one, until their supervisor gets SIGTERM."""
        self._ask(do="detach")
        self._close_pipes()
        self._supervisor.returncode = 0  # no longer ours to reap

    def stop(self) -> None:
        """Kill all processes and wait until none is left."""
        self._close_pipes()
        self._supervisor.wait()
        self.pids.clear()

    def _close_pipes(self) -> None:
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        self._supervisor.stdin.close()
        self._supervisor.stdout.close()

    def _ask(self, **command: object) -> dict[str, Any]:
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        with self._turn:
            try:
                self._supervisor.stdin.write(json.dumps(command).encode() + b"\n")
                self._supervisor.stdin.flush()
                line = self._supervisor.stdout.readline()
            except (OSError, ValueError) as error:
                raise ProcessDied("the supervisor", str(error)) from error
        if not line:
            raise ProcessDied("the supervisor", "")
        answer: dict[str, Any] = json.loads(line)
        return answer


def claim(directory: Path) -> int:
    """Return a descriptor that holds the instance's lock.

    Raises UsageError when the instance is running, or when the directory holds something else:
    what is claimed is about to be cleared.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()) and not (directory / LOCK_FILE).exists():
        raise UsageError(f"{directory} is neither empty nor the directory of a control plane")
    directory.chmod(0o700)
    descriptor = try_lock(directory / LOCK_FILE)
    if descriptor is None:
        message = (
            f"an instance is already running in {directory}; stop it with `cubesched local down`"
        )
        raise UsageError(message)
    return descriptor
