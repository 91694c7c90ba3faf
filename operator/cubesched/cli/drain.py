"""`cubesched drain`: have the operator empty a node, and follow how far it has come."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cubesched.adapters.cluster.connection import AiohttpTransport, connect
from cubesched.api.duration import DurationError, parse_seconds
from cubesched.cli import Subparsers, add_command
from cubesched.cli.draining import (
    Cluster,
    Left,
    Node,
    NothingToDrain,
    by_phase,
    going,
    seconds_since,
)
from cubesched.cli.options import object_name
from cubesched.cli.output import add_output_option, age, print_data, print_table
from cubesched.core.errors import ApiError, UsageError
from cubesched.fleet.drainage import drainage

_DETAILS = """
Sets spec.drain of the SandboxNode, and nothing else: the operator does the work, and goes on when
this command has ended. The node takes no new request from then on. By default only what has not
begun to start moves to other nodes; with --all what runs or is paused is evicted as well, a few
at a time: it is stopped, what it holds is lost, and it starts anew on another node, if there is
room. Ctrl-C leaves the drain in place; --undo takes it back.

Needs get and patch on sandboxnodes, and list on sandboxrequests."""

_EXAMPLES = """\
  cubesched drain node-17                     no new requests; what has not begun moves
  cubesched drain node-17 --all --timeout 5m  until nothing is left, e.g. before a reboot
  cubesched drain node-17 --all --no-wait     set it and return
  cubesched drain node-17 --undo              take new requests again
  kubectl cubesched drain node-17 --all -o json

exit codes: 0 done, 1 no such node, or time is up, 2 wrong use or API server unreachable
"""

LOOK_SECONDS: Final = 1.0
UNNOTICED_SECONDS: Final = 15.0
"""An operator that runs has said something by then."""
MOST_ROWS: Final = 20


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(subparsers, "drain", details=_DETAILS, examples=_EXAMPLES)
    add = parser.add_argument
    add("node", type=object_name, metavar="NODE", help="name of a SandboxNode")
    what = parser.add_mutually_exclusive_group()
    for flag, drain, text in (
        ("--unstarted", "Unstarted", "move only what has not begun to start (default)"),
        ("--all", "All", "evict what runs or is paused, too"),
        ("--undo", "None", "take new requests again; what is being evicted goes on"),
    ):
        what.add_argument(flag, dest="drain", action="store_const", const=drain, help=text)
    add("--no-wait", action="store_true", help="return as soon as spec.drain is set")
    add("--timeout", metavar="DURATION", help="stop waiting after, as in 90s or 5m; default: never")
    add_output_option(parser)
    add("--kubeconfig", metavar="FILE", help="default: as kubectl finds it")
    add("--context", metavar="NAME", help="context of the kubeconfig")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Drain one node; 1 when there is none, or time is up."""
    timeout_seconds = _timeout(args.timeout)
    try:
        return asyncio.run(_run(args, timeout_seconds))
    except NothingToDrain as error:
        print(f"cubesched: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            f"\ncubesched: {args.node} goes on being drained; `cubesched drain {args.node} --undo` "
            "takes it back",
            file=sys.stderr,
        )
        return 130


def _timeout(text: str | None) -> float | None:
    try:
        return None if text is None else parse_seconds(text)
    except DurationError as error:
        raise UsageError(f"--timeout: {error}") from error


async def _run(args: argparse.Namespace, timeout_seconds: float | None) -> int:
    connection = await connect(args.kubeconfig, args.context)
    async with AiohttpTransport(connection) as transport:
        cluster = Cluster(transport, args.node)
        found = await cluster.node()
        # Without a word on what to move, a drain under way is followed as it is.
        drain = args.drain or (found.drain if found.drain != "None" else "Unstarted")
        node = found if found.drain == drain else await cluster.set_drain(drain)
        say = _say if args.output == "table" else _say_aside
        say(_set(found, node))
        waits = not args.no_wait and drain != "None"
        wait = Wait(cluster, node, say, deadline_seconds=timeout_seconds)
        done = await wait.until_drained() if waits else True
        await _conclude(args, wait, is_done=done, waited=waits)
        return 0 if done else 1


def _say(text: str) -> None:
    print(text, flush=True)


