"""An independent check that no node was ever over-committed and no sandbox ran twice.

    python -m cubesched.local.auditor --kubeconfig FILE --until-stopped --agent-log FILE

It shares no code with the scheduler but the wire: it follows SandboxRequests and SandboxNodes,
reads the agents' log of starts and stops, prints one JSON object at the end, and exits with 1 if
anything happened that must not.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, TextIO

import msgspec

from cubesched.adapters.cluster.connection import connect
from cubesched.adapters.cluster.listwatch import ListWatch
from cubesched.adapters.cluster.transport import Transport
from cubesched.adapters.cluster.wire import AiohttpTransport
from cubesched.api import NODES, REQUESTS
from cubesched.api.duration import DurationError, parse_seconds
from cubesched.core.errors import CubeschedError, UsageError
from cubesched.local.auditing import MachineAudit, NodeLimits, RequestAudit, Violations

LOG_EVERY_SECONDS = 0.5
SETTLE_SECONDS = 2.0
"""How long the streams are read on after the end was asked for, so that they catch up."""


class RequestSink:
    """Feeds one list-watch of SandboxRequests to the audit."""

    def __init__(self, audit: RequestAudit) -> None:
        self._audit = audit
        self._listed: list[Mapping[str, Any]] = []
        self.synced = asyncio.Event()
        self.version = 0

    def reset(self) -> None:
        """Begin a list."""
        self._listed = []

    def seen(self, raw: bytes) -> None:
        """Take one object of the list."""
        self._listed.append(msgspec.json.decode(raw))

    def complete(self, version: int) -> None:
        """End the list."""
        self._audit.replace_all(self._listed)
        self._listed = []
        self.version = version
        self.synced.set()

    def event(self, kind: str, raw: bytes, version: int) -> None:
        """Apply one event."""
        self._audit.apply(kind, msgspec.json.decode(raw))
        self.version = version

    def progress(self, version: int) -> None:
        """Take a bookmark."""
        self.version = version


class NodeSink:
    """Feeds one list-watch of SandboxNodes to the limits; a deleted node keeps its last ones."""

    def __init__(self, limits: NodeLimits) -> None:
        self._limits = limits
        self.synced = asyncio.Event()

    def reset(self) -> None:
        """Begin a list."""

    def seen(self, raw: bytes) -> None:
        """Take one object of the list."""
        self._limits.learn(msgspec.json.decode(raw))

    def complete(self, version: int) -> None:  # noqa: ARG002 - every sink is told
        """End the list."""
        self.synced.set()

    def event(self, kind: str, raw: bytes, version: int) -> None:  # noqa: ARG002
        """Apply one event."""
        if kind != "DELETED":
            self._limits.learn(msgspec.json.decode(raw))

    def progress(self, version: int) -> None:
        """Take a bookmark."""


@dataclass(slots=True)
class LogTail:
    """Reads a file that grows, whole lines only."""

    path: Path
    audit: MachineAudit
    _offset: int = 0

    def read_on(self) -> None:
        """Take all lines that came since the last call."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                self._apply(line)

    def _apply(self, line: bytes) -> None:
        try:
            self.audit.apply(msgspec.json.decode(line))
        except (msgspec.MsgspecError, KeyError, TypeError) as error:
            self.audit.violations.add("unreadable_log", f"{self.path}: {error!r}")

    async def follow(self) -> None:
        """Read on for ever."""
        while True:
            self.read_on()
            await asyncio.sleep(LOG_EVERY_SECONDS)


