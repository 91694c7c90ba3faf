"""One node's agent: claims what is bound to it, runs it, and says what became of it.

Each request has at most one worker at a time. A worker looks at the newest state known, does the
one thing that state asks for, and looks again; only conditional writes make a state its own.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from cubesched.adapters.cluster.writes import StatusWriter
from cubesched.agent import statuses
from cubesched.agent.ownnode import OwnNode
from cubesched.agent.requests import OwnRequests, Position, order_of, sandbox_of
from cubesched.agent.room import Room, unexplained
from cubesched.agent.runtime import (
    Ended,
    Order,
    Runtime,
    RuntimeUnavailable,
    StartFailed,
)
from cubesched.agent.writing import ConditionalWrites
from cubesched.core.errors import CubeschedError
from cubesched.fleet.entries import Entry
from cubesched.fleet.metrics_layout import NodeReport
from cubesched.fleet.sandboxes import uid_in

log = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 0.2
LAST_RETRY_SECONDS = 10.0
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
        self.own_node = OwnNode(node)
        """What the operator says of this node; feed it from a list-watch of the SandboxNode."""
        self.runtime = runtime
        self.requests = OwnRequests(
            node, changed=self._wake, listed=self._note_listed, position=position or Position()
        )
        self._statuses = ConditionalWrites(writer, self.requests, epoch_seconds)
        self._now = epoch_seconds
        self._room = Room(runtime)
        self._listed = asyncio.Event()
        self._is_ready = False
        self._news: dict[str, asyncio.Event] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._waiters: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, Ended] = {}
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
        self._is_ready = True
        for entry in self.requests:
            self._wake(entry.uid)

    async def stop(self) -> None:
        """End all work; what runs on the machine goes on."""
        self._is_ready = False
        tasks = [*self._workers.values(), *self._waiters.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def report(self) -> NodeReport | None:
        """Return what to publish now; None before `start` has returned."""
        taken = await self._room.taken()
        if not self._is_ready:
            return None
        # From here on nothing yields: position, requests and foreign use belong together.
        foreign, foreign_number = unexplained(taken, self._explained())
        usage = self.runtime.usage()
        return NodeReport(
            node_uid=self.node_uid,
            stamp_ms=int(self._now() * 1000),
            applied_version=self.requests.applied_version,
            foreign_cpu_millis=foreign.cpu_millis,
            foreign_memory_bytes=foreign.memory_bytes,
            foreign_disk_bytes=foreign.disk_bytes,
            foreign_sandboxes=foreign_number,
            cpu_util_percent=usage.cpu_util_percent,
            cpu_load=usage.cpu_load,
            memory_used_bytes=usage.memory_used_bytes,
            data_disk_percent=usage.data_disk_percent,
            storage_disk_percent=usage.storage_disk_percent,
            system_disk_percent=usage.system_disk_percent,
            sandboxes=len(taken),
            creating=len(self._creating),
        )

    def _explained(self) -> set[str]:
        return {sandbox_of(entry) for entry in self.requests}

    def _note_listed(self) -> None:
        self._listed.set()

    # One worker a request

    def _wake(self, uid: str) -> None:
        if not self._is_ready:
            return
        news = self._news.setdefault(uid, asyncio.Event())
        news.set()
        if uid not in self._workers:
            self._workers[uid] = asyncio.create_task(self._work(uid, news))

    async def _work(self, uid: str, news: asyncio.Event) -> None:
        """Settle the request until nothing is left to do before the next event."""
        delay_seconds = FIRST_RETRY_SECONDS
        try:
            while news.is_set():
                news.clear()
                if await self._settled(uid):
                    delay_seconds = FIRST_RETRY_SECONDS
                    continue
                with suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), delay_seconds)
                news.set()
                delay_seconds = min(2 * delay_seconds, LAST_RETRY_SECONDS)
        finally:
            del self._workers[uid], self._news[uid]

    async def _settled(self, uid: str) -> bool:
        """Do what the newest state asks for; False when that has to be tried again."""
        try:
            await self._settle(uid)
        except CubeschedError as error:
            log.warning("%s: request %s: %s", self.node, uid, error)
            return False
        except Exception:
            log.exception("%s: request %s", self.node, uid)
            return False
        return True

    async def _settle(self, uid: str) -> None:
        entry = self.requests.get(uid)
        if entry is None:
            await self._destroy_all(uid)
            return
        if entry.unreadable:
            return  # whatever runs for it stays until it can be read
        await self._destroy_all(uid, but=sandbox_of(entry))
        match entry.phase:
            case "Bound":
                await self._claim(entry)
            case "Starting":
                await self._run(entry)
            case "Running":
                await self._look_after(entry)
            case "Evicting":
                await self._evict(entry)
            case _:
                pass

    async def _destroy_all(self, uid: str, *, but: str = "") -> None:
        ended = [name for name in self._ended if uid_in(name) == uid]
        for name in {*self._room.of(uid), *ended} - {but}:
            await self._let_go(name)

    async def _claim(self, entry: Entry) -> None:
        """Write `Starting`; only an acknowledged claim, or one met in the stream, is acted on."""
        refusal = self.runtime.refusal(order_of(entry))
        if refusal:
            await self._give_back(entry, refusal)
            return
        claimed = await self._statuses.write(entry, statuses.starting)
        if claimed is not None:
            await self._run(claimed)

    async def _run(self, entry: Entry) -> None:
        order = order_of(entry)
        short = await self._room.admit(order)
        if short:
            await self._give_back(entry, short)
            return
        try:
            endpoint = await self._create(order)
        except StartFailed as error:
            await self._let_go(order.sandbox)
            await self._statuses.write(entry, statuses.start_failed, message=str(error))
            return
        self._wait_for_end(order.sandbox)
        await self._statuses.write(
            entry, statuses.running, sandbox=order.sandbox, endpoint=endpoint
        )

    async def _create(self, order: Order) -> str:
        self._creating.add(order.sandbox)
        try:
            return await self.runtime.create(order)
        finally:
            self._creating.discard(order.sandbox)

    async def _look_after(self, entry: Entry) -> None:
        """Report the end of a running sandbox, once the machine has let go of it."""
        sandbox = sandbox_of(entry)
        if sandbox in self._room.held and sandbox not in self._ended:
            self._wait_for_end(sandbox)
            return
        await self._report_end(entry, self._ended.get(sandbox, _LOST))

    async def _evict(self, entry: Entry) -> None:
        """Stop the sandbox, then give the request back, unless it has ended by itself before."""
        sandbox = sandbox_of(entry)
        if sandbox in self._ended:
            await self._report_end(entry, self._ended[sandbox])
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
        await self._statuses.write(entry, statuses.refused, node=self.node, reason=reason)

    async def _let_go(self, sandbox: str) -> None:
        self._forget(sandbox)  # before it is destroyed: that is no end by itself
        await self._room.release(sandbox)

    def _forget(self, sandbox: str) -> None:
        waiter = self._waiters.pop(sandbox, None)
        if waiter is not None:
            waiter.cancel()
        self._ended.pop(sandbox, None)

    def _wait_for_end(self, sandbox: str) -> None:
        if sandbox not in self._waiters:
            self._waiters[sandbox] = asyncio.create_task(self._wait(sandbox))

    async def _wait(self, sandbox: str) -> None:
        while sandbox not in self._ended:
            try:
                self._ended[sandbox] = await self.runtime.wait(sandbox)
            except RuntimeUnavailable as error:
                log.warning("%s: waiting for %s: %s", self.node, sandbox, error)
                await asyncio.sleep(LAST_RETRY_SECONDS)
        self._wake(uid_in(sandbox))
