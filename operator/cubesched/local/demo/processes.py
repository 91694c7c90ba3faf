"""The demo's own processes: operator replicas, simulated nodes, the auditor; none outlives it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cubesched.core.errors import UsageError
from cubesched.local import waiting
from cubesched.local.binaries import find_redis_server

_PR_SET_PDEATHSIG = 1
_PACKAGE_ROOT = Path(__file__).parents[3]


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass(slots=True)
class Processes:
    """Started one by one, stopped together in the reverse order."""

    directory: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, module: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start `python -m module ...` with its output in NAME.log (stdout in NAME.out)."""
        return self._start(name, [sys.executable, "-m", module, *arguments])

    def start_redis(self, port: int) -> None:
        """Start a Redis on loopback that keeps nothing."""
        argv = [str(find_redis_server()), "--bind", "127.0.0.1", "--port", str(port)]
        process = self._start("redis", [*argv, "--save", "", "--appendonly", "no"])
        waiting.wait_until(
            lambda: waiting.redis_answers(port),
            what="redis",
            check=lambda: _check("redis", process, self.directory),
            timeout_seconds=10.0,
        )

    def _start(self, name: str, argv: list[str]) -> subprocess.Popen[bytes]:
        environment = os.environ | {"PYTHONPATH": str(_PACKAGE_ROOT), "PYTHONUNBUFFERED": "1"}
        with (self.directory / f"{name}.log").open("ab") as log:
            output = (self.directory / f"{name}.out").open("wb")
            with output:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=log,
                    env=environment,
                    preexec_fn=_die_with_parent,  # noqa: PLW1509 - one thread, nothing but prctl
                )
        self.running[name] = process
        return process

    def check(self) -> None:
        """Raise UsageError when one of them has ended by itself, with its last words."""
        for name, process in self.running.items():
            _check(name, process, self.directory)

    def stop(self, name: str, *, seconds: float = 15.0) -> tuple[int, str]:
        """Stop one with SIGTERM; return its exit code and what it printed."""
        self.running[name].terminate()
        return self._wait(name, seconds)

    def _wait(self, name: str, seconds: float) -> tuple[int, str]:
        process = self.running.pop(name)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return process.returncode, (self.directory / f"{name}.out").read_text(errors="replace")

    def kill(self, name: str) -> None:
        """Kill one with SIGKILL, as a crash would."""
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running.values():
            process.terminate()
        for name in reversed(list(self.running)):
            self._wait(name, 15.0)


def _check(name: str, process: subprocess.Popen[bytes], directory: Path) -> None:
    if process.poll() is not None:
        words = (directory / f"{name}.log").read_text(errors="replace").splitlines()
        last = words[-1] if words else "it said nothing"
        raise UsageError(f"{name} ended with code {process.returncode}: {last}")