def _say_aside(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _set(before: Node, node: Node) -> str:
    """Say what the node does from now on, and whether that is new."""
    what = {
        "None": "takes new requests again",
        "Unstarted": "no new requests, what has not begun moves",
        "All": "no new requests, everything moves",
    }[node.drain]
    if node.drain == "None" and node.is_cordoned:
        what = "still no new requests: spec.unschedulable is true"
    was = " already" if before.drain == node.drain else ""
    return f"{node.name}: spec.drain is {node.drain}{was}: {what}"


@dataclass(slots=True)
class Wait:
    """Follows a drain: says what has changed, and what may hold it up."""

    cluster: Cluster
    node: Node
    say: Callable[[str], None]
    deadline_seconds: float | None = None
    began: float = field(default_factory=time.monotonic)
    _said: set[str] = field(default_factory=set)
    _last: str = ""

    @property
    def age(self) -> str:
        """How long it has taken so far."""
        return age(time.monotonic() - self.began)

    async def until_drained(self) -> bool:
        """Return True once nothing is left that should go; False when time is up."""
        while True:
            try:
                if await self._look():
                    return True
            except ApiError as error:
                if error.status in {401, 403}:
                    raise
                self._once(f"cannot look: {error}; trying again")
            waited = time.monotonic() - self.began
            if self.deadline_seconds is not None and waited >= self.deadline_seconds:
                return False
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> bool:
        node = await self.cluster.node()
        if node.uid != self.node.uid:
            raise NothingToDrain(f"SandboxNode {node.name!r} was deleted and created anew")
        self.node = node
        if node.drain == "None":
            raise NothingToDrain(f"somebody has taken the drain of {node.name} back")
        left = await self.cluster.left()
        moving = going(left, node.drain)
        self._progress(left, node)
        self._hint(node, is_moving=bool(moving))
        return not moving and node.is_drained

    def _progress(self, left: Sequence[Left], node: Node) -> None:
        found = drainage(node.drain, by_phase(left))
        text = found.message if found else ""
        if found and found.is_drained and not node.is_drained:
            # What only the operator can tell: that no replica still places anything here.
            text = str(node.progress.get("message", "")) or f"{text}, as far as can be seen"
        if text != self._last:
            self._last = text
            self.say(f"{self.age:>5}  {text}")

    def _hint(self, node: Node, *, is_moving: bool) -> None:
        if is_moving and node.trouble:
            self._once(node.trouble)
        if not node.progress and time.monotonic() - self.began > UNNOTICED_SECONDS:
            self._once("no replica of the operator has taken this up: does one run?")

    def _once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.say(f"       {text}")


async def _conclude(args: argparse.Namespace, wait: Wait, *, is_done: bool, waited: bool) -> None:
    if args.output == "table" and not waited:
        return
    node, left = wait.node, await wait.cluster.left()
    if args.output != "table":
        print_data(_data(node, left), args.output)
    elif not is_done:
        _print_left(wait, going(left, node.drain))
    else:
        _say(f"{node.name} is drained{' of that' * bool(left)} after {wait.age}")
        if left:
            _say("       --all evicts the rest; what that holds is lost")


def _print_left(wait: Wait, moving: Sequence[Left]) -> None:
    why = f"{len(moving)} left" if moving else "no replica has confirmed it"
    _say(f"{wait.node.name} is not drained after {wait.age}: {why}; the drain goes on")
    rows = [
        [f"{one.namespace}/{one.name}", one.phase, age(seconds_since(one)), one.why]
        for one in moving[:MOST_ROWS]
    ]
    if rows:
        print_table(["REQUEST", "PHASE", "FOR", "WAITS FOR"], rows)
    if len(moving) > MOST_ROWS:
        _say(f"and {len(moving) - MOST_ROWS} more")


def _data(node: Node, left: Sequence[Left]) -> dict[str, Any]:
    return {
        "node": node.name,
        "drain": node.drain,
        "drained": node.is_drained and not going(left, node.drain),
        "message": node.progress.get("message", ""),
        "trouble": node.trouble,
        "left": [
            {"namespace": one.namespace, "name": one.name, "phase": one.phase} for one in left
        ],
    }
