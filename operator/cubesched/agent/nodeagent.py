"""One node's agent: claims what is bound to it, runs it, and says what became of it.

Each request has at most one worker at a time. A worker looks at the newest state known, does the
one thing that state asks for, and looks again; only conditional writes make a state its own.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from cubesched.adapters.cluster.writes import StatusWriter
from cubesched.agent import statuses
from cubesched.agent.confirming import Confirming, is_to_confirm
from cubesched.agent.ends import Ends
from cubesched.agent.ownnode import OwnNode
from cubesched.agent.pausing import Pausing
from cubesched.agent.reporting import report_of
from cubesched.agent.requests import OwnRequests, Position, order_of, sandbox_of
from cubesched.agent.room import Room, unexplained
from cubesched.agent.runtime import (
    Ended,
    Order,
    Runtime,
    StartFailed,
)
from cubesched.agent.shutdowns import Shutdowns, end_at_shutdown
from cubesched.agent.workers import Workers
from cubesched.agent.writing import ConditionalWrites
from cubesched.fleet.entries import Entry
from cubesched.fleet.metrics_layout import NodeReport

log = logging.getLogger(__name__)

_CLAIMED = frozenset({"Starting", "Running", "Paused", "Evicting"})
_LOST = Ended(succeeded=False, message="the sandbox is not on the machine any more")


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
        self._statuses = ConditionalWrites(writer, self.requests, epoch_seconds)
        self._now = epoch_seconds
        self._room = Room(runtime)
        self._confirming = Confirming(self.requests, self.own_node, self._room)
        self._pausing = Pausing(runtime, self._room, self.own_node)
        self._listed = asyncio.Event()
        self._is_ready = False
        self._workers = Workers(node, self._settle)
        self._ends = Ends(node, runtime, self._wake)
        self._shutdowns = Shutdowns(epoch_seconds, self._wake)
        self._creating: set[str] = set()

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
            creating=len(self._creating),
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

    # One worker a request

    def _wake(self, uid: str) -> None:
        if self._is_ready:
            self._workers.wake(uid)

    async def _settle(self, uid: str) -> None:
        entry = self.requests.get(uid)
        if entry is None:
            self._shutdowns.forget(uid)
            await self._destroy_all(uid)
            return
        if entry.unreadable:
            return  # whatever runs for it stays until it can be read
        await self._destroy_all(uid, but=sandbox_of(entry))
        if self._shutdowns.has_come(entry):
            await self._shut_down(entry)
            return
        match entry.phase:
            case "Reserved" if is_to_confirm(entry):
                await self._confirm(entry)
            case "Bound":
                await self._claim(entry)
            case "Starting":
                await self._begin(entry)
            case "Running":
                await self._look_after(entry)
            case "Paused":
                await self._keep_paused(entry)
            case "Evicting":
                await self._evict(entry)
            case _:
                pass

    async def _destroy_all(self, uid: str, *, but: str = "") -> None:
        for name in {*self._room.of(uid), *self._ends.of_request(uid)} - {but}:
            await self._let_go(name)

    async def _shut_down(self, entry: Entry) -> None:
        """Stop what runs, then write that its time has come; what has not begun never does."""
        if entry.phase == "Bound":  # it is not the agent's to end before it is claimed
            claimed = await self._statuses.write(entry, statuses.starting)
            if claimed is None:
                return
            entry = claimed
        if entry.phase not in _CLAIMED:
            return
        sandbox = sandbox_of(entry)
        end = self._ends.of(sandbox)
        if end is None:
            self._forget(sandbox)  # before it is destroyed: that is no end by itself
            end = end_at_shutdown(entry)
        await self._report_end(entry, end)

    async def _claim(self, entry: Entry) -> None:
        """Write `Starting`; only an acknowledged claim, or one met in the stream, is acted on."""
        refusal = self.runtime.refusal(order_of(entry)) if not entry.resume else ""
        if refusal:
            await self._give_back(entry, refusal)
            return
        claimed = await self._statuses.write(entry, statuses.starting)
        if claimed is not None:
            await self._begin(claimed)

    async def _begin(self, entry: Entry) -> None:
        await (self._resume(entry) if entry.resume else self._run(entry))

    async def _confirm(self, entry: Entry) -> None:
        """Claim what this agent is asked to confirm, if it fits; a full machine gives it back."""
        order = order_of(entry)
        refusal = self.runtime.refusal(order) if not entry.resume else ""
        refusal = refusal or await self._room.promise(order)
        if refusal:
            await self._give_back(entry, refusal)
            return
        try:
            # Nothing yields between the verdict and the write, which hangs on the same version.
            if self._confirming.may_claim(entry):
                claimed = await self._statuses.write(entry, statuses.confirmed, node=self.node)
                if claimed is not None:
                    await self._begin(claimed)
        finally:
            self._room.promised.pop(order.sandbox, None)

    async def _run(self, entry: Entry) -> None:
        order = order_of(entry)
        short = await self._room.admit(order)
        if short:
            await self._give_back(entry, short)
            return
        try:
            endpoint = await self._create(order)
        except StartFailed as error:
            await self._fail(entry, error)
            return
        self._pausing.created(order.sandbox)
        self._ends.wait_for(order.sandbox)
        await self._statuses.write(
            entry, statuses.running, sandbox=order.sandbox, endpoint=endpoint
        )

    async def _create(self, order: Order) -> str:
        self._creating.add(order.sandbox)
        try:
            return await self.runtime.create(order)
        finally:
            self._creating.discard(order.sandbox)

    async def _resume(self, entry: Entry) -> None:
        """Resume what is claimed, with the room check of a start; the machine decides last."""
        if not await self._is_there(entry):
            return
        order = order_of(entry)
        short = await self._room.admit(order, resumes=True)
        if short:
            await self._give_back(entry, short)
            return
        if await self._runs_on(entry):
            await self._statuses.write(entry, statuses.resumed)

    async def _look_after(self, entry: Entry) -> None:
        """Pause a running sandbox when asked to; report its end."""
        if not await self._is_there(entry):
            return
        if entry.wishes.is_paused:
            keeping = await self._pausing.pause(entry)
            await self._statuses.write(entry, statuses.paused, keeping=keeping)
        else:  # also what was paused for a moment that nobody has written
            await self._runs_on(entry)

    async def _keep_paused(self, entry: Entry) -> None:
        """Hold only what is stamped; report the end of a sandbox that is gone."""
        if await self._is_there(entry):
            await self._pausing.keep_paused(entry)

    async def _is_there(self, entry: Entry) -> bool:
        """Report the end of a sandbox once the machine has let go of it; True when it goes on."""
        sandbox = sandbox_of(entry)
        end = self._ends.of(sandbox)
        if sandbox in self._room.held and end is None:
            self._ends.wait_for(sandbox)
            return True
        await self._report_end(entry, end or _LOST)
        return False

    async def _runs_on(self, entry: Entry) -> bool:
        """Make sure that the sandbox runs; report the failure of one that does not any more."""
        sandbox = sandbox_of(entry)
        self._creating.add(sandbox)
        try:
            await self._pausing.resume(sandbox)
        except StartFailed as error:
            await self._fail(entry, error)
            return False
        finally:
            self._creating.discard(sandbox)
        return True

    async def _fail(self, entry: Entry, error: StartFailed) -> None:
        await self._let_go(sandbox_of(entry))
        await self._statuses.write(entry, statuses.start_failed, message=str(error))

    async def _evict(self, entry: Entry) -> None:
        """Stop the sandbox, then give the request back, unless it has ended by itself before."""
        sandbox = sandbox_of(entry)
        end = self._ends.of(sandbox)
        if end is not None:
            await self._report_end(entry, end)
            return
        log.info("%s evicts %s", self.node, entry.key)
        await self._let_go(sandbox)
        await self._statuses.write(entry, statuses.evicted)

    async def _report_end(self, entry: Entry, end: Ended) -> None:
        """Write how it ended once the machine has let go; remembered until that is written."""
        await self._room.release(sandbox_of(entry))
        await self._statuses.write(
            entry, statuses.finished, succeeded=end.succeeded, message=end.message
        )

    async def _give_back(self, entry: Entry, reason: str) -> None:
        log.info("%s gives %s back: %s", self.node, entry.key, reason)
        change = statuses.refused
        if entry.resume:
            await self._pausing.pause_again(entry)
            change = statuses.resume_refused
        await self._statuses.write(entry, change, node=self.node, reason=reason)

    async def _let_go(self, sandbox: str) -> None:
        self._forget(sandbox)  # before it is destroyed: that is no end by itself
        await self._room.release(sandbox)
        self._room_may_have_come()

    def _forget(self, sandbox: str) -> None:
        self._ends.forget(sandbox)
        self._pausing.forget(sandbox)