@dataclass(slots=True)
class Audit:
    """All checks together, and the summary."""

    overcommit_cpu: Fraction = Fraction(1)
    overcommit_memory: Fraction = Fraction(1)
    log_path: Path | None = None
    violations: Violations = field(default_factory=Violations)
    limits: NodeLimits = field(init=False)
    requests: RequestAudit = field(init=False)
    machines: MachineAudit = field(init=False)

    def __post_init__(self) -> None:
        """Wire the parts."""
        self.limits = NodeLimits(time.monotonic, self.overcommit_cpu, self.overcommit_memory)
        self.requests = RequestAudit(self.limits, self.violations)
        self.machines = MachineAudit(self.limits, self.violations)

    async def run(self, transport: Transport, stop: asyncio.Event) -> dict[str, Any]:
        """Audit until `stop`, read what is still under way, and return the summary."""
        requests, nodes = RequestSink(self.requests), NodeSink(self.limits)
        tail = LogTail(self.log_path, self.machines) if self.log_path else None
        rng = Random()  # noqa: S311 - spreads retries
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(ListWatch(transport, NODES.path(), nodes, rng=rng.random).run())
            ]
            await first_of(nodes.synced, stop)
            tasks.append(
                group.create_task(
                    ListWatch(transport, REQUESTS.path(), requests, rng=rng.random).run()
                )
            )
            if tail is not None:
                tasks.append(group.create_task(tail.follow()))
            await first_of(requests.synced, stop)
            _say(sys.stderr, f"auditing from version {requests.version}")
            await stop.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            for task in tasks:
                task.cancel()
        if tail is not None:
            tail.read_on()
        self.machines.judge_machines()
        return self.summary(requests)

    def summary(self, requests: RequestSink) -> dict[str, Any]:
        """Return everything that was counted."""
        counts = self.violations.counts
        summary: dict[str, Any] = {
            "synced": requests.synced.is_set(),
            "version": requests.version,
            "revisions": self.requests.revisions,
            "over_committed_nodes": len(self.requests.over_committed),
            "directly_bound": len(self.requests.directly_bound),
            "over_dispatched_nodes": len(self.requests.over_dispatched),
            "moved_while_confirmed": counts["moved_while_confirmed"],
            "requests": self.requests.by_phase(),
        }
        if self.log_path is not None:
            summary |= {
                "log_lines": self.machines.lines,
                "starts": self.machines.starts,
                "still_running": self.machines.still_running(),
                "ran_twice": counts["ran_twice"],
                "machines_over_limit": counts["machine_over_limit"],
                "unreadable_log_lines": counts["unreadable_log"],
            }
        return {**summary, "violations": counts.total(), "examples": self.violations.examples}


def _say(stream: TextIO, text: str) -> None:
    stream.write(f"{text}\n")
    stream.flush()


async def first_of(*events: asyncio.Event) -> None:
    """Return when the first of the events is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    result = argparse.ArgumentParser(
        prog="python -m cubesched.local.auditor",
        description="Prove from the watch and the agents' log that no node was over-committed.",
        epilog="Prints one JSON object. Exit: 0 no violation, 1 violations, 2 could not audit.",
    )
    result.add_argument("--kubeconfig", help="default: as kubectl finds it")
    result.add_argument("--context", help="context of the kubeconfig")
    until = result.add_mutually_exclusive_group(required=True)
    until.add_argument("--duration", help="how long, as in 90s or 5m")
    until.add_argument("--until-stopped", action="store_true", help="until SIGTERM or Ctrl-C")
    log = result.add_mutually_exclusive_group(required=True)
    log.add_argument("--agent-log", type=Path, help="the agents' log of starts and stops")
    log.add_argument("--watch-only", action="store_true", help="there is no log: skip its checks")
    for what in ("cpu", "memory"):
        result.add_argument(
            f"--overcommit-{what}",
            type=Fraction,
            default=Fraction(1),
            help=f"the SchedulerConfig's over-commit of {what} (default: 1)",
        )
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Audit and print the summary; return the exit code."""
    args = parser().parse_args(argv)
    try:
        summary = asyncio.run(_audit(args))
    except CubeschedError as error:
        _say(sys.stderr, f"auditor: {error}")
        return 2
    _say(sys.stdout, msgspec.json.encode(summary).decode())
    if not summary["synced"]:
        return 2
    return 1 if summary["violations"] else 0


async def _audit(args: argparse.Namespace) -> dict[str, Any]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if args.duration:
        try:
            loop.call_later(parse_seconds(args.duration), stop.set)
        except DurationError as error:
            raise UsageError(f"--duration: {error}") from error
    audit = Audit(args.overcommit_cpu, args.overcommit_memory, args.agent_log)
    connection = await connect(args.kubeconfig, args.context)
    async with AiohttpTransport(connection) as transport:
        return await audit.run(transport, stop)


if __name__ == "__main__":
    sys.exit(main())
