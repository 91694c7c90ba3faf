"""Parent of every process of one local control plane; run as a script, standard library only.

Reads one JSON command a line on stdin and answers with one JSON line on stdout. When stdin ends,
or the process that started it is gone (SIGKILL included), it kills all that it started and exits,
unless it was told to `detach`: then it lives until SIGTERM. Its children carry a parent-death
signal, so they do not outlive its own SIGKILL either. It runs no thread: that signal is tied to
the thread that forks. What it kills, it kills with SIGKILL: the state of an instance dies with it.

Commands: `{"do": "start", "name", "argv", "log"}`, `{"do": "kill", "name"}`,
`{"do": "codes"}` (exit codes of what ended by itself), `{"do": "detach"}`.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

POLL_SECONDS = 0.5
PR_SET_PDEATHSIG = 1

Answer = dict[str, object]


class Supervisor:
    """The children by name, and whether the process that asked for them still matters."""

    def __init__(self) -> None:
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.parent_pid = os.getppid()
        self.is_detached = False

    def obey(self, command: dict[str, Any]) -> Answer:
        """Carry out one command and return its answer."""
        match command["do"]:
            case "start":
                return self.start(command["name"], command["argv"], command["log"])
            case "kill":
                return self.kill(command["name"])
            case "codes":
                return {name: child.poll() for name, child in self.children.items()}
            case "detach":
                self.is_detached = True
                return {}
            case unknown:
                return {"error": f"unknown command {unknown!r}"}

    def start(self, name: str, argv: list[str], log_path: str) -> Answer:
        """Start a child whose output is appended to `log_path`; answer with its pid or error."""
        try:
            with open(log_path, "ab") as log:  # noqa: PTH123 - no pathlib: this process stays small
                self.children[name] = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has no threads
                )
        except OSError as error:
            return {"error": str(error)}
        return {"pid": self.children[name].pid}

    def kill(self, name: str) -> Answer:
        """Kill a child, reap it, and answer with its exit code; None when there was none."""
        child = self.children.pop(name, None)
        if child is None:
            return {"code": None}
        child.kill()
        return {"code": child.wait()}

    def kill_all(self) -> None:
        """Kill every child at once, then reap them."""
        for child in self.children.values():
            child.kill()
        for child in self.children.values():
            child.wait()

    def is_orphan(self) -> bool:
        """Whether the process that started this one is gone, seen even if its pipe lives on."""
        return not self.is_detached and os.getppid() != self.parent_pid


def die_with_parent() -> None:
    """Ask the kernel, between fork and exec, to kill this child when the supervisor ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def serve(supervisor: Supervisor) -> None:
    """Obey commands until nobody is left who could give one."""
    buffer = b""
    while not supervisor.is_orphan():
        if not select.select([0], [], [], POLL_SECONDS)[0]:
            continue
        chunk = os.read(0, 65536)
        if not chunk:
            break
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            os.write(1, json.dumps(supervisor.obey(json.loads(line))).encode() + b"\n")
    while supervisor.is_detached:
        supervisor.obey({"do": "codes"})  # reaps what ended, so that nobody takes it for alive
        time.sleep(POLL_SECONDS)


def main() -> None:
    """Serve, and kill everything on the way out, whatever the way."""
    supervisor = Supervisor()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        serve(supervisor)
    finally:
        supervisor.kill_all()


if __name__ == "__main__":
    main()
