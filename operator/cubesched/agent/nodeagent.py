"""One node's agent: claims what is bound to it, runs it, and says what became of it.

Each request has at most one worker at a time. A worker looks at the newest state known, does the
one thing that state asks for (`agent.steps`), and looks again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from cubesched.adapters.cluster.writes import StatusWriter
from cubesched.agent.confirming import Confirming
from cubesched.agent.ends import Ends
from cubesched.agent.ownnode import OwnNode
from cubesched.agent.pausing import Pausing
from cubesched.agent.reporting import report_of
from cubesched.agent.requests import OwnRequests, Position, sandbox_of
from cubesched.agent.room import Room, unexplained
from cubesched.agent.runtime import Runtime
from cubesched.agent.shutdowns import Shutdowns
from cubesched.agent.steps import Steps
from cubesched.agent.workers import Workers
from cubesched.agent.writing import ConditionalWrites
from cubesched.fleet.metrics_layout import NodeReport

log = logging.getLogger(__name__)


class NodeAgent:
    """Runs the requests of one node on one `runtime`.

    Feed `requests` from the node's list-watch; then `start` once, `report` each second, `stop`.
    Two agents for one node must not run at the same time on one machine.
    """

    def __init__(
        self,
        node: str,
        *,
        writer: StatusWriter,
        runtime: Runtime,
        position: Position | None = None,
        epoch_seconds: Callable[[], float] = time.time,
    ) -> None:
        self.node = node
        self.node_uid = ""
        """metadata.uid of the SandboxNode; set by who registers it, before the first report."""
        self.own_node = OwnNode(node, changed=self._room_may_have_come)
        """What the operator says of this node; feed it from a list-watch of the SandboxNode."""
        self.runtime = runtime
        self.requests = OwnRequests(
            node,
            changed=self._changed,
            listed=self._note_listed,
            caught_up=self._room_may_have_come,
            position=position or Position(),
        )
        self._now = epoch_seconds
        self._room = Room(runtime)
        self._confirming = Confirming(self.requests, self.own_node, self._room)
        self._listed = asyncio.Event()
        self._is_ready = False
        self._ends = Ends(node, runtime, self._wake)
        self._shutdowns = Shutdowns(epoch_seconds, self._wake)
        self._steps = Steps(
            node=node,
            runtime=runtime,
            requests=self.requests,
            statuses=ConditionalWrites(writer, self.requests, epoch_seconds),
            room=self._room,
            confirming=self._confirming,
            pausing=Pausing(runtime, self._room, self.own_node),
            ends=self._ends,
            shutdowns=self._shutdowns,
            room_may_have_come=self._room_may_have_come,
        )
        self._workers = Workers(node, self._steps.settle)

    async def start(self) -> None:
        """Meet the node's own requests, remove what matches none, then begin to act.

        Returns when the node may be reported Ready.
        """
        await self._listed.wait()
        await self._room.find()
        explained = self._explained()
        for name in [name for name in self._room.held if name not in explained]:
            log.info("%s: removing %s, which no request names", self.node, name)
            await self._room.release(name)
        for entry in self.requests:  # what is half resumed or half paused takes all it may
            self._room.count_at_least(sandbox_of(entry), entry.weight)
        self._is_ready = True
        for entry in self.requests:
            self._wake(entry.uid)

    async def stop(self) -> None:
        """End all work; what runs on the machine goes on."""
        self._is_ready = False
        self._shutdowns.stop()
        await self._workers.stop()
        await self._ends.stop()

    async def report(self) -> NodeReport | None:
        """Return what to publish now; None before `start` has returned."""
        taken = await self._room.taken()
        if not self._is_ready:
            return None
        # From here on nothing yields: position, requests and foreign use belong together.
        return report_of(
            self.node_uid,
            self.runtime.usage(),
            stamp_ms=int(self._now() * 1000),
            applied_version=self.requests.applied_version,
            foreign=unexplained(taken, self._explained()),
            sandboxes=len(taken),
            creating=len(self._steps.creating),
        )

    def _explained(self) -> set[str]:
        return {sandbox_of(entry) for entry in self.requests}

    def _note_listed(self) -> None:
        self._listed.set()
        self._room_may_have_come()

    def _changed(self, uid: str) -> None:
        self._wake(uid)
        self._room_may_have_come()

    def _room_may_have_come(self) -> None:
        """Look again at what is reserved here and waits for room, or for what is said of it."""
        for uid in self._confirming.take_waiting():
            self._wake(uid)

    def _wake(self, uid: str) -> None:
        if self._is_ready:
            self._workers.wake(uid)
